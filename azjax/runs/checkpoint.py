"""Checkpoints of a run: written atomically, and verified with digests when they are read.

`checkpoints/ITERATION/` in a run directory contains `player/`, the averaged variables, and
`state/`, the rest of a `TrainState`; see `azjax.runs.storage`. Loading reads only arrays and JSON,
and never runs code. A checkpoint is *sound* if all its files are present and unchanged.

With several processes, all call `save` and `restore`. Each writes and reads the shards of its
devices, so the replay buffer can be larger than the memory of one host. The number of processes can
change between sessions.
"""

import collections
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import textwrap
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, SingleDeviceSharding

from azjax._files import Path, remove
from azjax._processes import OtherProcessError, any_of, gather, in_all, in_first
from azjax.networks import Network
from azjax.runs import storage
from azjax.runs.directory import CheckpointError, checkpoints, iterations, read_config
from azjax.training.parts import Parts
from azjax.training.sharding import abstract_state, make_mesh, one_copy
from azjax.training.step import TrainState

_PLAYER, _REST = "player", "state"  # Folders of a checkpoint.


def save(run_dir: Path, state: TrainState, score: float, keep: int = 3) -> None:
    """Writes a checkpoint named after `state.iteration`, unless there is a complete one.

    The `keep` newest checkpoints and the one with the highest score stay.

    Raises:
      CheckpointError: if it cannot be written, or parameters of the network are not finite.
    """
    folder, iteration = checkpoints(run_dir), int(state.iteration)
    config = in_all(lambda: read_config(run_dir))
    if any(any_of(_read_score(folder / str(iteration)) is not None)):
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

    def prepare():
        _clear(folder)
        if os.path.lexists(folder / str(iteration)):
            _set_aside(pathlib.Path(run_dir), [iteration])

    def write():
        return [storage.write_arrays(partial / part, tree) for part, tree in trees.items()]

    def complete():
        storage.write_summary(partial, summary)
        os.rename(partial, partial.with_suffix(""))

    try:
        in_first(prepare)
        for written in gather(json.dumps(in_all(write))):
            for digests in json.loads(written):
                summary.files.update(digests)
        in_first(complete)
    except (OSError, OtherProcessError) as error:
        raise CheckpointError(
            f"checkpoint {iteration} could not be written ({_summarize(error)}): make room on the "
            f"disk, or repair the folder, then resume the run in {run_dir}"
        ) from error
    in_first(lambda: _prune(folder, keep))


def _clear(folder: pathlib.Path) -> None:
    for leftover in folder.glob("*.*"):
        if re.fullmatch(r"\d+\.(partial|deleted)", leftover.name):
            with contextlib.suppress(OSError):  # On NFS, files that are open are deleted later.
                remove(leftover)


def _read_score(folder: pathlib.Path) -> float | None:
    try:
        return storage.read_summary(folder).score
    except ValueError:
        return None


def _prune(folder: pathlib.Path, keep: int) -> None:
    """Deletes all checkpoints but the newest and the best; of equal scores the newest is best."""

    def score(step):
        recorded = _read_score(folder / str(step))
        return -np.inf if recorded is None else recorded

    steps = iterations(folder.parent)[::-1]
    best = max(steps, key=score)
    for step in steps[keep:]:
        if step != best:
            os.rename(folder / str(step), folder / f"{step}.deleted")  # Atomically.
    _clear(folder)


class Restored(NamedTuple):
    """The result of `restore`."""

    state: TrainState | None  # None without a checkpoint.
    skipped: list[str]  # One sentence for each newer checkpoint that is damaged.


