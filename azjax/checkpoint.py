"""Run directories: configuration and checkpoints, on disk.

A run directory holds `config.json` and `checkpoints/ITERATION/`, each checkpoint complete:
parameters, optimiser, buffer, games in flight, key and counter. It is written beside its
final place and renamed when it is whole, so a killed run leaves no half of one; the digests in
its summary find out one that was damaged later, or is not of these settings. Only arrays and
JSON are read back: loading a stranger's checkpoint runs no code.

Several processes may train one network together, with a run directory that all of them see.
They all call the same functions; process 0 alone writes.
"""

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import re
import shutil
import tempfile
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from azjax.processes import in_all, in_first
from azjax.settings import flatten, from_dict
from azjax.summary import Summary, describe, digest_files, read_summary, seal
from azjax.train import (
    Config,
    TrainState,
    abstract_state,
    make_mesh,
    make_state,
)

Path = str | os.PathLike[str]
Settings = TypeVar("Settings")  # A dataclass of settings.


class CheckpointError(Exception):
    """A run directory or checkpoint cannot be used; the message says why and what would."""


class Restored(NamedTuple):
    """A checkpoint read back.

    Attributes:
      state: the whole training state.
      skipped: one sentence for each newer checkpoint that was damaged and passed over.
    """

    state: TrainState
    skipped: list[str]


class Checkpointer:
    """Writes the checkpoints of one run, keeping the newest few and the best.

    Use it as a context manager, so that the writer is closed on leaving.
    """

    def __init__(self, run_dir: Path, keep: int = 3):
        """Opens the run directory's checkpoints for writing.

        Args:
          run_dir: the run directory; it must hold a `config.json` (see `create_run`).
          keep: how many of the newest checkpoints to keep, beside the best one.

        Raises:
          CheckpointError: if `config.json` cannot be used.
        """
        logging.getLogger("absl").setLevel(logging.CRITICAL)  # What fails is raised as well.
        self._folder, self._keep = _checkpoints(run_dir), keep
        in_first(self._open)
        self._writer = _orbax()

    def _open(self) -> None:
        """Reads the settings, and deletes what a run that was killed while it wrote has left."""
        self._settings = dataclasses.asdict(read_config(self._folder.parent))
        for pattern in ("*.partial", "*.deleted"):
            for leftover in self._folder.glob(pattern):
                shutil.rmtree(leftover)

    def save(self, state: TrainState, score: float) -> None:
        """Writes a checkpoint named after `state.iteration`; nothing if it exists already.

        Of several processes, all must call it. Each copies the whole state to its host, and
        process 0 writes it, so that the files don't depend on how many there are, and all
        hear of a failure.

        Args:
          state: the state to write; it is on disk when this returns.
          score: higher is better; decides which checkpoint is the best.

        Raises:
          CheckpointError: if the disk is full, or the network's parameters are not finite;
            the checkpoints before are untouched.
        """
        folder = self._folder / str(int(state.iteration))
        plain = _whole(_to_plain(state))
        in_first(lambda: self._save(folder, plain, score))

    def _save(self, folder: pathlib.Path, plain: TrainState, score: float) -> None:
        """Writes one checkpoint, from this process alone."""
        if folder.exists():
            return
        if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(plain.learner)):
            raise CheckpointError(
                f"the network's parameters are NaN or infinite after iteration {folder.name}, "
                "so they were not saved: start a new run with a lower learning rate"
            )
        partial = self._folder / f"{folder.name}.partial"
        try:
            partial.mkdir(parents=True, exist_ok=True)
            with _spelled(partial) as here, _tidy_loops():
                self._writer.save(here / "state", args=ocp.args.StandardSave(plain))
            summary = Summary(
                iteration=int(plain.iteration),
                score=float(score),
                arrays=describe(plain),
                settings=self._settings,
                files=digest_files(partial / "state"),
            )
            write_json(partial / "summary.json", seal(summary))
            os.rename(partial, folder)
        except (OSError, ValueError) as error:  # Orbax has both for a disk that is full.
            raise CheckpointError(
                f"checkpoint {folder.name} could not be written ({_summarize(error)}): make room "
                f"on the disk, then go on with --resume --run-dir {self._folder.parent}"
            ) from error
        self._prune()

    def _prune(self) -> None:
        """Deletes all but the newest few and the best; of equals the newest is the best."""
        steps = _steps(self._folder)
        best = max(steps, key=lambda step: _score(self._folder / str(step)))
        for step in steps[self._keep :]:
            if step != best:
                doomed = self._folder / f"{step}.deleted"  # So that no half of one is left.
                os.rename(self._folder / str(step), doomed)
                shutil.rmtree(doomed)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._writer.close()


