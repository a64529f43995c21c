"""States on the host as rows of bytes: packed, unpacked, and told apart exactly."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from azjax.game import Game, State, state_shapes


def pack(states: State) -> np.ndarray:
    """Lays the bytes of states `[N, ...]` out in rows `uint8 [N, R]`."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(states)]
    flat = [leaf.reshape(len(leaf), math.prod(leaf.shape[1:])) for leaf in leaves]
    rows = [np.ascontiguousarray(leaf).view(np.uint8) for leaf in flat]
    return np.concatenate(rows, axis=1)


def unpack(game: Game, rows: np.ndarray) -> State:
    """Makes states `[N, ...]` of rows `uint8 [N, R]` again."""
    leaves, tree = jax.tree.flatten(state_shapes(game))
    ends = np.cumsum([leaf.size * leaf.dtype.itemsize for leaf in leaves])[:-1]
    parts = np.split(rows, ends, axis=1)
    return tree.unflatten(
        np.ascontiguousarray(part).view(leaf.dtype).reshape(len(rows), *leaf.shape)
        for part, leaf in zip(parts, leaves, strict=True)
    )


def as_keys(rows: np.ndarray) -> np.ndarray:
    """Views rows `uint8 [N, R]` as `[N]` keys, which are compared as a whole."""
    return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()


def hashes(rows: np.ndarray) -> np.ndarray:
    """Returns `uint64 [N]`, which rows `uint8 [N, R]` rarely share unless they are equal."""
    words = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8))).view(np.uint64)
    weights = np.random.default_rng(0).integers(1, 2**63, words.shape[1], np.uint64) * 2 + 1
    mixed = (words * weights).sum(axis=1, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


def group_equal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorts rows `uint8 [N, R]` by their hashes, so that equal ones stand together.

    Returns:
      The order `int64 [N]`, in which equal rows keep theirs; the places `int64 [D]` in it
      at which each of the `D` different rows begins; and their hashes `uint64 [D]`.
    """
    hashed = hashes(rows)
    order = np.argsort(hashed, kind="stable")
    same = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    if (same != (hashed[order[1:]] == hashed[order[:-1]])).any():  # Different rows share one.
        order = np.argsort(as_keys(rows), kind="stable")
        order = order[np.argsort(hashed[order], kind="stable")]
        same = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    first = np.flatnonzero(np.concatenate([np.ones(min(len(rows), 1), bool), ~same]))
    return order, first, hashed[order[first]]


def in_batches(
    function: Callable, arrays: Any, size: int, notify: Callable[[int], None] = lambda done: None
) -> Any:
    """Applies a compiled function to arrays `[N, ...]`, `size` rows at a time, all alike.

    The last batch is filled up with its last row, so that one shape is compiled.

    Args:
      function: of the arrays; its results are `[size, ...]`.
      arrays: a tuple of trees, one for each argument.
      size: rows of a batch.
      notify: is called after every batch with the number of rows done.
    """
    count = len(jax.tree.leaves(arrays)[0])
    results = []
    for start in range(0, max(count, 1), size):
        rows = np.clip(np.arange(start, start + size), 0, count - 1)
        results.append(jax.device_get(function(*jax.tree.map(lambda leaf: leaf[rows], arrays))))
        notify(min(start + size, count))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *results)
