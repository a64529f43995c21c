"""Rows of bytes and hashes: equal rows are found, also after collisions, in batches of any size."""

import itertools

import jax
import numpy as np
import pytest

from azjax.games import hashing, rows


@pytest.mark.parametrize("collide", [False, True])
def test_equal_rows_are_neighbors_and_keep_their_order(collide, monkeypatch):
    if collide:
        monkeypatch.setattr(rows, "_hash", lambda words: words[0] % 2)
    given = np.random.default_rng(0).integers(0, 3, (500, 9)).astype(np.uint8) // 2
    order, first, hashes = rows.group_equal(given)
    groups, listed = np.split(order, first[1:]), [tuple(row) for row in given.tolist()]
    assert sorted(order) == list(range(500))
    assert all((np.diff(group) > 0).all() for group in groups)
    assert [len({listed[row] for row in group}) for group in groups] == [1] * len({*listed})
    assert (hashes == rows.hashes(given[order[first]])).all() and (np.diff(hashes) >= 0).all()
    leaders, which = rows.distinct(given)
    assert leaders.tolist() == sorted({listed.index(row) for row in listed})
    assert [listed[row] for row in leaders[which]] == listed


@pytest.mark.parametrize("count", [0, 3, 4, 5])
def test_any_number_of_rows_is_processed_in_batches(count):
    """The results of an empty batch have their shapes and types."""
    given, done, shapes = np.arange(2 * count, dtype=np.int8).reshape(count, 2), [], []

    def function(x, y):
        shapes.append(x.shape)
        return x.sum(axis=1), y[:, None]

    sums, columns = rows.in_batches(function, (given, np.arange(count)), 4, done.append)
    assert shapes == [(4, 2)] * max(-(-count // 4), 1)
    assert sums.tolist() == given.sum(axis=1).tolist()
    assert columns.tolist() == [[row] for row in range(count)]
    assert done == [min(4 * (batch + 1), count) for batch in range(len(shapes))]


@pytest.mark.parametrize("coarse", [False, True])
def test_a_state_that_is_listed_twice_is_found(coarse, monkeypatch, some_states):
    """Also if many positions share half a hash."""
    weigh, calls = hashing.weigh, itertools.count()

    def weigh_coarsely(numbers, weights):  # The first of every two calls has few hashes.
        return weigh(numbers, weights) >> np.uint32(28 * (next(calls) % 2 == 0))

    if coarse:
        monkeypatch.setattr(hashing, "weigh", weigh_coarsely)
    among = jax.tree.map(lambda leaf: np.concatenate([leaf[:3], leaf[2::-1], leaf]), some_states)
    found = hashing.make_index(among)(some_states)
    np.testing.assert_array_equal(among.board[found], some_states.board)
    floats = np.float32([[0.25], [0.75], [-0.25], [-0.75]])  # All are 0 as integers.
    assert hashing.make_index(floats)(floats[::-1]).tolist() == [3, 2, 1, 0]
