"""A checkpoint on disk: arrays that NumPy reads, and a summary with a digest of every file.

A folder of arrays has one file for each process that wrote it: `arrays.npz` of process 0,
`arrays-1.npz` of process 1. An array has the name of its leaf in the tree. If an array is spread
over several processes, each of them stores the rows of its own devices, under names such as
`.games.ply[512:768]`. Typed keys are stored as their data.

`summary.json` has the fields of `Summary` and one SHA-256 over all of them. A checkpoint in the
folder of another iteration, or with other settings, is therefore detected like a damaged file.
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
from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import write_json
from azjax._settings import check, from_dict


def write_arrays(folder: pathlib.Path, tree: Any) -> dict[str, str]:
    """Writes what this process stores of a tree; all processes together store each row once.

    Returns:
      The SHA-256 of the file, by `FOLDER/FILE`; empty if this process stores nothing.

    Raises:
      OSError: if the disk is full.
    """
    stored: Any = {}
    for name, leaf in _by_name(tree).items():
        stored |= _stored_here(name, plain(leaf))
    if not stored:
        return {}
    index = jax.process_index()
    file = folder / (f"arrays-{index}.npz" if index else "arrays.npz")
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(file, **stored)
    return {f"{folder.name}/{file.name}": _digest_file(file)}


def _stored_here(name: str, array: jax.Array) -> dict[str, np.ndarray]:
    """Returns the part of an array that this process stores, by its names in the file."""
    if array.is_fully_addressable:
        return {name: np.asarray(array, order="C")}
    rows = "" if array.is_fully_replicated else "[{0.start}:{0.stop}]"
    return {
        name + rows.format(*shard.index): np.asarray(shard.data, order="C")
        for shard in array.addressable_shards
        if shard.replica_id == 0
    }


def read_arrays(folder: pathlib.Path, target: Any) -> Any:
    """Reads a tree; each process reads only the rows that its devices hold.

    Args:
      folder: the folder that it was written into, by any number of processes.
      target: shapes, types and shardings of its arrays, `jax.ShapeDtypeStruct`; typed keys are of
        the implementation that they were written with.
    """
    with contextlib.ExitStack() as stack:
        stored = collections.defaultdict(dict)
        for path in sorted(folder.glob("*.npz")):
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
    """Reads rows of an array, and no others into memory.

    Args:
      stored: by first row, the end, the file and the name of each stored part.
      like: shape and type of the whole array.
      index: a slice of each axis; all but the first are whole.
    """
    start, stop, _ = index[0].indices(like.shape[0]) if index else (0, 1, 1)
    parts = []
    for first, (last, file, entry) in sorted(stored.items()):
        low, high = max(start, first), min(stop, last)
        if low < high or start == stop:
            with file.open(entry) as member:
                np.lib.format.read_magic(member)
                shape, transposed, dtype = np.lib.format.read_array_header_1_0(member)
                if transposed:
                    raise ValueError(f"its array {entry} is in Fortran order")
                row = dtype.itemsize * math.prod(shape[1:])
                member.seek((low - first) * row, os.SEEK_CUR)
                parts.append(np.frombuffer(member.read((high - low) * row), dtype))
    # NumPy forgets the names of types that are not its own, such as bfloat16.
    rows = np.concatenate(parts).view(like.dtype)
    return rows.reshape((stop - start, *like.shape[1:])[: len(index)])


def is_key(leaf: Any) -> bool:
    """Whether an array, or a description of one, is of typed keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_impl(leaf: Any) -> str:
    """Returns the name of the implementation of typed keys, such as `threefry2x32`."""
    return str(jax.random.key_impl(jnp.empty((), leaf.dtype)))


def plain(leaf: jax.Array) -> jax.Array:
    """Returns the data of typed keys, and any other array as it is."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def describe(tree: Any) -> dict[str, str]:
    """Returns the type and shape of every array, by its name in the tree.

    The type of typed keys is the name of their implementation.
    """
    return {
        name: f"{key_impl(leaf) if is_key(leaf) else leaf.dtype}{list(leaf.shape)}"
        for name, leaf in _by_name(tree).items()
    }


def _by_name(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def fit_keys(target: Any, described: dict[str, str]) -> Any:
    """Returns a target with typed keys of the implementations that were written.

    Older checkpoints describe the data of their keys. Four numbers may be a key of `rbg` or of
    `unsafe_rbg`: they are one of JAX's default if that has four, else of `rbg`.

    Args:
      target: shapes, types and shardings of the arrays.
      described: from `describe`, when they were written.

    Raises:
      ValueError: if other arrays were written.
    """
    default, described = jax.random.key(0), dict(described)
    once = {"uint32[2]": "threefry2x32[]", "uint32[4]": "rbg[]"}
    once[f"uint32[{jax.random.key_data(default).size}]"] = f"{key_impl(default)}[]"

    def fit(path, leaf):
        name = jax.tree_util.keystr(path)
        if name not in described or not is_key(leaf):
            return leaf
        described[name] = once.get(described[name], described[name])
        dtype = jax.random.key(0, impl=described[name].partition("[")[0]).dtype
        return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=leaf.sharding)

    fitted = jax.tree_util.tree_map_with_path(fit, target)
    if describe(fitted) != described:
        raise ValueError("its arrays are not those that this version makes of its settings")
    return fitted


@dataclasses.dataclass(frozen=True)
class Summary:
    """The content of `summary.json`.

    Attributes:
      iteration: the iteration that the checkpoint was saved after.
      score: the score that it was saved with; higher is better.
      arrays: from `describe`, for each folder.
      settings: those of its run, as in `config.json`.
      files: the SHA-256 of each file of arrays, by its path.
    """

    iteration: int
    score: float
    arrays: dict
    settings: dict
    files: dict

    def __post_init__(self):
        check("", self)


def write_summary(folder: pathlib.Path, summary: Summary) -> None:
    """Writes the summary of a checkpoint.

    Raises:
      OSError: if the disk is full.
    """
    content = dataclasses.asdict(summary)
    write_json(folder / "summary.json", content | {"sha256": _digest(content)})


def read_summary(folder: pathlib.Path) -> Summary:
    """Reads the summary of the checkpoint in a folder, which is named after its iteration.

    Raises:
      ValueError: naming what is wrong with the checkpoint.
    """
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
    """Checks that some folders of a checkpoint have the files of its summary.

    Several processes may each read a `share` of the files.

    Raises:
      ValueError: naming a file that is missing or was changed.
    """
    paths = [path for part in parts for path in (folder / part).rglob("*") if path.is_file()]
    found = {path.relative_to(folder).as_posix() for path in paths}
    expected = {name for name in files if name.partition("/")[0] in parts}
    for name in sorted(expected - found):
        raise ValueError(f"its file {name} is missing")
    for name in sorted(found)[share]:
        if files.get(name) != _digest_file(folder / name):
            raise ValueError(f"its file {name} was changed")


def _digest_file(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
