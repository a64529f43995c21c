"""Run directories: the settings of a run, in `config.json`, next to its checkpoints.

Reading a run directory never imports or runs code that it names, so directories from untrusted
sources can be read. The caller passes a custom game or network to `config.make_parts`.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import shutil
from collections.abc import Iterator
from typing import Any, TypeVar

import jax

from azjax._files import Path, temporary, write_json
from azjax._processes import gather, in_all, in_first
from azjax._settings import from_dict, list_changes
from azjax.runs.config import Config
from azjax.runs.storage import read_summary

FORMAT = 3  # Version of run directories; others cannot be read.
_ROOM = 128  # Maximum length of a path within a run directory.
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
    path = pathlib.Path(run_dir)

    def create():
        nonlocal path
        path = _create_run(path, config, plan or {}, numbered)

    def check_visible():
        if not (path / "config.json").exists():
            raise CheckpointError(
                f"process {jax.process_index()} cannot find {path}, which process 0 created: use a "
                "folder on a disk that all processes share"
            )

    in_first(create)
    if numbered:  # Process 0 chose the number.
        path = path.with_name(gather(path.name)[0])
    in_all(check_visible)
    return path


def first_free(prefix: Path) -> pathlib.Path:
    """Returns the first free path of the form `PREFIX-NUMBER`."""
    prefix = pathlib.Path(prefix)
    paths = (prefix.with_name(f"{prefix.name}-{number}") for number in itertools.count(1))
    return next(path for path in paths if not os.path.lexists(path))


def check_free(run_dir: Path, *, numbered: bool = False) -> None:
    """Checks that `create_run` can create a run directory, without leaving anything there."""
    path = pathlib.Path(run_dir)
    if not numbered:
        _check_unused(path)
    beside = temporary(path)
    absent = [folder for folder in (beside, *beside.parents) if not os.path.exists(folder)]
    try:
        with contextlib.suppress(FileNotFoundError):
            os.lstat(os.path.join(os.path.realpath(path), "x" * _ROOM))  # Raises if it is too long.
        beside.mkdir(parents=True)
    except OSError as error:
        raise _cannot_be_made(path, error) from error
    finally:
        for folder in absent:
            with contextlib.suppress(OSError):  # Not created, or used by another program.
                folder.rmdir()


def _check_unused(path: pathlib.Path) -> None:
    if os.path.islink(path) and not os.path.exists(path):
        raise CheckpointError(
            f"{path} is a broken link to {os.readlink(path)}: remove it, or choose another "
            "`run_dir`"
        )
    if not os.path.exists(os.path.realpath(path)):  # Resolves paths such as `missing/..` as well.
        return
    # A run appears together with its configuration. Looked for in this order, a run that another
    # program creates between the two is seen as one.
    if os.path.isfile(path / "config.json"):
        raise CheckpointError(
            f"{path} exists already: continue that run with `resume=True`, or choose another "
            "`run_dir`"
        )
    raise CheckpointError(
        f"{path} exists already and is not a run directory: choose another `run_dir`"
    )


def _create_run(path: pathlib.Path, config: Config, plan: dict, numbered: bool) -> pathlib.Path:
    check_free(path, numbered=numbered)
    beside = temporary(path)
    try:
        checkpoints(beside).mkdir(parents=True)
        content = {"format": FORMAT, **dataclasses.asdict(config)}
        write_json(beside / "config.json", content)
        write_json(beside / "plan.json", plan)
        while not _move(beside, free := first_free(path) if numbered else path):
            check_free(path, numbered=numbered)
    except OSError as error:
        raise _cannot_be_made(path, error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return free


def _move(folder: pathlib.Path, path: pathlib.Path) -> bool:
    """Returns False if another program has taken the path meanwhile."""
    try:
        os.rename(folder, path)
    except OSError:
        if not os.path.lexists(path):
            raise
        return False
    return True


def _cannot_be_made(path: pathlib.Path, error: OSError) -> CheckpointError:
    return CheckpointError(f"{path} cannot be created ({error.strerror}): choose another `run_dir`")


def read_config(run_dir: Path) -> Config:
    """Reads the configuration of a run, and compares it with that of its checkpoints."""
    path = pathlib.Path(run_dir) / "config.json"
    if not path.exists():
        raise CheckpointError(
            f"{run_dir} is not a run directory (no config.json in it): use the folder of a run, "
            "such as runs/tic_tac_toe-default-1"
        )
    content = _read_json(path)
    if isinstance(content, dict) and content.pop("format", None) != FORMAT:
        raise CheckpointError(
            f"{run_dir} has the format of another version of azjax: use that version, or train a "
            "new run"
        )
    config = _from_json(path, content, Config)
    _check_settings(run_dir, config)
    return config


def _check_settings(run_dir: Path, config: Config) -> None:
    """Raises a CheckpointError if the newest sound checkpoint has other settings."""
    folder, path = checkpoints(run_dir), pathlib.Path(run_dir) / "config.json"
    for step in reversed(iterations(run_dir)):
        try:
            content = read_summary(folder / str(step)).settings
        except ValueError:
            continue  # Restoring it reports the damage.
        written = _from_json(folder / str(step) / "summary.json", content, Config)
        for name, here, there in list_changes(config, written)[:1]:
            raise CheckpointError(
                f"{name} is {here!r} in {path}, and checkpoint {step} was written with "
                f"{there!r}: restore the file"
            )


def read_settings(path: Path, cls: type[Settings]) -> Settings:
    """Reads a (nested) dataclass from a JSON file, or raises a CheckpointError."""
    return _from_json(path, _read_json(path), cls)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (ValueError, OSError, RecursionError) as error:  # RecursionError: deeply nested.
        raise CheckpointError(f"{path} cannot be used ({error}): restore the file") from error


def _from_json(path: Path, content: Any, cls: type[Settings]) -> Settings:
    try:
        return from_dict(cls, content)
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be used ({error}): restore the file") from error


def check_links(folder: Path) -> None:
    """Checks that a folder contains no link: programs write and delete only inside the folder."""
    for path in sorted(pathlib.Path(folder).glob("*")):
        if path.is_symlink():
            raise CheckpointError(
                f"{path} is a link to {os.readlink(path)}, and azjax writes only inside the run "
                "directory: put a copy in its place, or move the run and link its whole directory"
            )


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
