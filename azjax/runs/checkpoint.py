"""Checkpoints of a run: written atomically, and verified with digests when they are read.

A checkpoint is a folder `checkpoints/ITERATION/` with

- `player/`, the averaged variables, and `state/`, the rest of a `TrainState`, as NumPy archives.
  Each process writes one file per folder: process 0 `arrays.npz`, process 1 `arrays-1.npz`. Arrays
  are named after their leaves in the tree. If an array is sharded over processes, each of them
  stores the rows of its devices, under names such as `.games.ply[512:768]`. Typed keys are stored
  as data.
- `summary.json`: iteration, score, the type and shape of every array, the settings of the run, the
  SHA-256 of every file of arrays, and a SHA-256 of all that.

Loading reads only arrays and JSON, and never runs code. A checkpoint is *sound* if all its files
are present and unchanged.

With several processes, all call `save` and `restore`. Each writes and reads the shards of its
devices, so the replay buffer can be larger than the memory of one host. The number of processes can
change between sessions.
"""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import math
import os
import pathlib
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, SingleDeviceSharding

from azjax._files import Path, remove, write_json
from azjax._processes import OtherProcessError, any_of, gather, in_all, in_first
from azjax._settings import from_dict, list_changes
from azjax.networks import Network
from azjax.runs.config import Config
from azjax.runs.directory import CheckpointError, checkpoints, iterations, read_config
from azjax.training.parts import Parts
from azjax.training.step import TrainState, abstract_state, make_mesh, one_copy

_PLAYER, _REST = "player", "state"  # Folders of a checkpoint.


class Contents(NamedTuple):
    """What a checkpoint stores of a training state, as a copy on the host."""

    iteration: int
    arrays: dict[str, dict[str, np.ndarray]]  # Of this process: by folder and name.
    described: dict[str, dict[str, str]]  # Type and shape of the arrays of all processes.


def save(run_dir: Path, state: TrainState, score: float, keep: int = 3) -> None:
    """Writes a checkpoint named after `state.iteration`; see `copy` and `write`."""
    write(run_dir, copy(state), score, keep)


def copy(state: TrainState) -> Contents:
    """Copies a state to the host, so that training can go on while the copy is written.

    Raises a CheckpointError if parameters of the network are not finite.
    """
    iteration = int(state.iteration)
    learner = one_copy(jax.tree.map(plain, state.learner))
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(learner)):
        raise CheckpointError(
            f"the network's parameters are NaN or infinite after iteration {iteration}, so they "
            "were not saved: start a new run with a lower learning rate"
        )
    trees = _divide(state)
    arrays = {part: _own_arrays(tree) for part, tree in trees.items()}
    return Contents(iteration, arrays, {part: _describe(tree) for part, tree in trees.items()})


def write(run_dir: Path, contents: Contents, score: float, keep: int = 3) -> None:
    """Writes a checkpoint; the `keep` newest ones and the one with the highest score stay.

    Raises a CheckpointError if it cannot be written.
    """
    folder, iteration = checkpoints(run_dir), contents.iteration
    partial = folder / f"{iteration}.partial"

    def prepare():
        _clear(folder)
        if os.path.lexists(folder / str(iteration)):
            _set_aside(pathlib.Path(run_dir), [iteration])

    def write_own():
        return [_write_arrays(partial / part, own) for part, own in contents.arrays.items()]

    def complete():
        files = itertools.chain(*map(json.loads, written))
        content = {
            "iteration": iteration,
            "score": float(score),
            "arrays": contents.described,
            "settings": read_config(run_dir).as_dict(),
            "files": {name: sha for part in files for name, sha in part.items()},
        }
        write_json(partial / "summary.json", content | {"sha256": _digest(content)})
        os.rename(partial, partial.with_suffix(""))

    try:
        in_first(prepare)
        written = gather(json.dumps(in_all(write_own)))
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


def _read_score(folder: pathlib.Path) -> float:
    """Returns minus infinity for a damaged checkpoint."""
    with contextlib.suppress(ValueError):
        return read_summary(folder)["score"]
    return -math.inf


