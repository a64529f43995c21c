"""Checkpoints of a run: written atomically, and verified with digests when they are read.

A checkpoint is a folder `checkpoints/ITERATION/` with

- `player/arrays.npz`, the averaged variables, and `state/arrays.npz`, the rest of a `TrainState`.
  Arrays are named after their leaves in the tree. Typed keys are stored as data.
- `summary.json`: iteration, the type and shape of every array, the settings of the run, the SHA-256
  of both files, and a SHA-256 of all that.

A checkpoint is written to `ITERATION.partial/`, its summary last, and then renamed. Reading checks
digests and shapes; it takes only arrays and JSON, and never runs code. A checkpoint is *sound* if
all its files are present and unchanged.

With several processes, all call these functions, except `restore_player`. Process 0 writes, and
each process reads the files and keeps what its devices need. Their number can change between
sessions.
"""

import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import textwrap
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, SingleDeviceSharding

from azjax._files import Path, check_digest, digest_file, read_sealed, remove, write_sealed
from azjax._processes import OtherProcessError, any_of, connected, in_all, in_first
from azjax._settings import list_changes
from azjax.networks import Network
from azjax.runs.config import Config
from azjax.runs.directory import CheckpointError, checkpoints, iterations, read_config
from azjax.training import TrainState, abstract_state, make_mesh, one_copy
from azjax.training.parts import Parts

_PLAYER, _REST = "player", "state"  # Folders of a checkpoint.


class Contents(NamedTuple):
    """A training state on the host."""

    iteration: int
    arrays: dict[str, dict[str, Any]]  # Of NumPy, by folder and name.
    described: dict[str, dict[str, str]]  # Their types and shapes.


def copy(state: TrainState) -> Contents:
    """Fetches a state from all devices, so that training can go on while it is written.

    Raises a CheckpointError if the learner's parameters or optimizer state are not finite.
    """
    iteration = int(state.iteration)
    learner = one_copy(jax.tree.map(plain, state.learner))
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(learner)):
        raise CheckpointError(
            f"the learner's state is NaN or infinite after iteration {iteration}, so it was "
            "not saved: start a new run with a lower learning rate"
        )
    trees = _split_player(state)
    arrays = {part: _by_name(jax.tree.map(_fetch, tree)) for part, tree in trees.items()}
    return Contents(iteration, arrays, {part: _describe(tree) for part, tree in trees.items()})


def _fetch(leaf: jax.Array) -> np.ndarray:
    """Returns the whole array; on a CPU it can be a view, whose memory JAX does not overwrite."""
    array = plain(leaf)
    if array.is_fully_addressable or array.is_fully_replicated:
        return np.asarray(array)
    with connected():
        return multihost_utils.process_allgather(array, tiled=True)


def write(run_dir: Path, contents: Contents, keep: int) -> None:
    """Writes a checkpoint in process 0; the `keep` newest ones stay.

    Raises a CheckpointError if it cannot be written.
    """
    if jax.process_index():
        return
    folder, iteration = checkpoints(run_dir), contents.iteration
    partial = folder / f"{iteration}.partial"
    try:
        _clear(folder)
        if os.path.lexists(folder / str(iteration)):  # A damaged one, after which a run resumed.
            _set_aside(pathlib.Path(run_dir), [iteration])
        for part, arrays in contents.arrays.items():
            (partial / part).mkdir(parents=True)
            np.savez(partial / part / "arrays.npz", **arrays)
        content = {
            "iteration": iteration,
            "arrays": contents.described,
            "settings": read_config(run_dir).as_dict(),
            "files": {
                name: digest_file(partial / name)
                for name in (f"{part}/arrays.npz" for part in contents.arrays)
            },
        }
        write_sealed(partial / "summary.json", content)
        os.rename(partial, partial.with_suffix(""))
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {iteration} could not be written ({_summarize(error)}): make room on the "
            f"disk, or repair the folder, then resume the run in {run_dir}"
        ) from error
    for old in iterations(run_dir)[:-keep]:
        os.rename(folder / str(old), folder / f"{old}.deleted")  # Atomically.
    _clear(folder)


def _clear(folder: pathlib.Path) -> None:
    for leftover in folder.glob("*.*"):
        if re.fullmatch(r"\d+\.(partial|deleted)", leftover.name):
            with contextlib.suppress(OSError):  # On NFS, files that are open are deleted later.
                remove(leftover)


