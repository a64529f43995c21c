"""Run directories: the settings of a run, in `config.json`, next to its checkpoints; and locks.

Reading a run directory never imports or runs code that it names, so directories from untrusted
sources can be read. The caller passes a custom game or network to `config.make_parts`.

One program at a time trains in a run directory, or explores the games of its player. The operating
system releases the lock when the program ends for any reason; its file stays.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import socket
from collections.abc import Iterator
from typing import Annotated

from azjax._files import Path, write_json
from azjax._processes import any_of, gather, in_first
from azjax._settings import Range, checked, from_dict, list_changes
from azjax.runs.config import Config, Plan

FORMAT = 5  # Version of run directories; others cannot be read. A setting's new meaning needs one.
LOCK = "train.lock"
CPUDevices = Annotated[int, Range(0, 256)]  # 0: the program chooses.


class CheckpointError(Exception):
    """A run directory or checkpoint cannot be used; the message names the reason and a fix."""


def create_run(
    run_dir: Path, config: Config, plan: dict | None = None, *, numbered: bool = False
) -> pathlib.Path:
    """Creates a run directory with the configuration, and returns its path.

    If it is `numbered`, the first free number is appended, as in `runs/hex-1`. Programs that start
    at the same time get different numbers.
    """
    path = free = pathlib.Path(run_dir)

    def create():
        nonlocal free
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            free = _make_folder(path, numbered)
            (free / "checkpoints").mkdir()
            write_json(free / "plan.json", dataclasses.asdict(Plan()) | (plan or {}))
            write_json(free / "config.json", {"format": FORMAT, **config.as_dict()})
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be created ({error.strerror}): choose another folder"
            ) from error

    in_first(create)
    free = path.with_name(gather(free.name)[0])  # Process 0 chose the number.
    if any_of(not (free / "config.json").exists()):
        raise CheckpointError(
            f"not all processes can find {free}: use a folder on a disk that all of them share"
        )
    return free


def _make_folder(path: pathlib.Path, numbered: bool) -> pathlib.Path:
    number = 0
    while numbered:
        number += 1
        folder = path.with_name(f"{path.name}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    path.mkdir()
    return path


def check_free(run_dir: Path, *, numbered: bool = False) -> None:
    """Checks that `create_run` can create a run directory, before anything compiles."""
    path = pathlib.Path(run_dir)
    if not numbered and os.path.lexists(path):
        is_run = os.path.isfile(path / "config.json")
        advice = ": resume that run, or" if is_run else " and is not a run directory:"
        raise CheckpointError(f"{path} exists already{advice} choose another folder")
    folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise CheckpointError(
            f"{path} cannot be created ({folder} is not a folder in which azjax may write): choose "
            "another folder"
        )


def read_config(run_dir: Path) -> Config:
    """Reads the configuration of a run."""
    path = pathlib.Path(run_dir) / "config.json"
    if not path.exists():
        raise CheckpointError(
            f"{run_dir} is not a run directory (no config.json in it): use the folder of a run, "
            "such as runs/tic_tac_toe-default-1"
        )
    with _restoring(path):
        content = json.loads(path.read_text())
        if isinstance(content, dict) and content.pop("format", None) != FORMAT:
            raise CheckpointError(
                f"{run_dir} has the format of another version of azjax: use that version, or train "
                "a new run"
            )
        return Config.read(content)


def read_run(run_dir: Path) -> tuple[Config, Plan, int]:
    """Reads a run's configuration, its plan, and its number of CPU devices in each process."""
    config, path = read_config(run_dir), pathlib.Path(run_dir, "plan.json")
    with _restoring(path):
        plan = {**json.loads(path.read_text())}
        number = checked("cpu_devices", plan.pop("cpu_devices", 0), CPUDevices)
        for name in ("strength_every", "strength_games"):  # Of earlier versions.
            plan.pop(name, None)
        return config, from_dict(Plan, plan, complete=True), number


def check_kept(config: Config, asked: Config) -> None:
    """Checks that a resumed run keeps its settings."""
    for name, old, new in list_changes(config, asked):
        raise ValueError(
            f"a resumed run keeps its settings, and {name} was {old!r}, not {new!r}: leave it out, "
            "or start a new run in another folder"
        )


@contextlib.contextmanager
def _restoring(path: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, OSError, RecursionError) as error:  # The last: deeply nested.
        raise CheckpointError(f"{path} cannot be used ({error}): restore the file") from error


def find_runs() -> Iterator[pathlib.Path]:
    """Yields the runs in `runs/` that have a checkpoint, newest first."""
    paths = pathlib.Path("runs").glob("*/config.json")
    for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
        if iterations(path.parent):
            yield path.parent


def checkpoints(run_dir: Path) -> pathlib.Path:
    """Returns the folder of a run's checkpoints."""
    return pathlib.Path(run_dir).resolve() / "checkpoints"


def iterations(run_dir: Path) -> list[int]:
    """Returns the iterations of the checkpoints of a run, in ascending order."""
    names = (path.name for path in checkpoints(run_dir).glob("*"))
    return sorted(int(n) for n in names if re.fullmatch("0|[1-9][0-9]*", n))


def check_links(folder: Path) -> None:
    """Checks that a folder contains no link: programs write and delete only inside the folder."""
    for path in sorted(pathlib.Path(folder).glob("*")):
        if path.is_symlink():
            raise CheckpointError(
                f"{path} is a link to {os.readlink(path)}, and azjax writes only inside the run "
                "directory: put a copy in its place, or move the run and link its whole directory"
            )


@contextlib.contextmanager
def hold(folder: Path, name: str = LOCK, does: str = "trains") -> Iterator[None]:
    """Holds a lock in a run directory during a `with` block, in process 0; see `lock`."""
    with contextlib.ExitStack() as stack:

        def enter():
            check_links(folder)
            stack.enter_context(lock(pathlib.Path(folder) / name, does))

        in_first(enter)
        yield


@contextlib.contextmanager
def lock(path: pathlib.Path, does: str) -> Iterator[None]:
    """Holds the lock of a file during a `with` block.

    The CheckpointError in other programs contains the holder and `does`, its activity.
    """
    try:
        import fcntl
    except ModuleNotFoundError as error:  # Two programs could write the same files.
        raise CheckpointError("Windows has no file locks: use WSL, Linux or macOS") from error
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
                f"{path} cannot be locked ({error.strerror}): use another disk"
            ) from error
        file.truncate(0)
        file.write(f"process {os.getpid()} on host {socket.gethostname()}")
        file.flush()
        yield
