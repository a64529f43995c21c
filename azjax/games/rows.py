"""States on the host as rows of bytes: packed, unpacked, and compared exactly."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from azjax.games.base import Game, State, state_shapes


def pack(states: State) -> np.ndarray:
    """Packs states `[N, ...]` into rows of bytes `uint8 [N, R]`."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(states)]
    flat = [leaf.reshape(len(leaf), math.prod(leaf.shape[1:])) for leaf in leaves]
    rows = [np.ascontiguousarray(leaf).view(np.uint8) for leaf in flat]
    return np.concatenate(rows, axis=1)


def unpack(game: Game, rows: np.ndarray) -> State:
    """Restores states `[N, ...]` from rows `uint8 [N, R]`."""
    leaves, tree = jax.tree.flatten(state_shapes(game))
    ends = np.cumsum([leaf.size * leaf.dtype.itemsize for leaf in leaves])[:-1]
    parts = np.split(rows, ends, axis=1)
    return tree.unflatten(
        np.ascontiguousarray(part).view(leaf.dtype).reshape(len(rows), *leaf.shape)
        for part, leaf in zip(parts, leaves, strict=True)
    )


def hashes(rows: np.ndarray) -> np.ndarray:
    """Returns hashes `uint64 [N]` of rows `uint8 [N, R]`; collisions are rare."""
    return _hash(_words(rows))


def _words(rows: np.ndarray) -> np.ndarray:
    """Views rows `uint8 [N, R]`, padded with zeros, as columns `uint64 [W, N]`."""
    count, width = rows.shape
    filled = np.zeros((count, -(-width // 8) * 8), np.uint8)
    filled[:, :width] = rows
    return np.ascontiguousarray(filled.view(np.uint64).T)


def _hash(words: np.ndarray) -> np.ndarray:
    """Computes two 32-bit hashes; two different rows collide in each with probability `2 ** -32`.

    They are the upper halves of sums of 32-bit numbers with random 64-bit weights (Lemire and Kaser
    2014, "Strongly universal string hashing is fast"). The words are split into halves because the
    bound does not hold for 64-bit numbers.
    """
    weights = np.random.default_rng(0).integers(0, 2**64, (len(words), 2, 2), np.uint64)
    upper, lower = np.zeros((2, words.shape[1]), np.uint64)
    half = np.uint64(32)
    for word, ((a, b), (c, d)) in zip(words, weights, strict=True):
        first, second = word >> half, word & np.uint64(2**32 - 1)
        upper += a * first + b * second
        lower += c * first + d * second
    return upper >> half << half | lower >> half


def group_equal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorts rows `uint8 [N, R]` by their hashes; equal rows become neighbors.

    Returns:
      The stable order `int64 [N]`; the positions `int64 [D]` in it at which each of the `D`
      different rows begins; and their hashes `uint64 [D]`.
    """
    words = _words(rows)
    hashed = _hash(words)
    order = _argsort(hashed)

    def equal_neighbors(columns):
        same = np.ones(max(len(rows) - 1, 0), bool)
        for column in columns:
            arranged = column[order]
            same &= arranged[1:] == arranged[:-1]
        return same

    same = equal_neighbors(words)
    if (same != equal_neighbors([hashed])).any():  # A collision.
        whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1])))
        order = np.argsort(whole.ravel(), kind="stable")
        order = order[np.argsort(hashed[order], kind="stable")]
        same = equal_neighbors(words)
    first = np.flatnonzero(np.concatenate([np.ones(min(len(rows), 1), bool), ~same]))
    return order, first, hashed[order[first]]


def _argsort(hashed: np.ndarray) -> np.ndarray:
    """Computes `np.argsort(hashed, kind="stable")` for `uint64 [N]`, but faster.

    NumPy sorts values faster than it finds their order. Therefore the indices replace the lower
    bits of the values; the result is nearly sorted, and sorting it again is fast.
    """
    places = np.arange(len(hashed), dtype=np.uint64)
    lower = np.uint64(2 ** len(hashed).bit_length() - 1)
    order = (np.sort(hashed & ~lower | places) & lower).astype(np.int64)
    return order[np.argsort(hashed[order], kind="stable")]


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds equal rows among rows `uint8 [N, R]`.

    Returns:
      The `D` ascending indices of the first row of each group of equal rows, and `int64 [N]`, the
      group of each row.
    """
    order, starts, _ = group_equal(rows)
    leaders = order[starts]  # Equal rows keep their order.
    first = np.sort(leaders)
    rank, which = np.empty_like(order), np.empty_like(order)
    rank[first] = np.arange(len(first))
    which[order] = np.repeat(rank[leaders], np.diff(starts, append=len(order)))
    return first, which


def in_batches(function: Callable, arrays: Any, size: int) -> Any:
    """Applies a compiled function to arrays `[N, ...]`; concatenates the results of `batches`."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *batches(function, arrays, size))


def batches(function: Callable, arrays: Any, size: int) -> Iterator[Any]:
    """Applies a compiled function to arrays `[N, ...]`, `size` rows at a time.

    The last batch is padded with its last row, so that only one shape is compiled. If the arrays
    have no rows, the function is applied to one batch of zeros. The next batch is computed while
    the caller uses the current one.

    Args:
      function: the compiled function; its results are `[size, ...]`.
      arrays: a tuple of trees, one for each argument.
      size: number of rows in a batch.

    Yields:
      The results of every batch, on the host, without the padding.
    """
    count = len(jax.tree.leaves(arrays)[0])
    if not count:
        arrays = jax.tree.map(lambda leaf: np.zeros((1, *leaf.shape[1:]), leaf.dtype), arrays)

    def run(start):
        rows = np.clip(np.arange(start, start + size), 0, max(count - 1, 0))
        return function(*jax.device_put(jax.tree.map(lambda leaf: leaf[rows], arrays)))

    starts = range(0, max(count, 1), size)
    current = run(0)
    for start in starts:
        following = run(start + size) if start + size in starts else None
        rest = count - start
        yield jax.tree.map(lambda leaf, rest=rest: leaf[:rest], jax.device_get(current))
        current = following
