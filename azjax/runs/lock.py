"""Locks of folders: one program at a time trains in a run directory or explores a player's games.

The operating system releases a lock when the program ends for any reason.
"""

import contextlib
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import Any, TextIO

from azjax._files import Path
from azjax.runs.directory import CheckpointError, check_links

NAME = "train.lock"


def check_supported() -> Any:
    """Returns the module `fcntl`, which Windows lacks."""
    try:
        import fcntl
    except ModuleNotFoundError as error:
        raise CheckpointError(
            "this system has no file locks (the module fcntl), which keep two programs from "
            "writing one run: use Linux or macOS; on Windows, use WSL"
        ) from error
    return fcntl


@contextlib.contextmanager
def hold(folder: Path, name: str = NAME, does: str = "trains") -> Iterator[None]:
    """Holds a lock in a folder during a `with` block.

    The CheckpointError in other programs contains the holder and `does`, its activity.
    """
    fcntl = check_supported()
    check_links(folder)
    path = pathlib.Path(folder) / name
    with path.open("a+", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read(300) or "another process"
            raise CheckpointError(
                f"{holder} {does} in {path.parent}: wait until it ends"
            ) from error
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be locked ({error.strerror}): put the run on another disk"
            ) from error
        if not _leads_to(path, file):
            raise CheckpointError(f"a run in {path.parent} has just ended: start again")
        file.truncate(0)
        file.write(f"process {os.getpid()} on host {socket.gethostname()}")
        file.flush()
        try:
            yield
        finally:
            if _leads_to(path, file):  # Otherwise the file there belongs to another program.
                path.unlink(missing_ok=True)


def _leads_to(path: pathlib.Path, file: TextIO) -> bool:
    """Whether an open file is still at its path, neither deleted nor moved."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
