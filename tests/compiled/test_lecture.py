"""The lecture's players: one with a memory, its games, and counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.players import Agent, Decision
from experiments.lecture import matches
from experiments.lecture.cast import Setup
from experiments.lecture.learning import play_series
from experiments.lecture.persistent import PersistentPlayer, make_persistent
from reference import tic_tac_toe as rules
from small import take


@pytest.mark.compiles(3)
def test_a_memory_adds_up_and_finds_the_best_moves(tic_tac_toe, solution):
    """In late positions of both players; a large constant tries all moves equally often."""
    stones = (solution.states.board[solution.decisions] != 0).sum(axis=1)
    late = solution.decisions[stones >= 5][::30]
    states, rows = take(solution.states, late), np.arange(len(late))
    children = solution.children[late]

    def learn_twice(*settings):
        player = make_persistent(tic_tac_toe, solution, *settings)
        memory, learn = player.init_memory(len(late)), jax.jit(player.learn)
        for calls in (1, 2):
            actions, memory = learn(jax.random.key(calls), states, memory)
            visits = memory.visits[rows[:, None], children] * memory.tried[rows, late]
            assert (visits.sum(axis=1) == calls * settings[0]).all()
        return actions, visits, memory

    actions, visits, memory = learn_twice(500, 1.0)
    assert solution.optimal[late, actions].all()
    found = memory.totals[rows, children[rows, actions]] / visits[rows, actions]
    values = solution.values[late] * (1 - 2 * solution.player[late])
    assert np.corrcoef(found, values)[0, 1] > 0.9
    (_, visits, _), legal = learn_twice(100, 90.0), states.board == 0
    assert (abs(visits - 200 / legal.sum(axis=1, keepdims=True)) < 12)[legal].all()
    tried = learn_twice(1, 0.3)[1] > 0
    np.testing.assert_array_equal(tried, legal & (np.cumsum(legal[:, ::-1], 1)[:, ::-1] <= 2))


# Games.


@pytest.fixture(scope="module")
def lowest(tic_tac_toe):
    """Plays the first legal action."""

    def act(params, key, states):
        legal = jax.vmap(tic_tac_toe.legal_actions)(states)
        return Decision(jnp.argmax(legal, axis=1).astype(jnp.int32), legal / 1.0)

    return Agent("lowest", act, deterministic=True)


def counting(game):
    """Counts its games; its first move in game n is the nth free cell."""

    def learn(key, states, memory):
        legal = jax.vmap(game.legal_actions)(states)
        begins = jnp.sum(states.board != 0, axis=1) < 2
        turn = jnp.where(begins, memory, 0) % jnp.sum(legal, axis=1)
        action = jnp.argmax(jnp.cumsum(legal, axis=1) > turn[:, None], axis=1)
        return action.astype(jnp.int32), memory + begins

    return PersistentPlayer(lambda batch_size: jnp.zeros(batch_size, jnp.int32), learn)


def outcome(opening):
    """Returns the first player's outcome if both play the first legal move after the opening."""
    position, total, action = rules.start(), 0, opening
    while not position.over:
        sign = 1 if position.player == 0 else -1
        position, reward = rules.play(position, action)
        total += sign * reward
        action = position.board.index(0) if 0 in position.board else None
    return total


@pytest.mark.compiles(1)
def test_memories_last_from_game_to_game(tic_tac_toe, lowest):
    """The player opens with a different cell in each game; every series has a separate memory."""
    player, key = counting(tic_tac_toe), jax.random.key(0)
    player = player._replace(init_memory=lambda batch_size: jnp.arange(batch_size) * 2)
    result = play_series(tic_tac_toe, player, lowest, 5, 3, key)
    expected = [outcome(opening) for opening in range(9)]
    assert result.dtype == np.int8
    assert result.tolist() == [expected[game : game + 5 : 2] for game in range(5)]
    assert len({*expected}) > 1


@pytest.mark.compiles(2)
def test_outcomes_are_those_of_the_first_player(tic_tac_toe, solution, lowest, monkeypatch):
    """MCTS is compiled once, as the second agent; here both players are simple."""
    setup = Setup(tic_tac_toe, solution, quick=True, seed=0)
    monkeypatch.setattr(matches, "player", lambda name: lowest._replace(name=name))
    for first, second in (("MCTS(10)", "random"), ("random", "MCTS(10)"), ("a", "b")):
        outcomes = matches._play(setup, first, second, 8, jax.random.key(0))
        assert outcomes.tolist() == [outcome(0)] * 8 == [1] * 8
