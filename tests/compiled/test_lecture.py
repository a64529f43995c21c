"""The lecture's players: one with a memory against a slow reference, its games, and counts."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.players import Agent, Decision
from experiments.lecture import matches
from experiments.lecture.cast import Setup
from experiments.lecture.learning import play_series
from experiments.lecture.persistent import PersistentConfig, PersistentPlayer, make_persistent
from reference import persistent
from reference import tic_tac_toe as rules

LANES, CONSTANT = 192, 0.3


@pytest.mark.compiles(1)
@pytest.mark.parametrize("expansion", ["last", "random"])
@pytest.mark.parametrize("count", [3, 30])  # Three try only some of the actions.
def test_visits_are_distributed_as_in_the_reference(tic_tac_toe, count, expansion):
    """The means of the players agree within five standard errors, at one move and a later one."""
    player = make_persistent(tic_tac_toe, PersistentConfig(count, CONSTANT, expansion, 512))
    learn = jax.jit(player.learn)
    memory, rng = player.init_memory(LANES), random.Random(0)
    references = [persistent.Memory() for _ in range(LANES)]
    position, state = rules.start(), tic_tac_toe.init()
    for seed, moves in enumerate([(0, 4, 8, 2), (6,)]):
        for move in moves:
            position, _ = rules.play(position, move)
            state, _ = tic_tac_toe.step(state, move)
        states = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[None], LANES, axis=0), state)
        decision, memory = learn(jax.random.key(seed), states, memory)
        expected = np.zeros((LANES, 9))
        for lane, reference in enumerate(references):
            args = rules, reference, position, count, CONSTANT, rng, expansion
            for action, visits in persistent.learn(*args).items():
                expected[lane, action] = visits
        for power in (1, 2):  # Also compare the spread.
            actual, wanted = decision.visit_counts.astype(float) ** power, expected**power
            error = np.sqrt((actual.var(axis=0) + wanted.var(axis=0)) / LANES)
            assert (abs(actual.mean(axis=0) - wanted.mean(axis=0)) <= 5 * error + 1e-9).all()
        sign = 1 if position.player == 0 else -1  # Outcomes are for player 0.
        action = int(expected.sum(axis=0).argmax())
        after = [(each, each.children[position].get(action)) for each in references]
        means = [sign * each.totals[to] / each.visits[to] for each, to in after if to]
        actual = decision.q_values[np.asarray(decision.visit_counts[:, action]) > 0, action]
        error = np.sqrt(np.var(means) / len(means) + actual.var() / len(actual))
        assert abs(np.mean(means) - actual.mean()) <= 5 * error + 1e-6


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
        return Decision(action.astype(jnp.int32), legal / 1.0), memory + begins

    return PersistentPlayer("counting", lambda batch_size: jnp.zeros(batch_size, jnp.int32), learn)


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


@pytest.fixture(scope="module")
def setup(tic_tac_toe, solution):
    return Setup(tic_tac_toe, solution, quick=True, seed=0)


@pytest.mark.compiles(2)
def test_outcomes_are_those_of_the_first_player(setup, lowest, monkeypatch):
    """MCTS is compiled once, as the second agent; here both players are simple."""
    monkeypatch.setattr(matches, "player", lambda name: lowest._replace(name=name))
    for first, second in (("MCTS(10)", "random"), ("random", "MCTS(10)"), ("a", "b")):
        outcomes = matches._play(setup, first, second, 8, jax.random.key(0))
        assert outcomes.tolist() == [outcome(0)] * 8 == [1] * 8
