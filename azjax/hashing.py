"""Hashes of states and of games, in 32 bits, the same on the host and on a device."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.game import State

_MIXERS = np.array([0x9E3779B1, 0x85EBCA77], np.uint32)


def contents(states: State, axes: int = 0) -> jax.Array:
    """Lays the numbers of states with `axes` axes in front out in rows `uint32 [..., N]`.

    Raises:
      ValueError: if a leaf holds other than whole numbers and truth values.
    """
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(states)]
    for leaf in leaves:
        if leaf.dtype != bool and not jnp.issubdtype(leaf.dtype, jnp.integer):
            raise ValueError(
                f"a state with a leaf of {leaf.dtype} cannot be looked up: use whole numbers, such "
                "as int8, or bool"
            )
    rows = [leaf.reshape(*leaf.shape[:axes], -1).astype(jnp.uint32) for leaf in leaves]
    return jnp.concatenate(rows, axis=-1)


def weigh(numbers: jax.Array | np.ndarray, weights: np.ndarray):
    """Hashes rows `uint32 [..., N]`: their sums with `uint32` weights, modulo `2 ** 32`."""
    return (numbers * weights).sum(axis=-1, dtype=np.uint32)


def mix(digests: jax.Array, numbers) -> jax.Array:
    """Takes one more number of `[B]` into each pair of hashes, `uint32 [B, 2]`."""
    mixed = (digests + jnp.asarray(numbers).astype(jnp.uint32)[:, None] + 1) * _MIXERS
    return mixed ^ (mixed >> 15)
