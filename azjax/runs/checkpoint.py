"""Checkpoints of a run: complete when they appear, verified when they are read.

`checkpoints/ITERATION/` in a run directory has `player/`, the averaged parameters, and `state/`,
the rest of a `TrainState`; see `azjax.runs.storage`. A checkpoint gets its name once it is
complete, so a killed run leaves no partial one, and digests detect later damage. Only arrays and
JSON are read: loading a stranger's checkpoint runs no code.

Several processes may train one network together, with a run directory that all of them see. They
all call `save` and `restore` alike. Each writes and reads the shards of its own devices, so the
replay buffer need not fit one host; a checkpoint may be read by more or fewer processes.
"""

import collections
import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import textwrap
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, SingleDeviceSharding

from azjax._files import Path
from azjax._processes import OtherProcessError, any_of, gather, in_all, in_first
from azjax.networks import Network
from azjax.runs import storage
from azjax.runs.directory import CheckpointError, checkpoints, iterations, read_config
from azjax.training.parts import Parts
from azjax.training.sharding import abstract_state, make_mesh, one_copy
from azjax.training.step import TrainState

_PLAYER, _REST = "player", "state"  # Folders of a checkpoint.


def save(run_dir: Path, state: TrainState, score: float, keep: int = 3) -> None:
    """Writes a checkpoint named after `state.iteration`; nothing if it exists already.

    Args:
      run_dir: the run directory; it must have a `config.json` (see `runs.create_run`).
      state: the state to write; it is on disk when this returns.
      score: higher is better; decides which checkpoint is the best.
      keep: how many of the newest checkpoints to keep, in addition to the best one.

    Raises:
      CheckpointError: if the disk is full, `config.json` cannot be used, or the network's
        parameters are not finite; the earlier checkpoints are untouched.
      OtherProcessError: if another process cannot use `config.json`.
    """
    folder, iteration = checkpoints(run_dir), int(state.iteration)
    config = in_all(lambda: read_config(run_dir))
    in_first(lambda: _clear(folder))
    if any(any_of((folder / str(iteration)).exists())):
        return
    learner = one_copy(jax.tree.map(storage.plain, state.learner))
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(learner)):
        raise CheckpointError(
            f"the network's parameters are NaN or infinite after iteration {iteration}, so they "
            "were not saved: start a new run with a lower learning rate"
        )
    trees, partial = _divide(state), folder / f"{iteration}.partial"
    described = {part: storage.describe(tree) for part, tree in trees.items()}
    summary = storage.Summary(iteration, float(score), described, dataclasses.asdict(config), {})

    def write():
        return [storage.write_arrays(partial / part, tree) for part, tree in trees.items()]

    try:
        for written in gather(json.dumps(in_all(write))):
            for digests in json.loads(written):
                summary.files.update(digests)
        in_first(lambda: _complete(partial, summary))
    except (OSError, OtherProcessError) as error:
        raise CheckpointError(
            f"checkpoint {iteration} could not be written ({_summarize(error)}): make room on the "
            f"disk, then resume the run in {run_dir}"
        ) from error
    in_first(lambda: _prune(folder, keep))


def _complete(partial: pathlib.Path, summary: storage.Summary) -> None:
    """Gives a checkpoint its name, after all processes have written their arrays."""
    storage.write_summary(partial, summary)
    os.rename(partial, partial.with_suffix(""))


def _clear(folder: pathlib.Path) -> None:
    """Deletes what a killed run left."""
    for pattern in ("*.partial", "*.deleted"):
        for leftover in folder.glob(pattern):
            shutil.rmtree(leftover)


def _prune(folder: pathlib.Path, keep: int) -> None:
    """Deletes all but the newest few and the best; of equals the newest is the best."""

    def score(step):
        try:
            return storage.read_summary(folder / str(step)).score
        except ValueError:
            return -np.inf

    steps = iterations(folder.parent)[::-1]
    best = max(steps, key=score)
    for step in steps[keep:]:
        if step != best:
            os.rename(folder / str(step), folder / f"{step}.deleted")  # Never a partial one.
    _clear(folder)


class Restored(NamedTuple):
    """A checkpoint that was read.

    Attributes:
      state: the whole training state; None if the run has no checkpoint yet.
      skipped: one sentence for each newer checkpoint that is damaged.
    """

    state: TrainState | None
    skipped: list[str]


def restore(
    run_dir: Path, parts: Parts, mesh: Mesh | None = None, set_aside: bool = False
) -> Restored:
    """Reads the newest sound checkpoint of a run.

    Keys are of the implementation that the run draws with, whatever JAX's default is now.

    Args:
      run_dir: the run directory.
      parts: the run's.
      mesh: the devices to put the state on; all devices by default.
      set_aside: move damaged checkpoints to `damaged/`, so that the run can write its own.

    Raises:
      CheckpointError: if there are checkpoints but none is sound.
      ValueError: if the parts contradict each other or the number of devices.
    """
    if not in_all(lambda: iterations(run_dir)):
        return Restored(None, [])
    target = _divide(abstract_state(parts, make_mesh() if mesh is None else mesh))
    trees, _, damage = _newest_sound(run_dir, target, together=True)
    if set_aside:
        in_first(lambda: _set_aside(pathlib.Path(run_dir), damage))
    return Restored(_join(trees), [*damage.values()])


def restore_player(
    run_dir: Path, network: Network, step: int | None = None
) -> tuple[Any, int, list[str]]:
    """Reads the averaged parameters of the newest sound checkpoint, onto one device.

    One of several processes may call this alone.

    Args:
      run_dir: the run directory.
      network: the run's.
      step: read the checkpoint of this iteration and no other.

    Returns:
      The averaged variables, the iteration, and `skipped` as in `Restored`.

    Raises:
      CheckpointError: if no checkpoint is sound, or not the requested one.
    """
    here = SingleDeviceSharding(jax.local_devices()[0])
    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here),
        jax.eval_shape(network.init, jax.random.key(0)),
    )
    if step is None and not iterations(run_dir):
        raise CheckpointError(f"{run_dir} has no checkpoint yet: train on")
    trees, step, damage = _newest_sound(run_dir, {_PLAYER: target}, step=step)
    return trees[_PLAYER], step, [*damage.values()]


def _newest_sound(
    run_dir: Path, target: dict[str, Any], together: bool = False, step: int | None = None
) -> tuple[dict[str, Any], int, dict[int, str]]:
    """Reads the newest sound checkpoint.

    Returns:
      Its trees, its iteration, and one sentence for each newer checkpoint, which is damaged.
    """
    known, damage = iterations(run_dir), {}
    for number in reversed(known) if step is None else [step]:
        try:
            return _read(checkpoints(run_dir) / str(number), target, together), number, damage
        except Exception as error:  # Whatever is wrong with this one, an older one may do.
            why = _summarize(error)
            damage[number] = f"checkpoint {number} in {run_dir} is damaged ({why})"
    if step is None:
        raise CheckpointError(
            f"no checkpoint in {run_dir} is sound ({'; '.join(damage.values())}): restore the "
            "folder from a copy, or start a new run"
        )
    others = ", ".join(str(other) for other in known if other != step)
    advice = f"use one of {others}" if others else "there is no other one, so train on"
    if step not in known:
        raise CheckpointError(f"{run_dir} has no checkpoint {step}: {advice}")
    raise CheckpointError(f"{damage[step]}: {advice}")


def _read(folder: pathlib.Path, target: dict[str, Any], together: bool) -> dict[str, Any]:
    """Reads trees of a checkpoint if they are sound; all processes `together` or one alone."""

    def check(share=slice(None)):
        summary = storage.read_summary(folder)
        storage.check_files(folder, summary.files, target, share)
        written = collections.defaultdict(dict, summary.arrays)
        return {part: storage.fit_keys(tree, written[part]) for part, tree in target.items()}

    def read(fitted):
        return {part: storage.read_arrays(folder / part, tree) for part, tree in fitted.items()}

    if not together:
        return read(check())
    fitted = in_all(lambda: check(slice(jax.process_index(), None, jax.process_count())))
    return in_all(lambda: read(fitted))


def _summarize(error: Exception) -> str:
    """Returns the first line of an error's message, cut short."""
    lines = str(error).split("\n")
    return textwrap.shorten(lines[0] or type(error).__name__, 200, placeholder="…")


def _set_aside(run_dir: pathlib.Path, steps: dict[int, str]) -> None:
    """Moves checkpoints to `damaged/`, under names that are free."""
    folder = run_dir / "damaged"
    for step in steps:
        folder.mkdir(exist_ok=True)
        names = (folder / f"{step}-{number}" for number in itertools.count(1))
        free = next(name for name in names if not name.exists())
        os.rename(checkpoints(run_dir) / str(step), free)


def _divide(state: TrainState) -> dict[str, Any]:
    """Divides a state into what plays and the rest, each to be read alone."""
    rest = dataclasses.replace(state, learner=state.learner._replace(ema_params=()))
    return {_PLAYER: state.learner.ema_params, _REST: rest}


def _join(trees: dict[str, Any]) -> TrainState:
    """Joins a divided state."""
    rest = trees[_REST]
    return dataclasses.replace(rest, learner=rest.learner._replace(ema_params=trees[_PLAYER]))
