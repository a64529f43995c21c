"""Trees of arrays on disk, as NumPy's files: one `arrays.npz` a folder, by their names.

A typed key is written as its data; who reads it says which implementation it is of.
"""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_FILE = "arrays.npz"


def write(folder: pathlib.Path, tree: Any) -> None:
    """Writes a tree into a folder, which is made if it does not exist.

    Raises:
      OSError: if the disk is full.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    named: Any = {jax.tree_util.keystr(path): np.asarray(plain(leaf)) for path, leaf in leaves}
    folder.mkdir(exist_ok=True)
    np.savez(folder / _FILE, **named)


def read(folder: pathlib.Path, target: Any) -> Any:
    """Reads a tree back, each of several processes its own part of it.

    Args:
      folder: that it was written into.
      target: shapes, types and places of its arrays, `jax.ShapeDtypeStruct`; typed keys are of
        the implementation that they were written with.
    """
    with np.load(folder / _FILE, allow_pickle=False) as file:

        def place(path, leaf):
            array = file[jax.tree_util.keystr(path)]
            if not is_key(leaf):
                # NumPy forgets the names of types that are not its own, such as bfloat16.
                array = array.view(leaf.dtype)
            placed = jax.make_array_from_callback(array.shape, leaf.sharding, array.__getitem__)
            return jax.random.wrap_key_data(placed, impl=key_impl(leaf)) if is_key(leaf) else placed

        return jax.tree_util.tree_map_with_path(place, target)


def is_key(leaf: Any) -> bool:
    """Whether an array, or a description of one, is of typed keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_impl(leaf: Any) -> str:
    """Returns the name of the implementation of typed keys, such as `threefry2x32`."""
    return str(jax.random.key_impl(jnp.empty((), leaf.dtype)))


def plain(leaf: jax.Array) -> jax.Array:
    """Returns the data of typed keys, and any other array as it is."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf
