"""Hashes of states and of games: 32 bits each, equal on host and devices."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import State
from azjax.games.rows import distinct, pack

_MIXER = np.uint32(0x85EBCA77)  # A prime of xxHash, whose products mix well.


def contents(states: State, axes: int = 0) -> jax.Array:
    """Flattens states with `axes` leading axes to rows `uint32 [..., N]`, with bits of floats."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(states)]
    leaves = [leaf.view(jnp.uint32) if leaf.dtype == jnp.float32 else leaf for leaf in leaves]
    for leaf in leaves:
        is_number = jnp.issubdtype(leaf.dtype, jnp.integer) and leaf.dtype.itemsize <= 4
        if leaf.dtype != bool and not is_number:
            raise ValueError(
                f"a state with a leaf of {leaf.dtype} cannot be looked up: use bool, float32 or "
                "integers of at most 32 bits"
            )
    rows = [leaf.reshape(*leaf.shape[:axes], -1).astype(jnp.uint32) for leaf in leaves]
    return jnp.concatenate(rows, axis=-1)


def weigh(numbers: jax.Array | np.ndarray, weights: np.ndarray):
    """Hashes rows `uint32 [..., N]`: weighted sums modulo `2 ** 32`, with `uint32` weights."""
    weights = weights.reshape((1,) * (numbers.ndim - 1) + (-1,))
    return (numbers * weights).sum(axis=-1, dtype=np.uint32)


def buckets(states: State, count: int) -> jax.Array:
    """Assigns each of the states `[N, ...]` to one of `count` buckets, `uint32 [N]`."""
    numbers = contents(states, axes=1)
    weights = np.random.default_rng(0).integers(2**31, size=numbers.shape[1], dtype=np.uint32)
    return mix(weigh(numbers, 2 * weights + 1)) % np.uint32(count)


def mix(numbers: jax.Array) -> jax.Array:
    """Mixes the bits of `uint32` numbers."""
    mixed = (numbers ^ (numbers >> 16)) * _MIXER
    return mixed ^ (mixed >> 13)


def make_index(among: State) -> Callable[[State], jax.Array]:
    """Builds `states [B, ...] -> int32 [B]`, the row of each state in `among`, `[S, ...]`.

    The result for a state that is not in `among` is an arbitrary row.
    """
    flat = np.asarray(contents(among, axes=1))
    different, _ = distinct(pack(among))  # A position may be listed at two plies.
    flat = flat[different]
    size = 2, flat.shape[1]
    weights = np.random.default_rng(0).integers(1, 2**31, size, dtype=np.uint32)
    low, high = (weigh(flat, some) for some in weights)
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    same = low[1:] == low[:-1]
    if (same & (high[1:] == high[:-1])).any():
        raise ValueError(f"hashes of 64 bits do not distinguish these {len(flat)} positions")
    rows = different[order].astype(np.int32)
    most = 1  # Largest number of positions that share the lower half of their hashes.
    while same.any():
        most, same = most + 1, same[1:] & same[:-1]

    def index(states):
        numbers = contents(states, axes=1)
        first, second = (weigh(numbers, some) for some in weights)
        candidates = jnp.searchsorted(low, first)[:, None] + jnp.arange(most, dtype=jnp.int32)[None]
        candidates = jnp.minimum(candidates, len(rows) - 1)
        matches = jnp.asarray(low)[candidates] == first[:, None]
        matches &= jnp.asarray(high)[candidates] == second[:, None]
        row = jnp.take_along_axis(candidates, jnp.argmax(matches, axis=1)[:, None], axis=1)[:, 0]
        return jnp.asarray(rows)[row]

    return index
