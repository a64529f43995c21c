"""Full searches of tic-tac-toe, and players on the host."""

import itertools

import jax
import numpy as np

from azjax.players import Agent, Decision, minimax_agent, perfect_agent, random_agent
from azjax.players.arena import play_games
from contract import ask, rows_of
from tables import bench


def ask_everywhere(agent, solution, asked):
    """The decisions in some states, in batches by ply, which differ in cost."""
    found = []
    for start, end in itertools.pairwise(solution.layers):
        rows = asked[(asked >= start) & (asked < end)]
        size = next(size for size in (1, 16, 256) if len(rows) <= size or size == 256)
        for first in range(0, len(rows), size):
            chunk = rows[first : first + size]
            decision = ask(agent, rows_of(solution.states, np.resize(chunk, size)), level=1)
            found.append(rows_of(decision, slice(len(chunk))))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)


def test_full_searches_equal_the_solver(solution):
    """From the empty board and from every eighth position."""
    game, rows = bench("tic_tac_toe").game, solution.decisions[::8]
    plain, pruned = (
        ask_everywhere(minimax_agent(game, prune=prune), solution, rows) for prune in (False, True)
    )
    optimal, legal = solution.optimal[rows], solution.legal[rows]
    outcomes = np.where(legal, solution.action_values[rows], 0)
    for found in (plain, pruned):
        np.testing.assert_array_equal(found.value, solution.values[rows])
        np.testing.assert_array_equal(found.action, optimal.argmax(axis=1))
    np.testing.assert_array_equal(plain.q_values, outcomes)
    np.testing.assert_allclose(plain.weights, optimal / optimal.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(pruned.weights, np.eye(9)[pruned.action])
    assert (pruned.q_values >= outcomes).all()  # Upper bounds.
    assert (plain.nodes[0], pruned.nodes[0]) == (549_946, 18_297)
    assert (pruned.nodes <= plain.nodes).all()


def test_a_player_may_call_another_program(solution):
    game, calls = bench("tic_tac_toe").game, []
    perfect = perfect_agent(game, solution)

    def pass_on(action):
        calls.append(len(action))
        return np.asarray(action)

    def act(params, key, states):
        action = perfect.act(params, key, states).action
        return Decision(jax.pure_callback(pass_on, action, action), None)

    for seat in (0, 1):
        played = [
            play_games(game, one, random_agent(game), 20, jax.random.key(0), seat)
            for one in (Agent("outside", act), perfect)
        ]
        assert all(map(np.array_equal, *played))
        plies = (played[0].actions >= 0).sum(axis=1).max()
        assert calls == [20] * len(range(seat, plies, 2))  # Once for the whole batch.
        calls.clear()