def restore(
    run_dir: Path, parts: Parts, mesh: Mesh | None = None, sets_aside: bool = True
) -> tuple[TrainState | None, list[str]]:
    """Reads the newest sound checkpoint of a run; if `sets_aside`, moves newer ones to `damaged/`.

    Returns:
      The state, None without a checkpoint; and a sentence for each damaged checkpoint.

    Raises:
      CheckpointError: if the folder of the checkpoints is missing, none of them is sound, or it was
        written with other settings than those in `config.json`. Then nothing is moved.
    """
    folder, damage = checkpoints(run_dir), {}
    if not any_of(folder.is_dir()):
        raise CheckpointError(f"{folder} is missing: restore it from a copy, or start a new run")
    target = _split_player(abstract_state(parts, make_mesh() if mesh is None else mesh))
    for iteration in reversed(in_all(lambda: iterations(run_dir))):
        try:
            trees = in_all(lambda at=iteration: _read(run_dir, at, target))
        except (ValueError, OtherProcessError) as error:  # An older one may be sound.
            damage[iteration] = _describe_damage(run_dir, iteration, error)
            continue
        if sets_aside:
            in_first(lambda: _set_aside(pathlib.Path(run_dir), damage))
        learner = trees[_REST].learner._replace(average=trees[_PLAYER])
        return dataclasses.replace(trees[_REST], learner=learner), [*damage.values()]
    if damage:
        raise CheckpointError(
            f"no checkpoint in {run_dir} is sound ({'; '.join(damage.values())}): restore the "
            "folder from a copy, or start a new run"
        )
    return None, []


def restore_player(
    run_dir: Path, network: Network, iteration: int | None = None
) -> tuple[Any, int]:
    """Returns the averaged variables of a checkpoint, on one device, and its iteration.

    By default the newest one. Raises a CheckpointError if the checkpoint is missing or damaged. No
    other one takes its place.
    """
    here = SingleDeviceSharding(jax.local_devices()[0])
    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here),
        jax.eval_shape(network.init, jax.random.key(0)),
    )
    available = iterations(run_dir)
    number = max(available, default=0) if iteration is None else iteration
    others = ", ".join(str(other) for other in available if other != number)
    advice = f"use one of {others}, or resume the run" if others else "resume the run to write one"
    if number not in available:
        raise CheckpointError(
            f"{run_dir} has no checkpoint {number if available else 'yet'}: {advice}"
        )
    try:
        return _read(run_dir, number, {_PLAYER: target})[_PLAYER], number
    except (ValueError, FileNotFoundError) as error:
        raise CheckpointError(f"{_describe_damage(run_dir, number, error)}: {advice}") from error


def _read(run_dir: Path, iteration: int, target: dict[str, Any]) -> dict[str, Any]:
    """Reads the folders in `target`; raises a ValueError if they are damaged."""
    folder = checkpoints(run_dir) / str(iteration)
    summary = read_summary(folder)
    written = Config.read(summary["settings"])
    if changes := list_changes(read_config(run_dir), written):
        name, here, there = changes[0]
        raise CheckpointError(
            f"{name} is {here!r} in {pathlib.Path(run_dir, 'config.json')}, and checkpoint "
            f"{iteration} was written with {there!r}: restore the file"
        )
    arrays = {}
    for part, tree in target.items():
        name = f"{part}/arrays.npz"
        path = check_digest(folder, name, summary["files"].get(name))
        if summary["arrays"].get(part) != _describe(tree):
            raise ValueError(
                "its arrays do not match its settings, its custom parts, JAX's default kind of "
                "random keys or this version"
            )
        arrays[part] = _read_arrays(path, tree)
    return arrays


def _describe_damage(run_dir: Path, iteration: int, error: Exception) -> str:
    return f"checkpoint {iteration} in {run_dir} is damaged ({_summarize(error)})"


def _summarize(error: Exception) -> str:
    return textwrap.shorten(str(error) or type(error).__name__, 200, placeholder="…")


def _set_aside(run_dir: pathlib.Path, numbers: Iterable[int]) -> None:
    folder = run_dir / "damaged"
    for iteration in numbers:
        folder.mkdir(exist_ok=True)
        names = (folder / f"{iteration}-{count}" for count in itertools.count(1))
        free = next(name for name in names if not os.path.lexists(name))
        os.rename(checkpoints(run_dir) / str(iteration), free)


def _split_player(state: TrainState) -> dict[str, Any]:
    rest = dataclasses.replace(state, learner=state.learner._replace(average=()))
    return {_PLAYER: state.learner.average, _REST: rest}


# Files of a checkpoint.


def _read_arrays(path: pathlib.Path, target: Any) -> Any:
    """Reads a tree of the shapes and shardings of `target`."""
    with np.load(path) as file:

        def place(path, leaf):
            data = jax.eval_shape(plain, leaf)
            # NumPy lacks types such as bfloat16.
            whole = file[jax.tree_util.keystr(path)].view(data.dtype)
            array = jax.make_array_from_callback(data.shape, leaf.sharding, whole.__getitem__)
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
    summary = read_sealed(folder / "summary.json")
    if summary["iteration"] != int(folder.name):
        raise ValueError(f"it is the checkpoint of iteration {summary['iteration']}")
    return summary