def _prune(folder: pathlib.Path, keep: int) -> None:
    """Deletes all checkpoints but the newest and the best; of equal scores the newest is best."""
    scores = {step: _read_score(folder / str(step)) for step in iterations(folder.parent)[::-1]}
    best = max(scores, key=scores.__getitem__)
    for step in [*scores][keep:]:
        if step != best:
            os.rename(folder / str(step), folder / f"{step}.deleted")  # Atomically.
    _clear(folder)


def restore(
    run_dir: Path, parts: Parts, mesh: Mesh | None = None
) -> tuple[TrainState | None, list[str]]:
    """Reads the newest sound checkpoint of a run, and moves newer ones to `damaged/`.

    Returns:
      The state, None without a checkpoint; and a sentence for each damaged checkpoint.

    Raises:
      CheckpointError: if the folder of the checkpoints is missing, none of them is sound, or it was
        written with other settings than those in `config.json`. Then nothing is moved.
    """
    folder, damage, trees = checkpoints(run_dir), {}, None
    if not any_of(folder.is_dir()):
        raise CheckpointError(f"{folder} is missing: restore it from a copy, or start a new run")
    target = _divide(abstract_state(parts, make_mesh() if mesh is None else mesh))
    for step in reversed(in_all(lambda: iterations(run_dir))):
        try:
            trees = _read(run_dir, step, target, together=True)
            break
        except CheckpointError:
            raise
        except Exception as error:  # An older one may be sound.
            damage[step] = _describe_damage(run_dir, step, error)
    if trees is None and damage:
        raise CheckpointError(
            f"no checkpoint in {run_dir} is sound ({'; '.join(damage.values())}): restore the "
            "folder from a copy, or start a new run"
        )
    if trees is None:
        return None, []
    in_first(lambda: _set_aside(pathlib.Path(run_dir), damage))
    learner = trees[_REST].learner._replace(average=trees[_PLAYER])
    return dataclasses.replace(trees[_REST], learner=learner), [*damage.values()]


def restore_player(run_dir: Path, network: Network, step: int | None = None) -> tuple[Any, int]:
    """Returns the averaged variables of a checkpoint, on one device, and its iteration.

    By default the newest one. A single process can call this alone. Raises a CheckpointError if the
    checkpoint is missing or damaged. No other one takes its place.
    """
    here = SingleDeviceSharding(jax.local_devices()[0])
    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here),
        jax.eval_shape(network.init, jax.random.key(0)),
    )
    available = iterations(run_dir)
    if not available:
        raise CheckpointError(f"{run_dir} has no checkpoint yet: resume the run to write one")
    number = available[-1] if step is None else step
    others = ", ".join(str(other) for other in available if other != number)
    advice = f"use one of {others}" if others else "resume the run to write another"
    if number not in available:
        raise CheckpointError(f"{run_dir} has no checkpoint {number}: {advice}")
    try:
        return _read(run_dir, number, {_PLAYER: target}, together=False)[_PLAYER], number
    except CheckpointError:
        raise
    except Exception as error:
        if step is None and number not in iterations(run_dir):  # A training has replaced it.
            return restore_player(run_dir, network)
        raise CheckpointError(f"{_describe_damage(run_dir, number, error)}: {advice}") from error


def _read(run_dir: Path, step: int, target: dict[str, Any], together: bool) -> dict[str, Any]:
    """Reads the folders in `target`; raises an error, of any type, if they are damaged."""
    folder = checkpoints(run_dir) / str(step)
    share = slice(jax.process_index(), None, jax.process_count()) if together else slice(None)
    call: Callable = in_all if together else lambda action: action()

    def check():
        summary = read_summary(folder)
        written = from_dict(Config, summary["settings"])
        for name, here, there in list_changes(read_config(run_dir), written)[:1]:
            raise CheckpointError(
                f"{name} is {here!r} in {pathlib.Path(run_dir, 'config.json')}, and checkpoint "
                f"{step} was written with {there!r}: restore the file"
            )
        # Other files in the folder are ignored.
        files = sorted(name for name in summary["files"] if name.partition("/")[0] in target)
        for name in files[share]:
            if not (folder / name).is_file():
                raise ValueError(f"its file {name} is missing")
            if summary["files"][name] != _digest_file(folder / name):
                raise ValueError(f"its file {name} was changed")
        if any(_describe(tree) != summary["arrays"].get(part) for part, tree in target.items()):
            raise ValueError(
                "its arrays do not match its settings, its custom parts, JAX's default kind of "
                "random keys or this version"
            )
        return files

    def read():
        return {
            part: read_arrays([folder / f for f in files if f.startswith(f"{part}/")], tree)
            for part, tree in target.items()
        }

    files = call(check)
    return call(read)


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


