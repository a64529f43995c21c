"""Hashes are equal on host and devices, and stable across versions, because files contain them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import hashing


def test_digests_are_stable():
    digests = hashing.mix(hashing.mix(jnp.zeros((2, 2), jnp.uint32), [0, 7]), np.array([3, 3]))
    assert digests.tolist() == [[676580436, 1920438226], [362268476, 1498999816]]


def test_a_state_that_is_listed_twice_is_found(tic_tac_toe, some_states):
    among = jax.tree.map(lambda leaf: np.concatenate([leaf[:3], leaf[2::-1], leaf]), some_states)
    rows = hashing.make_index(tic_tac_toe, among)(some_states)
    np.testing.assert_array_equal(among.board[rows], some_states.board)


def test_positions_that_share_half_a_hash_are_distinguished(monkeypatch, tic_tac_toe, some_states):
    weigh = hashing.weigh
    calls = itertools.count()

    def weigh_coarsely(numbers, weights):  # The first of every two calls has few hashes.
        return weigh(numbers, weights) >> np.uint32(28 * (next(calls) % 2 == 0))

    monkeypatch.setattr(hashing, "weigh", weigh_coarsely)
    rows = hashing.make_index(tic_tac_toe, some_states)(some_states)
    np.testing.assert_array_equal(rows, np.arange(len(some_states.board)))
