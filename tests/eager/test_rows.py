"""Rows of bytes: packing, unpacking, and grouping of equal rows also after hash collisions."""

import numpy as np
import pytest

from azjax.games import rows


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
