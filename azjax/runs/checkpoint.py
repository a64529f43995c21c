"""Checkpoints of a run, written whole, checked when they are read.

`checkpoints/ITERATION/` in a run directory holds `player/`, the averaged parameters, and
`state/`, all the rest of a `TrainState`. It is renamed when it is whole, so a killed run leaves
no half of one; the digests in its summary find out one that was damaged later. Only arrays and
JSON are read back: loading a stranger's checkpoint runs no code.

Several processes may train one network together, with a run directory that all of them see.
They all call the same functions; process 0 alone writes.
"""

import dataclasses
import os
import pathlib
import shutil
import textwrap
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, SingleDeviceSharding

from azjax.runs import arrays
from azjax import runs
from azjax._files import Path, write_json
from azjax.networks import Network
from azjax._processes import in_all, in_first
from azjax.runs.directory import CheckpointError
from azjax.runs.summary import (
    Summary,
    describe,
    digest_files,
    name_keys,
    read_summary,
    seal,
    with_impls,
)
from azjax.training.parts import Parts
from azjax.training.sharding import abstract_state, make_mesh
from azjax.training.step import TrainState

_PLAYER, _REST = "player", "state"  # Folders of a checkpoint.


def save(run_dir: Path, state: TrainState, score: float, keep: int = 3) -> None:
    """Writes a checkpoint named after `state.iteration`; nothing if it exists already.

    Args:
      run_dir: the run directory; it must hold a `config.json` (see `runs.create_run`).
      state: the state to write; it is on disk when this returns.
      score: higher is better; decides which checkpoint is the best.
      keep: how many of the newest checkpoints to keep, beside the best one.

    Raises:
      CheckpointError: if the disk is full, `config.json` cannot be used, or the network's
        parameters are not finite; the checkpoints before are untouched.
    """
    described = {name: describe(tree) for name, tree in _divide(state).items()}
    plain = _whole(jax.tree.map(arrays.plain, state))
    in_first(lambda: _save(runs.checkpoints(run_dir), plain, described, score, keep))


def _save(
    folder: pathlib.Path, plain: TrainState, described: dict, score: float, keep: int
) -> None:
    """Writes one checkpoint, from this process alone, and deletes what is left over."""
    settings = dataclasses.asdict(runs.read_config(folder.parent))
    for pattern in ("*.partial", "*.deleted"):  # Of a run that was killed.
        for leftover in folder.glob(pattern):
            shutil.rmtree(leftover)
    iteration = int(plain.iteration)
    if (folder / str(iteration)).exists():
        return
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(plain.learner)):
        raise CheckpointError(
            f"the network's parameters are NaN or infinite after iteration {iteration}, so they "
            "were not saved: start a new run with a lower learning rate"
        )
    trees, partial = _divide(plain), folder / f"{iteration}.partial"
    try:
        partial.mkdir(parents=True)
        for name, tree in trees.items():
            arrays.write(partial / name, tree)
        summary = Summary(iteration, float(score), described, settings, digest_files(partial))
        write_json(partial / "summary.json", seal(summary))
        os.rename(partial, folder / str(iteration))
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {iteration} could not be written ({_summarize(error)}): make room on the "
            f"disk, then go on with --resume --run-dir {folder.parent}"
        ) from error
    _prune(folder, keep)


def _prune(folder: pathlib.Path, keep: int) -> None:
    """Deletes all but the newest few and the best; of equals the newest is the best."""

    def score(step):
        try:
            return read_summary(folder / str(step)).score
        except ValueError:
            return -np.inf

    steps = runs.iterations(folder.parent)[::-1]
    best = max(steps, key=score)
    for step in steps[keep:]:
        if step != best:
            doomed = folder / f"{step}.deleted"  # So that no half of one is left.
            os.rename(folder / str(step), doomed)
            shutil.rmtree(doomed)


class Restored(NamedTuple):
    """A checkpoint read back.

    Attributes:
      state: the whole training state; None if the run has no checkpoint yet.
      skipped: one sentence for each newer checkpoint that was damaged and passed over.
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
      mesh: the devices to put the state on; all local devices by default.
      set_aside: move damaged checkpoints to `damaged/`, so that the run can write its own.

    Raises:
      CheckpointError: if there are checkpoints but none is sound.
      ValueError: if the parts contradict each other or the number of devices.
    """
    if not in_all(lambda: runs.iterations(run_dir)):
        return Restored(None, [])
    target = _divide(abstract_state(parts, make_mesh() if mesh is None else mesh))
    found, _, skipped = _newest_sound(run_dir, target, set_aside)
    return Restored(_join(found), skipped)