def create_run(run_dir: Path, config: Config, plan: dict | None = None) -> None:
    """Makes a new run directory with the configuration in it.

    Args:
      run_dir: the directory; it must not exist.
      config: everything that determines the run.
      plan: what else the program that trains wants to remember, as JSON.

    Raises:
      CheckpointError: if the directory exists (it is never erased), cannot be made, or is
        not seen by all processes.
    """
    path = pathlib.Path(run_dir)
    in_first(lambda: _create_run(path, config, plan or {}))
    in_all(lambda: _find(path))


def _find(path: pathlib.Path) -> None:
    """Refuses a run directory that was made on another host's own disk."""
    if not (path / "config.json").exists():
        raise CheckpointError(
            f"process {jax.process_index()} does not see {path}, which process 0 made: use a "
            "--run-dir on a disk that all processes share"
        )


def _create_run(path: pathlib.Path, config: Config, plan: dict) -> None:
    if path.exists():
        raise CheckpointError(
            f"{path} exists already: add --resume to go on with that run, or choose another "
            "--run-dir"
        )
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.mkdir(parents=True, exist_ok=True)
        write_json(temporary / "config.json", dataclasses.asdict(config))
        write_json(temporary / "plan.json", plan)
        os.rename(temporary, path)
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be made ({error.strerror}): choose another --run-dir"
        ) from error


def write_json(path: Path, content: Any) -> None:
    """Writes JSON so that a crash leaves either the old file or the new one."""
    temporary = pathlib.Path(f"{path}.tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n")
    os.replace(temporary, path)


def read_config(run_dir: Path) -> Config:
    """Reads the configuration of a run.

    Raises:
      CheckpointError: if there is no run, or its configuration cannot be understood, or is
        not the one that its checkpoints were written with.
    """
    path = pathlib.Path(run_dir) / "config.json"
    if not path.exists():
        raise CheckpointError(
            f"{run_dir} is not a run directory (no config.json in it): give the folder that "
            "a training run made, such as runs/tic_tac_toe-default-1"
        )
    config = read_settings(path, Config)
    _check_settings(run_dir, config)
    return config


def _check_settings(run_dir: Path, config: Config) -> None:
    """Refuses settings that a sound checkpoint was not written with."""
    folder, path = _checkpoints(run_dir), pathlib.Path(run_dir) / "config.json"
    for step in _steps(folder):
        try:
            content = read_summary(folder / str(step)).settings
        except ValueError:
            continue  # Who restores it hears of the damage.
        pairs = zip(flatten(config), flatten(_understand(content, step)), strict=True)
        differing = [(name, here, there) for (name, here), (_, there) in pairs if here != there]
        for name, here, there in differing[:1]:
            raise CheckpointError(
                f"{name} is {here!r} in {path}, and checkpoint {step} was written with "
                f"{there!r}: restore the file"
            )


def _understand(content: dict, step: int) -> Config:
    """Reads the settings that a checkpoint was written with."""
    try:
        return from_dict(Config, content)
    except ValueError as error:
        raise CheckpointError(
            f"checkpoint {step} was written with settings that this version does not have "
            f"({error}): use the version that wrote it"
        ) from error


