"""Hashes are equal on host and devices, and stable across versions, because files contain them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import hashing
from azjax.games.base import init_batch
from nim import NIM

BOARD = [1, -1, 0, 0, 1, 0, 0, 0, -1]


@pytest.mark.compiles(1)
def test_the_host_and_the_device_agree(some_states):
    numbers = hashing.contents(some_states, axes=1)
    weights = np.random.default_rng(0).integers(2**32, size=11, dtype=np.uint32)
    host = hashing.weigh(np.asarray(numbers), weights)
    assert isinstance(host, np.ndarray) and host.dtype == np.uint32
    exact = [
        sum(a * b for a, b in zip(row, weights.tolist(), strict=True)) for row in numbers.tolist()
    ]
    assert host.tolist() == [number % 2**32 for number in exact]
    np.testing.assert_array_equal(jax.jit(lambda x: hashing.weigh(x, weights))(numbers), host)


def test_digests_are_stable():
    digests = hashing.mix(hashing.mix(jnp.zeros((2, 2), jnp.uint32), [0, 7]), np.array([3, 3]))
    assert digests.tolist() == [[676580436, 1920438226], [362268476, 1498999816]]


def test_fractions_are_hashed():
    states = jnp.array([[0.25, 7], [0.5, 7], [0.25, 7]], jnp.float32)
    first, second, third = hashing.contents(states, axes=1).tolist()
    assert first == third != second
    assert second == np.array([0.5, 7], np.float32).view(np.uint32).tolist()


def test_floats_of_other_precisions_are_refused():
    """Otherwise positions with different fractions would be equal."""
    game = NIM._replace(
        init=lambda: jnp.array([7, 0], jnp.float16),
        player=lambda state: (state[1] % 2).astype(jnp.int8),
    )
    with pytest.raises(ValueError, match="a state with a leaf of float16 cannot be looked up: use"):
        hashing.contents(init_batch(game, 2), axes=1)
    with pytest.raises(ValueError, match="use integers, bool or float32"):
        hashing.make_index(NIM, np.zeros((3, 2), np.float16))


def test_a_state_that_is_listed_twice_is_found(tic_tac_toe, some_states):
    among = jax.tree.map(lambda leaf: np.concatenate([leaf[:3], leaf[2::-1], leaf]), some_states)
    rows = hashing.make_index(tic_tac_toe, among)(some_states)
    np.testing.assert_array_equal(among.board[rows], some_states.board)


def test_another_hash_is_tried_after_a_collision(monkeypatch, tic_tac_toe, some_states):
    class Alike:
        def integers(self, low, high, size, dtype):
            return np.ones(size, dtype)

    draws = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: draws(seed) if seed else Alike())
    rows = hashing.make_index(tic_tac_toe, some_states)(some_states)
    np.testing.assert_array_equal(rows, np.arange(len(some_states.board)))
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Alike())
    with pytest.raises(ValueError, match="do not distinguish the 128 positions of tic_tac_toe"):
        hashing.make_index(tic_tac_toe, some_states)


def test_positions_that_share_half_a_hash_are_distinguished(monkeypatch, tic_tac_toe, some_states):
    weigh = hashing.weigh
    calls = itertools.count()

    def weigh_coarsely(numbers, weights):  # The first of every two calls has few hashes.
        return weigh(numbers, weights) >> np.uint32(28 * (next(calls) % 2 == 0))

    monkeypatch.setattr(hashing, "weigh", weigh_coarsely)
    rows = hashing.make_index(tic_tac_toe, some_states)(some_states)
    np.testing.assert_array_equal(rows, np.arange(len(some_states.board)))
