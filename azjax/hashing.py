"""Hashes of states and of games, in 32 bits, the same on the host and on a device."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.game import State

_MIXERS = np.array([0x9E3779B1, 0x85EBCA77], np.uint32)


def contents(states: State, axes: int = 0) -> jax.Array:
    """Lays the numbers of states with `axes` axes in front out in rows `uint32 [..., N]`.

    A `float32` stands for its bits.

    Raises:
      ValueError: if a leaf holds other than whole numbers, truth values and `float32`.
    """
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(states)]
    leaves = [leaf.view(jnp.uint32) if leaf.dtype == jnp.float32 else leaf for leaf in leaves]
    for leaf in leaves:
        if leaf.dtype != bool and not jnp.issubdtype(leaf.dtype, jnp.integer):
            raise ValueError(
                f"a state with a leaf of {leaf.dtype} cannot be looked up: use whole numbers, such "
                "as int8, bool, or float32"
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


def buckets(states: State, count: int) -> jax.Array:
    """Returns `uint32 [N]`, to which of so many buckets each of the states `[N, ...]` belongs.

    Raises:
      ValueError: if a leaf cannot be looked up, see `contents`.
    """
    numbers = contents(states, axes=1)
    weights = np.random.default_rng(0).integers(2**31, size=numbers.shape[1], dtype=np.uint32)
    mixed = weigh(numbers, 2 * weights + 1)
    mixed = (mixed ^ (mixed >> 16)) * _MIXERS[1]
    return (mixed ^ (mixed >> 13)) % np.uint32(count)
