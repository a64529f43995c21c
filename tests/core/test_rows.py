"""Rows of bytes: there and back, and equal ones found whatever their hashes."""

import itertools

import jax
import numpy as np
import pytest

from azjax import games, rows
from azjax.game import init_batch
from small import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_is_packed_can_be_unpacked(name):
    game = games.make(name)
    rng = np.random.default_rng(0)
    states = jax.tree.map(
        lambda leaf: rng.integers(0, 2, leaf.shape).astype(leaf.dtype), init_batch(game, 3)
    )
    packed = rows.pack(states)
    assert packed.dtype == np.uint8 and len(packed) == 3
    jax.tree.map(np.testing.assert_array_equal, rows.unpack(game, packed), states)


@pytest.mark.parametrize("collide", [False, True])
def test_equal_rows_stand_together_and_keep_their_order(collide, monkeypatch):
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
    """Those of stones on ten squares that are the last bytes of the words that are hashed."""
    given = np.zeros((3**10, 43), np.uint8)
    squares = [place for place in range(40) if place % 8 >= 6]
    given[:, squares] = np.array(list(itertools.product((0, 1, 255), repeat=10)))
    found = rows.hashes(given)
    assert len(np.unique(found)) == len(given)
    halves = np.concatenate([found >> np.uint64(32), found & np.uint64(2**32 - 1)])
    assert len(np.unique(halves)) > 0.999 * len(halves)


def test_no_rows_are_no_groups():
    assert [len(found) for found in rows.group_equal(np.zeros((0, 4), np.uint8))] == [0, 0, 0]


def test_batches_are_of_one_size_and_none_is_lost():
    seen = []

    def double(x):
        seen.append(len(x))
        return x * 2, x + 1

    twice, next_one = rows.in_batches(double, (np.arange(10),), 4)
    assert seen == [4, 4, 4]
    assert twice.tolist() == list(range(0, 20, 2)) and next_one.tolist() == list(range(1, 11))
