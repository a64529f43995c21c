"""Full searches of every position of tic-tac-toe, and players of a game of many positions."""

import jax
import numpy as np
import pytest

from azjax.players import (
    alpha_beta_agent,
    minimax_agent,
    network_agent,
    perfect_agent,
    random_agent,
    search_agent,
)
from azjax.players.arena import play_games
from azjax.search import PUCT
from azjax.search.evaluators import Evaluator
from contract import ask, assert_contract, rows_of, same
from tables import bench


def ask_everywhere(agent, solution):
    """The decisions in all decision states, in batches by ply, which differ in cost."""
    found = []
    for ply in range(len(solution.layers) - 1):
        rows = np.arange(*solution.layers[ply : ply + 2])
        rows = rows[~solution.over[rows]]
        size = next(size for size in (1, 16, 256) if len(rows) <= size or size == 256)
        for first in range(0, len(rows), size):
            chunk = rows[first : first + size]
            decision = ask(agent, rows_of(solution.states, np.resize(chunk, size)), level=1)
            found.append(rows_of(decision, slice(len(chunk))))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)


def test_full_searches_equal_the_solver(solution):
    game, rows = bench("tic_tac_toe").game, solution.decisions
    plain, pruned = (
        ask_everywhere(make(game), solution) for make in (minimax_agent, alpha_beta_agent)
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
    lines = np.ones(solution.num_states, int)
    for state in reversed(rows):  # Children come after their parents.
        lines[state] += lines[solution.children[state][solution.legal[state]]].sum()
    np.testing.assert_array_equal(plain.nodes, lines[rows])
    assert (plain.nodes[0], pruned.nodes[0]) == (549_946, 18_297)
    early = (rows >= solution.layers[1]) & (rows < solution.layers[4])
    assert (pruned.nodes <= plain.nodes).all() and (pruned.nodes < plain.nodes)[early].all()
    late = rows >= solution.layers[6]
    beyond = ask(alpha_beta_agent(game, 50), rows_of(solution.decision_states, late))
    assert same(beyond, rows_of(pruned, late))  # A horizon beyond the end is the end.


@pytest.mark.parametrize("kind", ["network", "puct", "alpha_beta"])
def test_contract_in_connect_four(kind):
    game, table = bench("connect_four").game, bench("connect_four").random_table()
    evaluate = Evaluator(bench("connect_four").evaluate, is_deterministic=True)
    fields = {"value", "q_values", "nodes"}
    if kind == "network":
        agent, fields = network_agent(game, evaluate, table), {"value", "prior"}
    elif kind == "puct":
        agent = search_agent(game, PUCT(num_simulations=8), evaluate, table)
        fields |= {"prior", "visit_counts"}
    else:
        agent = alpha_beta_agent(game, 2, evaluate, table)
    assert_contract(agent, "connect_four", fields)


def test_players_that_cannot_be_traced_play_on_the_host(solution):
    game, calls = bench("tic_tac_toe").game, []
    perfect = perfect_agent(game, solution)

    def act(params, key, states):
        calls.append(len(np.asarray(states.board)))  # A tracer would not be an array.
        return perfect.act(params, key, states)

    on_host = perfect._replace(act=act, traceable=False)
    for seat in (0, 1):
        played = [
            play_games(game, one, random_agent(game), 20, jax.random.key(0), seat)
            for one in (on_host, perfect)
        ]
        assert all(map(np.array_equal, *played))
        last = played[0].plies.max() - 1  # Called only in its plies, once for the whole batch.
        assert calls == [20] * len([ply for ply in range(last + 1) if ply % 2 == seat])
        calls.clear()