def read_settings(path: Path, cls: type[Settings]) -> Settings:
    """Reads a (nested) dataclass from a JSON file; entries left out have their defaults.

    Raises:
      CheckpointError: if the file is no JSON, or an entry is unknown or of a wrong type.
    """
    try:
        return from_dict(cls, json.loads(pathlib.Path(path).read_text()))
    except (ValueError, OSError, RecursionError) as error:  # The last if it is nested deeply.
        raise CheckpointError(f"{path} cannot be used ({error}): restore the file") from error


def iterations(run_dir: Path) -> list[int]:
    """Returns the iterations that a run has a checkpoint of, oldest first."""
    return _steps(_checkpoints(run_dir))[::-1]


def restore(
    run_dir: Path,
    config: Config,
    mesh: Mesh | None = None,
    set_aside: bool = False,
    step: int | None = None,
) -> Restored:
    """Reads the newest sound checkpoint of a run; its initial state if it has none yet.

    Args:
      run_dir: the run directory.
      config: the run's configuration, from `read_config`.
      mesh: the devices to put the state on; all local devices by default.
      set_aside: move damaged checkpoints to `damaged/`, so that the run can write its own.
      step: read the checkpoint of this iteration and no other.

    Raises:
      CheckpointError: if there are checkpoints but none is sound, or not the one asked for, or
        one was written with other settings.
    """
    folder = _checkpoints(run_dir)
    in_all(lambda: _check_settings(run_dir, config))
    mesh = make_mesh() if mesh is None else mesh
    if step is not None:
        return _restore_one(run_dir, config, mesh, step)
    steps = _steps(folder)
    if not steps:
        return Restored(make_state(config, mesh), [])
    target, reasons = _abstract(config, mesh), {}
    for step in steps:
        try:
            state = in_all(lambda: _read(folder / str(step), target))
        except Exception as error:  # Whatever is wrong with this one, an older one may do.
            reasons[step] = _summarize(error)
            continue
        if set_aside:
            in_first(lambda: _set_aside(pathlib.Path(run_dir), list(reasons)))
        said = [f"checkpoint {n} in {run_dir} is damaged ({why})" for n, why in reasons.items()]
        return Restored(state, said)
    listed = "; ".join(f"{step}: {why}" for step, why in reasons.items())
    raise CheckpointError(
        f"no checkpoint in {run_dir} is sound ({listed}): restore the folder from a copy, or "
        "start a new run in another --run-dir"
    )


def _restore_one(run_dir: Path, config: Config, mesh: Mesh, step: int) -> Restored:
    """Reads the checkpoint of one iteration, or says which others there are."""
    folder = _checkpoints(run_dir) / str(step)
    others = ", ".join(str(other) for other in iterations(run_dir) if other != step)
    advice = f"use one of {others}" if others else "there is no other one, so train on"
    if not folder.exists():
        raise CheckpointError(f"{run_dir} has no checkpoint {step}: {advice}")
    try:
        return Restored(in_all(lambda: _read(folder, _abstract(config, mesh))), [])
    except Exception as error:
        raise CheckpointError(
            f"checkpoint {step} in {run_dir} is damaged ({_summarize(error)}): {advice}"
        ) from error


def _summarize(error: Exception) -> str:
    """The first line of an error's message, cut short."""
    lines = str(error).split("\n")
    return textwrap.shorten(lines[0] or type(error).__name__, 200, placeholder="…")


def _steps(folder: pathlib.Path) -> list[int]:
    """The iterations that have a checkpoint in a folder, newest first."""
    names = (path.name for path in folder.glob("*"))
    return sorted((int(n) for n in names if re.fullmatch("0|[1-9][0-9]*", n)), reverse=True)


