"""Rows of bytes: packing, unpacking, and grouping of equal rows also after hash collisions."""

import itertools

import jax
import numpy as np
import pytest

from azjax import games
from azjax.games import rows
from azjax.games.base import init_batch


@pytest.mark.parametrize("name", ["tic_tac_toe", "hex_swap:3"])
def test_unpacking_inverts_packing(name):
    game = games.make(name)
    rng = np.random.default_rng(0)
    states = jax.tree.map(
        lambda leaf: rng.integers(0, 2, leaf.shape).astype(leaf.dtype), init_batch(game, 3)
    )
    packed = rows.pack(states)
    assert packed.dtype == np.uint8 and len(packed) == 3
    jax.tree.map(np.testing.assert_array_equal, rows.unpack(game, packed), states)


@pytest.mark.parametrize("collide", [False, True])
def test_equal_rows_are_neighbors_and_keep_their_order(collide, monkeypatch):
    if collide:
        monkeypatch.setattr(rows, "_hash", lambda words: words[0] % 2)
    given = np.random.default_rng(0).integers(0, 3, (500, 4)).astype(np.uint8)
    order, first, hashes = rows.group_equal(given)
    groups = np.split(order, first[1:])
    assert sorted(order) == list(range(500))
    assert all((np.diff(group) > 0).all() for group in groups)
    assert len(groups) == len({tuple(row) for row in given.tolist()})
    assert all(len(np.unique(given[group], axis=0)) == 1 for group in groups)
    assert (hashes == rows.hashes(given[order[first]])).all()
    assert (hashes[1:] >= hashes[:-1]).all()


def test_different_rows_have_different_hashes():
    """Rows with stones on eight squares, in the last bytes of the hashed words."""
    given = np.zeros((3**8, 43), np.uint8)
    squares = [place for place in range(32) if place % 8 >= 6]
    given[:, squares] = np.array(list(itertools.product((0, 1, 255), repeat=8)))
    result = rows.hashes(given)
    assert len(np.unique(result)) == len(given)
    halves = np.concatenate([result >> np.uint64(32), result & np.uint64(2**32 - 1)])
    assert len(np.unique(halves)) > 0.999 * len(halves)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8])
def test_any_number_of_rows_is_processed_in_batches(count):
    """The results of an empty batch have their shapes and types."""
    given = {"a": np.arange(2 * count, dtype=np.int8).reshape(count, 2), "b": np.arange(count)}
    done, seen = [], []

    def function(x, y):
        seen.append((x["a"].shape, y.shape))
        return x["a"].sum(axis=1), y[:, None] + x["b"][:, None]

    sums, columns = rows.in_batches(function, (given, np.ones(count)), 4, done.append)
    assert {*seen} == {((4, 2), (4,))} and len(seen) == max(-(-count // 4), 1)
    assert sums.tolist() == given["a"].sum(axis=1).tolist() and columns.shape == (count, 1)
    assert columns[:, 0].tolist() == [1 + row for row in range(count)]
    assert done == [min(4 * (batch + 1), count) for batch in range(len(seen))]


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("width", [1, 7, 8, 9, 17])
def test_distinct_returns_the_first_of_equal_rows(width, collide, monkeypatch):
    if collide:
        monkeypatch.setattr(rows, "_hash", lambda words: words[0] % 3)
    given = np.random.default_rng(width).integers(0, 2, (200, width)).astype(np.uint8)
    given[:, : max(width - 5, 0)] = 7  # Rows differ only in their last bytes.
    first, which = rows.distinct(given)
    listed, expected = [tuple(row) for row in given.tolist()], []
    for row in listed:
        if row not in expected:
            expected.append(row)
    assert [listed[row] for row in first] == expected
    assert first.tolist() == [listed.index(row) for row in expected]
    assert [expected[place] for place in which] == listed


@pytest.mark.parametrize("spread", [1, 2, 5, 2**40, 2**64 - 1])
def test_hashes_are_sorted_as_numpy_does(spread):
    """The order is stable, for few values, for differences in the lowest bits, and the largest."""
    for count in (0, 1, 2, 255, 256, 1000):
        values = np.random.default_rng(count).integers(0, spread, count, np.uint64, endpoint=True)
        for given in (values, np.uint64(2**64 - 1) - values):
            assert (rows._argsort(given) == np.argsort(given, kind="stable")).all()
