"""Checkpoints of a run: written atomically, and verified with digests when they are read.

`checkpoints/ITERATION/` in a run directory contains `player/`, the averaged variables, and
`state/`, the rest of a `TrainState`; see `azjax.runs.storage`. Loading reads only arrays and JSON,
and never runs code. A checkpoint is *sound* if all its files are present and unchanged.

With several processes, all call `save` and `restore`. Each writes and reads the shards of its
devices, so the replay buffer can be larger than the memory of one host. The number of processes can
change between sessions.
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
    """Writes a checkpoint named after `state.iteration`, unless it exists.

    Args:
      run_dir: the run directory, from `runs.create_run`.
      state: the state to write.
      score: score of the checkpoint; higher is better.
      keep: number of newest checkpoints to keep, in addition to the best one.

    Raises:
      CheckpointError: if the disk is full, `config.json` cannot be used, or the network has
        parameters that are not finite; earlier checkpoints are kept.
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

    def complete():
        storage.write_summary(partial, summary)
        os.rename(partial, partial.with_suffix(""))

    try:
        for written in gather(json.dumps(in_all(write))):
            for digests in json.loads(written):
                summary.files.update(digests)
        in_first(complete)
    except (OSError, OtherProcessError) as error:
        raise CheckpointError(
            f"checkpoint {iteration} could not be written ({_summarize(error)}): make room on the "
            f"disk, then resume the run in {run_dir}"
        ) from error
    in_first(lambda: _prune(folder, keep))


def _clear(folder: pathlib.Path) -> None:
    """Deletes the leftovers of a killed run."""
    for pattern in ("*.partial", "*.deleted"):
        for leftover in folder.glob(pattern):
            shutil.rmtree(leftover)


def _prune(folder: pathlib.Path, keep: int) -> None:
    """Deletes all checkpoints but the newest and the best; of equal scores the newest is best."""

    def score(step):
        try:
            return storage.read_summary(folder / str(step)).score
        except ValueError:
            return -np.inf

    steps = iterations(folder.parent)[::-1]
    best = max(steps, key=score)
    for step in steps[keep:]:
        if step != best:
            os.rename(folder / str(step), folder / f"{step}.deleted")  # Atomically.
    _clear(folder)


class Restored(NamedTuple):
    """The result of `restore`.

    Attributes:
      state: the complete training state, or None without a checkpoint.
      skipped: one sentence for each newer checkpoint that is damaged.
    """

    state: TrainState | None
    skipped: list[str]


def restore(
    run_dir: Path, parts: Parts, mesh: Mesh | None = None, set_aside: bool = False
) -> Restored:
    """Reads the newest sound checkpoint of a run.

    Typed keys keep the PRNG implementation with which they were saved.

    Args:
      run_dir: the run directory.
      parts: the parts of the run.
      mesh: the devices to place the state on; all devices by default.
      set_aside: whether to move damaged checkpoints to `damaged/`, so that they can be replaced.

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
    rest = trees[_REST]
    learner = rest.learner._replace(ema_params=trees[_PLAYER])
    return Restored(dataclasses.replace(rest, learner=learner), [*damage.values()])


def restore_player(
    run_dir: Path, network: Network, step: int | None = None
) -> tuple[Any, int, list[str]]:
    """Reads the averaged variables of the newest sound checkpoint, onto one device.

    A single process can call this alone.

    Args:
      run_dir: the run directory.
      network: the network of the run.
      step: iteration of the checkpoint; None: the newest sound one.

    Returns:
      The averaged variables, the iteration, and `skipped` as in `Restored`.

    Raises:
      CheckpointError: if no checkpoint is sound, or the requested one is missing or damaged.
    """
    here = SingleDeviceSharding(jax.local_devices()[0])
    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here),
        jax.eval_shape(network.init, jax.random.key(0)),
    )
    if step is None and not iterations(run_dir):
        raise CheckpointError(f"{run_dir} has no checkpoint yet: resume the run")
    trees, step, damage = _newest_sound(run_dir, {_PLAYER: target}, step=step)
    return trees[_PLAYER], step, [*damage.values()]


def _newest_sound(
    run_dir: Path, target: dict[str, Any], together: bool = False, step: int | None = None
) -> tuple[dict[str, Any], int, dict[int, str]]:
    """Returns trees and iteration of the newest sound checkpoint, and the damage of newer ones."""
    available, damage = iterations(run_dir), {}
    for number in reversed(available) if step is None else [step]:
        try:
            return _read(checkpoints(run_dir) / str(number), target, together), number, damage
        except Exception as error:  # An older one may be sound.
            why = _summarize(error)
            damage[number] = f"checkpoint {number} in {run_dir} is damaged ({why})"
    if step is None:
        raise CheckpointError(
            f"no checkpoint in {run_dir} is sound ({'; '.join(damage.values())}): restore the "
            "folder from a copy, or start a new run"
        )
    others = ", ".join(str(other) for other in available if other != step)
    advice = f"use one of {others}" if others else "resume the run to write another"
    if step not in available:
        raise CheckpointError(f"{run_dir} has no checkpoint {step}: {advice}")
    raise CheckpointError(f"{damage[step]}: {advice}")


def _read(folder: pathlib.Path, target: dict[str, Any], together: bool) -> dict[str, Any]:
    """Checks and reads trees of a checkpoint, in all processes `together` or in this one alone."""

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
    """Returns the first line of an error message, shortened."""
    lines = str(error).split("\n")
    return textwrap.shorten(lines[0] or type(error).__name__, 200, placeholder="…")


def _set_aside(run_dir: pathlib.Path, steps: dict[int, str]) -> None:
    """Moves checkpoints to unused names in `damaged/`."""
    folder = run_dir / "damaged"
    for step in steps:
        folder.mkdir(exist_ok=True)
        names = (folder / f"{step}-{number}" for number in itertools.count(1))
        free = next(name for name in names if not name.exists())
        os.rename(checkpoints(run_dir) / str(step), free)


def _divide(state: TrainState) -> dict[str, Any]:
    """Divides a state into the averaged variables and the rest, which can be read separately."""
    rest = dataclasses.replace(state, learner=state.learner._replace(ema_params=()))
    return {_PLAYER: state.learner.ema_params, _REST: rest}