# Files of a checkpoint.


def _own_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Returns the arrays on the host that this process stores of a tree, by name.

    On CPUs they are views, and JAX does not overwrite the memory of views.
    """
    own = {}
    for name, leaf in _by_name(tree).items():
        array = plain(leaf)
        if array.is_fully_addressable:
            own[name] = np.asarray(array, order="C")
            continue
        rows = "" if array.is_fully_replicated else "[{0.start}:{0.stop}]"
        for shard in array.addressable_shards:
            if shard.replica_id == 0:
                own[name + rows.format(*shard.index)] = np.asarray(shard.data, order="C")
    return own


def _write_arrays(folder: pathlib.Path, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """Writes the file of this process, unless it has no arrays; returns its SHA-256 by name."""
    if not arrays:
        return {}
    index = jax.process_index()
    file = folder / (f"arrays-{index}.npz" if index else "arrays.npz")
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(file, **arrays)
    return {f"{folder.name}/{file.name}": _digest_file(file)}


def read_arrays(files: Iterable[pathlib.Path], target: Any) -> Any:
    """Reads a tree of the shapes and shardings of `target`; each process reads its rows."""
    with contextlib.ExitStack() as stack:
        stored = collections.defaultdict(dict)  # By name and first row: last row, file, entry.
        for path in files:
            file = stack.enter_context(np.load(path))
            for entry in file.files:
                name, *rows = re.split(r"\[(\d+):(\d+)\]$", entry)
                first, last = map(int, rows[:2]) if rows else (0, math.inf)
                stored[name][first] = last, file, entry

        def place(path, leaf):
            data, parts = jax.eval_shape(plain, leaf), stored[jax.tree_util.keystr(path)]

            @functools.cache
            def load(first):
                _, file, entry = parts[first]
                return file[entry].view(data.dtype)  # NumPy lacks types such as bfloat16.

            def read(index):
                if not index:
                    return load(0)
                start, stop, _ = index[0].indices(data.shape[0])
                return np.concatenate(
                    [
                        load(first)[max(start - first, 0) : stop - first]
                        for first, (last, *_) in sorted(parts.items())
                        if first <= start < last or start < first < stop
                    ]
                )

            array = jax.make_array_from_callback(data.shape, leaf.sharding, read)
            return jax.random.wrap_key_data(array, impl=key_impl(leaf)) if is_key(leaf) else array

        return jax.tree_util.tree_map_with_path(place, target)


def is_key(leaf: Any) -> bool:
    """Whether an array, or its `ShapeDtypeStruct`, has typed keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_impl(leaf: Any) -> str:
    """Returns the implementation of typed keys, such as `threefry2x32`."""
    return str(jax.random.key_impl(jnp.empty((), leaf.dtype)))


def plain(leaf: jax.Array) -> jax.Array:
    """Returns the data of typed keys, and other arrays unchanged."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def _describe(tree: Any) -> dict[str, str]:
    """Returns type and shape of every array by name; the type of keys is their implementation."""
    return {
        name: f"{key_impl(leaf) if is_key(leaf) else leaf.dtype}{list(leaf.shape)}"
        for name, leaf in _by_name(tree).items()
    }


def _by_name(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def read_summary(folder: pathlib.Path) -> dict[str, Any]:
    """Reads the summary of a checkpoint, or raises a ValueError that names the damage."""
    try:
        summary = json.loads((folder / "summary.json").read_text())
        sealed = summary.pop("sha256")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("its summary.json is missing or damaged") from error
    if sealed != _digest(summary):
        raise ValueError("its summary.json was changed")
    if summary["iteration"] != int(folder.name):
        raise ValueError(f"it is the checkpoint of iteration {summary['iteration']}")
    return summary


def _digest_file(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
