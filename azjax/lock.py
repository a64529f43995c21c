"""The lock of a run directory: one program at a time trains there.

The operating system holds it, and lets go of it however the program ends. The file names the
program and its host: a disk that hosts share need not tell one what another holds, so the file
of another host counts as held until somebody deletes it.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import socket
from collections.abc import Iterator

from azjax.files import Path
from azjax.runs import CheckpointError

NAME = "train.lock"


@contextlib.contextmanager
def hold(run_dir: Path) -> Iterator[None]:
    """Holds the lock of a run directory while its `with` block lasts.

    Raises:
      CheckpointError: if another program holds it, naming its process and host, or if the
        disk has no locks.
    """
    path = pathlib.Path(run_dir) / NAME
    descriptor = _take(path)
    try:
        yield
    finally:
        if _is_at(descriptor, path):
            path.unlink()
        os.close(descriptor)


def _take(path: pathlib.Path) -> int:
    """Returns the descriptor of the file, locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor, path)
        except CheckpointError:
            os.close(descriptor)
            raise
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # Its holder deleted it meanwhile, and somebody may have a new one.


def _lock(descriptor: int, path: pathlib.Path) -> None:
    """Locks the file and signs it, or refuses to wait for it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left, here = _read(descriptor), socket.gethostname()
        if left.get("host", here) != here:
            raise _taken(left, path)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"host": here, "pid": os.getpid()}).encode(), 0)
    except BlockingIOError as error:
        raise _taken(_read(descriptor), path) from error
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be locked ({error.strerror}): put the run on another disk"
        ) from error


def _taken(holder: dict, path: pathlib.Path) -> CheckpointError:
    pid, host = (holder.get(name, "unknown") for name in ("pid", "host"))
    return CheckpointError(
        f"process {pid} on host {host} trains in {path.parent}: wait until it ends, or, if it is "
        f"gone and left {path} behind, delete that file"
    )


def _read(descriptor: int) -> dict:
    """Returns what the holder wrote into the file; nothing if it has not yet."""
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_at(descriptor: int, path: pathlib.Path) -> bool:
    """Whether the open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
