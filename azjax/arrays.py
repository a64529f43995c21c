"""Trees of arrays on disk, as NumPy's files: one `arrays.npz` a folder, by their names."""

import pathlib
from typing import Any

import jax
import numpy as np

_FILE = "arrays.npz"


def write(folder: pathlib.Path, tree: Any) -> None:
    """Writes a tree into a folder, which is made if it does not exist.

    Raises:
      OSError: if the disk is full.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    named: Any = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
    folder.mkdir(exist_ok=True)
    np.savez(folder / _FILE, **named)


def read(folder: pathlib.Path, target: Any) -> Any:
    """Reads a tree back, each of several processes its own part of it.

    Args:
      folder: that it was written into.
      target: shapes, types and places of its arrays, `jax.ShapeDtypeStruct`.
    """
    with np.load(folder / _FILE, allow_pickle=False) as file:

        def place(path, leaf):
            # NumPy forgets the names of types that are not its own, such as bfloat16.
            array = file[jax.tree_util.keystr(path)].view(leaf.dtype)
            return jax.make_array_from_callback(leaf.shape, leaf.sharding, array.__getitem__)

        return jax.tree_util.tree_map_with_path(place, target)