def restore(
    run_dir: Path, parts: Parts, mesh: Mesh | None = None, set_aside: bool = False
) -> Restored:
    """Reads the newest sound checkpoint of a run.

    Typed keys keep the PRNG implementation with which they were saved. With `set_aside`, damaged
    checkpoints move to `damaged/`, so that they can be replaced.

    Raises:
      CheckpointError: if the folder of the checkpoints is missing, or none of them is sound.
    """
    folder, damage, trees = checkpoints(run_dir), {}, None
    if not any(any_of(folder.is_dir())):
        raise CheckpointError(f"{folder} is missing: restore it from a copy, or start a new run")
    target = _divide(abstract_state(parts, make_mesh() if mesh is None else mesh))
    for step in reversed(in_all(lambda: iterations(run_dir))):
        try:
            trees = _read(folder / str(step), target, together=True)
            break
        except Exception as error:  # An older one may be sound.
            damage[step] = _describe_damage(run_dir, step, error)
    if trees is None and not damage:
        return Restored(None, [])
    if trees is None:
        raise CheckpointError(
            f"no checkpoint in {run_dir} is sound ({'; '.join(damage.values())}): restore the "
            "folder from a copy, or start a new run"
        )
    if set_aside:
        in_first(lambda: _set_aside(pathlib.Path(run_dir), damage))
    rest = trees[_REST]
    learner = rest.learner._replace(average=trees[_PLAYER])
    return Restored(dataclasses.replace(rest, learner=learner), [*damage.values()])


def restore_player(run_dir: Path, network: Network, step: int | None = None) -> tuple[Any, int]:
    """Returns the averaged variables of a checkpoint, on one device, and its iteration.

    By default the newest one. A single process can call this alone.

    Raises:
      CheckpointError: if the checkpoint is missing or damaged. No other one takes its place.
    """
    here = SingleDeviceSharding(jax.local_devices()[0])
    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here),
        jax.eval_shape(network.init, jax.random.key(0)),
    )
    while available := iterations(run_dir):
        number = available[-1] if step is None else step
        others = ", ".join(str(other) for other in available if other != number)
        advice = f"use one of {others}" if others else "resume the run to write another"
        if number not in available:
            raise CheckpointError(f"{run_dir} has no checkpoint {number}: {advice}")
        try:
            folder = checkpoints(run_dir) / str(number)
            return _read(folder, {_PLAYER: target}, together=False)[_PLAYER], number
        except Exception as error:
            if step is None and number not in iterations(run_dir):
                continue  # A training in progress has replaced it.
            if step is None and others:
                advice += ", or move its folder away to use the newest of them"
            raise CheckpointError(
                f"{_describe_damage(run_dir, number, error)}: {advice}"
            ) from error
    raise CheckpointError(f"{run_dir} has no checkpoint yet: resume the run to write one")


def _read(folder: pathlib.Path, target: dict[str, Any], together: bool) -> dict[str, Any]:
    def check(share=slice(None)):
        summary = storage.read_summary(folder)
        storage.check_files(folder, summary.files, target, share)
        written = collections.defaultdict(dict, summary.arrays)
        fitted = {part: storage.fit_keys(tree, written[part]) for part, tree in target.items()}
        return fitted, sorted(summary.files)

    def read(fitted, files):
        return {
            part: storage.read_arrays([folder / f for f in files if f.startswith(f"{part}/")], tree)
            for part, tree in fitted.items()
        }

    if not together:
        return read(*check())
    checked = in_all(lambda: check(slice(jax.process_index(), None, jax.process_count())))
    return in_all(lambda: read(*checked))


def _describe_damage(run_dir: Path, step: int, error: Exception) -> str:
    return f"checkpoint {step} in {run_dir} is damaged ({_summarize(error)})"


def _summarize(error: Exception) -> str:
    return textwrap.shorten(str(error) or type(error).__name__, 200, placeholder="…")


def _set_aside(run_dir: pathlib.Path, steps: Iterable[int]) -> None:
    folder = run_dir / "damaged"
    for step in steps:
        folder.mkdir(exist_ok=True)
        names = (folder / f"{step}-{number}" for number in itertools.count(1))
        free = next(name for name in names if not os.path.lexists(name))
        os.rename(checkpoints(run_dir) / str(step), free)


def _divide(state: TrainState) -> dict[str, Any]:
    rest = dataclasses.replace(state, learner=state.learner._replace(average=()))
    return {_PLAYER: state.learner.average, _REST: rest}
