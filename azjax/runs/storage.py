"""The files of a checkpoint: NumPy archives, and a summary with a digest of every file.

Each process writes one file per folder: process 0 `arrays.npz`, process 1 `arrays-1.npz`. Arrays
are named after their leaves in the tree. If an array is sharded over processes, each of them stores
the rows of its devices, under names such as `.games.ply[512:768]`. Typed keys are stored as data.

`summary.json` contains the fields of `Summary` and a SHA-256 of them. Reading it detects whether a
checkpoint was moved to the folder of another iteration, or its settings were changed.
"""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import os
import pathlib
import re
import zipfile
from collections.abc import Collection, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import write_json
from azjax._settings import check, from_dict


def write_arrays(folder: pathlib.Path, tree: Any) -> dict[str, str]:
    """Writes what this process stores of a tree; returns the SHA-256 of its file, if any."""
    stored = {}
    for name, leaf in _by_name(tree).items():
        array = plain(leaf)
        if array.is_fully_addressable:
            stored[name] = np.asarray(array, order="C")
            continue
        rows = "" if array.is_fully_replicated else "[{0.start}:{0.stop}]"
        for shard in array.addressable_shards:
            if shard.replica_id == 0:
                stored[name + rows.format(*shard.index)] = np.asarray(shard.data, order="C")
    if not stored:
        return {}
    index = jax.process_index()
    file = folder / (f"arrays-{index}.npz" if index else "arrays.npz")
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(file, **stored)
    return {f"{folder.name}/{file.name}": _digest_file(file)}


def read_arrays(files: Iterable[pathlib.Path], target: Any) -> Any:
    """Reads a tree like `target`, from `fit_keys`; each process reads the rows of its devices."""
    with contextlib.ExitStack() as stack:
        stored = collections.defaultdict(dict)
        for path in files:
            file = stack.enter_context(zipfile.ZipFile(path))
            for entry in file.namelist():
                name, *rows = re.split(r"\[(\d+):(\d+)\]$", entry.removesuffix(".npy"))
                first, last = map(int, rows[:2]) if rows else (0, math.inf)
                stored[name][first] = last, file, entry

        def place(path, leaf):
            data = jax.eval_shape(plain, leaf)
            read = functools.partial(_read_rows, stored[jax.tree_util.keystr(path)], data)
            array = jax.make_array_from_callback(data.shape, leaf.sharding, read)
            return jax.random.wrap_key_data(array, impl=key_impl(leaf)) if is_key(leaf) else array

        return jax.tree_util.tree_map_with_path(place, target)


def _read_rows(stored: dict, like: jax.ShapeDtypeStruct, index: Any) -> np.ndarray:
    """Reads the rows of an array that `index` selects, from parts listed by their first row."""
    start, stop, _ = index[0].indices(like.shape[0]) if index else (0, 1, 1)
    parts = []
    for first, (last, file, entry) in sorted(stored.items()):
        low, high = max(start, first), min(stop, last)
        if low < high or start == stop:
            with file.open(entry) as member:
                np.lib.format.read_magic(member)
                shape, _, dtype = np.lib.format.read_array_header_1_0(member)
                row = dtype.itemsize * math.prod(shape[1:])
                member.seek((low - first) * row, os.SEEK_CUR)
                parts.append(np.frombuffer(member.read((high - low) * row), dtype))
    # NumPy files do not keep the names of extension types such as bfloat16.
    rows = np.concatenate(parts).view(like.dtype)
    return rows.reshape((stop - start, *like.shape[1:])[: len(index)])


def is_key(leaf: Any) -> bool:
    """Whether an array, or its `ShapeDtypeStruct`, has typed keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_impl(leaf: Any) -> str:
    """Returns the implementation of typed keys, such as `threefry2x32`."""
    return str(jax.random.key_impl(jnp.empty((), leaf.dtype)))


def plain(leaf: jax.Array) -> jax.Array:
    """Returns the data of typed keys, and other arrays unchanged."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def describe(tree: Any) -> dict[str, str]:
    """Returns type and shape of every array by name; the type of keys is their implementation."""
    return {
        name: f"{key_impl(leaf) if is_key(leaf) else leaf.dtype}{list(leaf.shape)}"
        for name, leaf in _by_name(tree).items()
    }


def _by_name(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def fit_keys(target: Any, described: dict[str, str]) -> Any:
    """Returns a target whose typed keys have the implementations of the stored ones.

    Raises a ValueError if the stored arrays, `described` by `describe`, do not match.
    """

    def fit(path, leaf):
        stored = described.get(jax.tree_util.keystr(path))
        if stored is None or not is_key(leaf):
            return leaf
        dtype = jax.random.key(0, impl=stored.partition("[")[0]).dtype
        return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=leaf.sharding)

    fitted = jax.tree_util.tree_map_with_path(fit, target)
    if describe(fitted) != described:
        raise ValueError("its arrays do not match its settings, its custom parts or this version")
    return fitted


@dataclasses.dataclass(frozen=True)
class Summary:
    """The content of `summary.json`."""

    iteration: int
    score: float
    arrays: dict  # From `describe`, for each folder.
    settings: dict  # As in `config.json`.
    files: dict  # SHA-256 of each file of arrays, by its path.

    def __post_init__(self):
        check("", self)


def write_summary(folder: pathlib.Path, summary: Summary) -> None:
    """Writes the summary of a checkpoint, with its digest."""
    content = dataclasses.asdict(summary)
    write_json(folder / "summary.json", content | {"sha256": _digest(content)})


def read_summary(folder: pathlib.Path) -> Summary:
    """Reads the summary of a checkpoint, or raises a ValueError that names the damage."""
    try:
        content = json.loads((folder / "summary.json").read_text())
        sealed = content.pop("sha256")
        summary = from_dict(Summary, content) if sealed == _digest(content) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("its summary.json is missing or damaged") from error
    if summary is None:
        raise ValueError("its summary.json was changed")
    if summary.iteration != int(folder.name):
        raise ValueError(f"it is the checkpoint of iteration {summary.iteration}")
    return summary


def check_files(
    folder: pathlib.Path, files: dict[str, str], parts: Collection[str], share: slice
) -> None:
    """Checks a `share` of the listed files in the folders `parts`; others are ignored."""
    for name in sorted(name for name in files if name.partition("/")[0] in parts)[share]:
        if not (folder / name).is_file():
            raise ValueError(f"its file {name} is missing")
        if files[name] != _digest_file(folder / name):
            raise ValueError(f"its file {name} was changed")


def _digest_file(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
