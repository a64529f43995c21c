"""Overrides up to symmetry."""

import jax
import numpy as np
import pytest

import azjax
import guard
from azjax.games.base import init_batch, play
from azjax.players import network_agent
from azjax.players.oriented import oriented_agent, oriented_overrides
from azjax.search.evaluators import uniform_evaluator

GAME = azjax.make("connect_four:4x4")
step = jax.jit(jax.vmap(lambda state, action: play(GAME, state, action).state))


def after(*lines):
    """The positions after lines of equal length."""
    states = jax.device_get(init_batch(GAME, len(lines)))
    for moves in zip(*lines, strict=True):
        states = jax.device_get(step(states, np.array(moves)))
    return states


def decide(overrides, states, game=GAME):
    agent = network_agent(game, uniform_evaluator(game), None)
    act = jax.jit(oriented_agent(game, "relative", agent, overrides).act)
    return act(None, jax.random.key(0), states)


def test_overrides_hold_in_all_symmetric_copies_and_nowhere_else():
    """Copies of one position become one entry; copies with different moves are refused."""
    with guard.sharing():
        states = after((0, 1), (3, 2), (1, 1))
        overrides = oriented_overrides(GAME, "relative", states, np.array([2, 1, 3]))
        assert overrides.planes.shape == (2, 4) and overrides.actions.shape == (2,)
        decision = decide(overrides, after((0, 1), (3, 2), (2, 2), (0, 2), (1, 0)))
        with pytest.raises(ValueError, match="different moves: make them equal"):
            oriented_overrides(GAME, "relative", states, np.array([2, 2, 3]))
        # A symmetric position keeps one of its two moves.
        both = oriented_overrides(GAME, "relative", after((), ()), np.array([3, 0]))
        alone = GAME._replace(symmetries=None)
        plain = oriented_overrides(alone, "relative", after((0, 1)), np.array([2]))
        one_way = decide(plain, after((0, 1), (3, 2)), alone)
    np.testing.assert_array_equal(decision.action, [2, 1, 0, 0, 0])
    np.testing.assert_array_equal(decision.weights[:3].argmax(axis=1), [2, 1, 0])
    np.testing.assert_array_equal(decision.weights[:3].max(axis=1), [1, 1, 1])
    np.testing.assert_allclose(decision.weights[3:].sum(axis=1), 1, rtol=1e-6)
    assert len(both.actions) == 1
    np.testing.assert_array_equal(one_way.action, [2, 0])