def _set_aside(run_dir: pathlib.Path, steps: list[int]) -> None:
    """Moves checkpoints to `damaged/`, under names that are free."""
    folder = run_dir / "damaged"
    for step in steps:
        folder.mkdir(exist_ok=True)
        number = 1
        while (target := folder / f"{step}-{number}").exists():
            number += 1
        os.rename(_checkpoints(run_dir) / str(step), target)


def _read(folder: pathlib.Path, target: TrainState) -> TrainState:
    """Reads one checkpoint, once its files and arrays are known to be what they should be."""
    summary, found = read_summary(folder), digest_files(folder / "state")
    expected = summary.files
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            what = "was changed" if name in found else "is missing"
            raise ValueError(f"its file state/{name} {what}")
    if summary.arrays != describe(target):
        raise ValueError("its arrays are not those that this version makes of its settings")
    with _spelled(folder) as here, _orbax() as reader:
        return _from_plain(reader.restore(here / "state", args=ocp.args.StandardRestore(target)))


def _score(folder: pathlib.Path) -> float:
    """The score that a checkpoint was saved with; the lowest if it cannot be read."""
    try:
        return read_summary(folder).score
    except ValueError:
        return -np.inf


def _checkpoints(run_dir: Path) -> pathlib.Path:
    return pathlib.Path(run_dir).resolve() / "checkpoints"


def _orbax() -> ocp.Checkpointer:
    """A reader and writer that waits for no other process, so that one may fail alone."""
    options = ocp.options.MultiprocessingOptions()
    if jax.process_count() > 1:
        me = jax.process_index()
        options = ocp.options.MultiprocessingOptions(
            primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"process-{me}"
        )
    handler = ocp.StandardCheckpointHandler(multiprocessing_options=options)
    return ocp.Checkpointer(handler, multiprocessing_options=options)


@contextlib.contextmanager
def _spelled(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a name of a folder that orbax can spell: UTF-8, by a link where its own is not."""
    with contextlib.ExitStack() as stack:
        try:
            str(folder).encode()
        except UnicodeEncodeError:
            links = stack.enter_context(tempfile.TemporaryDirectory())
            link = pathlib.Path(links) / "link"
            link.symlink_to(folder)
            folder = link
        yield folder


class _TidyLoop(asyncio.SelectorEventLoop):
    """An event loop that ends its tasks before it closes, as `asyncio.run` would."""

    def close(self):
        if not self.is_closed():
            self.run_until_complete(self._end_tasks())
        super().close()

    async def _end_tasks(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@contextlib.contextmanager
def _tidy_loops() -> Iterator[None]:
    """Gives orbax such loops: when one write fails, it closes its own under all the others.

    Each of those would print a traceback when it has finished or failed as well.
    """
    original = asyncio.new_event_loop
    asyncio.new_event_loop = _TidyLoop
    yield
    asyncio.new_event_loop = original  # Not after a failure, when orbax's threads are still busy.


def _whole(plain: TrainState) -> TrainState:
    """Copies a state to the host where a part of it lies in other processes."""

    def copy(leaf):
        if leaf.is_fully_addressable:
            return leaf
        if leaf.is_fully_replicated:
            return np.asarray(leaf.addressable_data(0))
        return multihost_utils.process_allgather(leaf, tiled=True)

    return jax.tree.map(copy, plain)


def _to_plain(state: TrainState) -> TrainState:
    """Replaces the typed key by its data, which orbax stores as an ordinary array."""
    return dataclasses.replace(state, key=jax.random.key_data(state.key))


def _from_plain(state: TrainState) -> TrainState:
    return dataclasses.replace(state, key=jax.random.wrap_key_data(state.key))


def _abstract(config: Config, mesh: Mesh) -> TrainState:
    """The shapes, types and places of a plain state."""
    state = abstract_state(config, mesh)
    data = jax.eval_shape(jax.random.key_data, state.key)
    plain = jax.ShapeDtypeStruct(data.shape, data.dtype, sharding=state.key.sharding)
    return dataclasses.replace(state, key=plain)