def restore_player(
    run_dir: Path, network: Network, step: int | None = None
) -> tuple[Any, int, list[str]]:
    """Reads the averaged parameters of the newest sound checkpoint, onto one device.

    Args:
      run_dir: the run directory.
      network: the run's.
      step: read the checkpoint of this iteration and no other.

    Returns:
      The averaged variables, the iteration, and `skipped` as in `Restored`.

    Raises:
      CheckpointError: if no checkpoint is sound, or not the one asked for.
    """
    here = SingleDeviceSharding(jax.local_devices()[0])
    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here),
        jax.eval_shape(network.init, jax.random.key(0)),
    )
    if step is None and not runs.iterations(run_dir):
        raise CheckpointError(f"{run_dir} has no checkpoint yet: train on")
    found, step, skipped = _newest_sound(run_dir, {_PLAYER: target}, step=step)
    return found[_PLAYER], step, skipped


def _newest_sound(
    run_dir: Path, target: dict[str, Any], set_aside: bool = False, step: int | None = None
) -> tuple[dict[str, Any], int, list[str]]:
    """Reads the newest sound checkpoint; returns its trees, its iteration and what is damaged."""
    folder, known, reasons = runs.checkpoints(run_dir), runs.iterations(run_dir), {}
    for number in reversed(known) if step is None else [step]:
        try:
            found = in_all(lambda: _read(folder / str(number), target))
        except Exception as error:  # Whatever is wrong with this one, an older one may do.
            reasons[number] = _summarize(error)
            continue
        if set_aside:
            in_first(lambda: _set_aside(pathlib.Path(run_dir), list(reasons)))
        said = [f"checkpoint {n} in {run_dir} is damaged ({why})" for n, why in reasons.items()]
        return found, number, said
    if step is None:
        listed = "; ".join(f"{number}: {why}" for number, why in reasons.items())
        raise CheckpointError(
            f"no checkpoint in {run_dir} is sound ({listed}): restore the folder from a copy, or "
            "start a new run in another --run-dir"
        )
    others = ", ".join(str(other) for other in known if other != step)
    advice = f"use one of {others}" if others else "there is no other one, so train on"
    if step not in known:
        raise CheckpointError(f"{run_dir} has no checkpoint {step}: {advice}")
    raise CheckpointError(f"checkpoint {step} in {run_dir} is damaged ({reasons[step]}): {advice}")


def _read(folder: pathlib.Path, target: dict[str, Any]) -> dict[str, Any]:
    """Reads trees of a checkpoint, once their files and arrays are known to be sound."""
    summary, written = read_summary(folder), {}
    for part, tree in target.items():
        found = digest_files(folder, part)
        expected = {name: d for name, d in summary.files.items() if name.startswith(f"{part}/")}
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                what = "was changed" if name in found else "is missing"
                raise ValueError(f"its file {name} {what}")
        described = name_keys(summary.arrays.get(part, {}), tree)
        written[part] = with_impls(tree, described)
        if described != describe(written[part]):
            raise ValueError("its arrays are not those that this version makes of its settings")
    return {part: arrays.read(folder / part, tree) for part, tree in written.items()}


def _summarize(error: Exception) -> str:
    """The first line of an error's message, cut short."""
    lines = str(error).split("\n")
    return textwrap.shorten(lines[0] or type(error).__name__, 200, placeholder="…")


def _set_aside(run_dir: pathlib.Path, steps: list[int]) -> None:
    """Moves checkpoints to `damaged/`, under names that are free."""
    folder = run_dir / "damaged"
    for step in steps:
        folder.mkdir(exist_ok=True)
        number = 1
        while (target := folder / f"{step}-{number}").exists():
            number += 1
        os.rename(runs.checkpoints(run_dir) / str(step), target)


def _divide(plain: TrainState) -> dict[str, Any]:
    """Divides a state into what plays and all the rest, each to be read alone."""
    rest = dataclasses.replace(plain, learner=plain.learner._replace(ema_params=()))
    return {_PLAYER: plain.learner.ema_params, _REST: rest}


def _join(trees: dict[str, Any]) -> TrainState:
    """Puts a divided state together."""
    rest = trees[_REST]
    return dataclasses.replace(rest, learner=rest.learner._replace(ema_params=trees[_PLAYER]))


def _whole(plain: TrainState) -> TrainState:
    """Copies a state to the host where a part of it lies in other processes."""

    def copy(leaf):
        if leaf.is_fully_addressable:
            return leaf
        if leaf.is_fully_replicated:
            return np.asarray(leaf.addressable_data(0))
        return multihost_utils.process_allgather(leaf, tiled=True)

    return jax.tree.map(copy, plain)
