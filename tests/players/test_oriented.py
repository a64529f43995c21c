"""Overrides up to symmetry."""

import jax
import numpy as np
import pytest

import azjax
from azjax.games.base import init_batch, play
from azjax.players import network_agent
from azjax.players.overrides import oriented_agent, oriented_overrides
from azjax.search.evaluators import uniform_evaluator

GAME = azjax.make("connect_four:4x4")
step = jax.jit(jax.vmap(lambda state, action: play(GAME, state, action).state))


@pytest.fixture(scope="module")
def game():
    return GAME


def after(game, *lines):
    """The positions after lines of equal length."""
    states = jax.device_get(init_batch(GAME, len(lines)))
    for moves in zip(*lines, strict=True):
        states = step(states, np.array(moves))
    return jax.device_get(states)


def actions(game, overrides, states):
    agent = network_agent(game, uniform_evaluator(game), None)
    agent = oriented_agent(game, "relative", agent, overrides)
    return jax.jit(agent.act)(None, jax.random.key(0), states)


def test_overrides_hold_in_all_symmetric_copies_and_nowhere_else(game):
    overrides = oriented_overrides(game, "relative", after(game, (0, 1)), np.array([2]))
    assert overrides.planes.shape == (1, 4) and overrides.actions.shape == (1,)
    decision = actions(game, overrides, after(game, (0, 1), (3, 2), (0, 2), (1, 0)))
    np.testing.assert_array_equal(decision.action, [2, 1, 0, 0])
    np.testing.assert_array_equal(decision.weights[:2].argmax(axis=1), [2, 1])
    np.testing.assert_array_equal(decision.weights[:2].max(axis=1), [1, 1])
    np.testing.assert_allclose(decision.weights[2:].sum(axis=1), 1, rtol=1e-6)


def test_symmetric_copies_become_one_entry(game):
    states = after(game, (0, 1), (3, 2), (1, 1))
    overrides = oriented_overrides(game, "relative", states, np.array([2, 1, 3]))
    assert len(overrides.actions) == 2
    decision = actions(game, overrides, after(game, (3, 2), (2, 2), (0, 1)))
    np.testing.assert_array_equal(decision.action, [1, 0, 2])


def test_copies_with_different_moves_are_refused(game):
    states = after(game, (0, 1), (3, 2))
    with pytest.raises(ValueError, match="different moves: make them equal"):
        oriented_overrides(game, "relative", states, np.array([2, 2]))


def test_a_symmetric_position_keeps_one_of_its_two_moves(game):
    both = after(game, (), ())  # The empty board is its own mirror image.
    overrides = oriented_overrides(game, "relative", both, np.array([3, 0]))
    assert actions(game, overrides, init_batch(game, 1)).action.tolist() in ([0], [3])


def test_games_without_symmetries_have_overrides_too():
    game = azjax.make("connect_four:4x4")._replace(symmetries=None)
    overrides = oriented_overrides(game, "relative", after(game, (0, 1)), np.array([2]))
    decision = actions(game, overrides, after(game, (0, 1), (3, 2)))
    np.testing.assert_array_equal(decision.action, [2, 0])
