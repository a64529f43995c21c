"""Run directories: the settings of a run, in `config.json`, next to its checkpoints; and locks.

Reading a run directory never imports or runs code that it names, so directories from untrusted
sources can be read. The caller passes a custom game or network to `config.make_parts`.

One program at a time trains in a run directory, or explores the games of its player. The operating
system releases the lock when the program ends for any reason.
"""

import contextlib
import itertools
import json
import os
import pathlib
import re
import socket
from collections.abc import Iterator
from typing import Any, TextIO, TypeVar

import jax

from azjax._files import Path, write_json
from azjax._processes import gather, in_all, in_first
from azjax._settings import from_dict
from azjax.runs.config import Config

FORMAT = 3  # Version of run directories; others cannot be read.
LOCK = "train.lock"
Settings = TypeVar("Settings")  # A dataclass of settings.


class CheckpointError(Exception):
    """A run directory or checkpoint cannot be used; the message names the reason and a fix."""


def create_run(
    run_dir: Path,
    config: Config,
    plan: dict | None = None,
    *,
    numbered: bool = False,
) -> pathlib.Path:
    """Creates a run directory with the configuration, and returns its path.

    If it is `numbered`, the first free number is appended, as in `runs/hex-1`. Programs that start
    at the same time get different numbers.
    """
    path = free = pathlib.Path(run_dir)

    def create():
        nonlocal free
        check_free(path, numbered=numbered)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                free = first_free(path) if numbered else path
                with contextlib.suppress(FileExistsError):
                    free.mkdir()
                    break
                check_free(path, numbered=numbered)  # Another program took the path meanwhile.
            (free / "checkpoints").mkdir()
            write_json(free / "plan.json", plan or {})
            write_json(free / "config.json", {"format": FORMAT, **config.as_dict()})
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be created ({error.strerror}): choose another folder"
            ) from error

    def check_visible():
        if not (free / "config.json").exists():
            raise CheckpointError(
                f"process {jax.process_index()} cannot find {free}, which process 0 created: use a "
                "folder on a disk that all processes share"
            )

    in_first(create)
    free = path.with_name(gather(free.name)[0])  # Process 0 chose the number.
    in_all(check_visible)
    return free


def first_free(prefix: Path) -> pathlib.Path:
    """Returns the first free path of the form `PREFIX-NUMBER`."""
    prefix = pathlib.Path(prefix)
    paths = (prefix.with_name(f"{prefix.name}-{number}") for number in itertools.count(1))
    return next(path for path in paths if not os.path.lexists(path))


def check_free(run_dir: Path, *, numbered: bool = False) -> None:
    """Checks that `create_run` can create a run directory, as far as that is known before."""
    path = pathlib.Path(run_dir)
    if not numbered and os.path.islink(path) and not os.path.exists(path):
        raise CheckpointError(
            f"{path} is a broken link to {os.readlink(path)}: remove it, or choose another folder"
        )
    # Resolves paths such as `missing/..` as well.
    if not numbered and os.path.exists(os.path.realpath(path)):
        if os.path.isfile(path / "config.json"):
            raise CheckpointError(
                f"{path} exists already: resume that run, or choose another folder"
            )
        raise CheckpointError(
            f"{path} exists already and is not a run directory: choose another folder"
        )
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
    with _readable(path):
        content = json.loads(path.read_text())
        if isinstance(content, dict) and content.pop("format", None) != FORMAT:
            raise CheckpointError(
                f"{run_dir} has the format of another version of azjax: use that version, or train "
                "a new run"
            )
        return from_dict(Config, content)


def read_settings(path: Path, cls: type[Settings]) -> Settings:
    """Reads a (nested) dataclass from a JSON file, or raises a CheckpointError."""
    with _readable(path):
        return from_dict(cls, json.loads(pathlib.Path(path).read_text()))


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, RecursionError) as error:  # RecursionError: deeply nested.
        raise CheckpointError(f"{path} cannot be used ({error}): restore the file") from error


def newest(game: str) -> pathlib.Path:
    """Returns the newest run of a game with a checkpoint; see `find_runs`."""
    for path in find_runs():
        with contextlib.suppress(CheckpointError):  # Not a usable run.
            if read_config(path).game == game:
                return path
    raise CheckpointError(
        f"there is no run of {game} in runs/, here or in a parent folder: train one with "
        f"azjax.train({game!r})"
    )


def find_runs() -> Iterator[pathlib.Path]:
    """Yields the runs in `runs/` that have a checkpoint, newest first.

    It searches the current folder and then its parents, for use in notebooks in subfolders.
    """
    here = pathlib.Path.cwd()
    for folder in (pathlib.Path(), *here.parents):
        paths = (folder / "runs").glob("*/config.json")
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
    """Holds a lock in a folder during a `with` block.

    The CheckpointError in other programs contains the holder and `does`, its activity.
    """
    fcntl = check_locks()
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


def check_locks() -> Any:
    """Returns the module `fcntl`, which Windows lacks."""
    try:
        import fcntl
    except ModuleNotFoundError as error:
        raise CheckpointError(
            "this system has no file locks (the module fcntl), which keep two programs from "
            "writing one run: use Linux or macOS; on Windows, use WSL"
        ) from error
    return fcntl


def _leads_to(path: pathlib.Path, file: TextIO) -> bool:
    """Whether an open file is still at its path, neither deleted nor moved."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
