"""Full searches of tic-tac-toe, players of a game of many positions, and ratings."""

import functools
import itertools
import math

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
from azjax.players.statistics import fit, mean_score
from azjax.search import PUCT
from azjax.search.evaluators import Evaluator
from contract import ask, assert_contract, rows_of
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
        ask_everywhere(make(game), solution, rows) for make in (minimax_agent, alpha_beta_agent)
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
        plies = (played[0].actions >= 0).sum(axis=1).max()
        assert calls == [20] * len(range(seat, plies, 2))  # Once for the whole batch.
        calls.clear()


# Simulated samples: intervals and ratings cover the true values, and are not wide.

ELO = 400 / math.log(10)
PAIRS = np.array(list(itertools.permutations(range(5), 2)))
RATES = [(0.4, 0.3, 0.3), (0, 0.02, 0.98), (0.01, 0.01, 0.98), (1e-3, 0, 0.999), (0.1, 0.9, 0)]


def tournament(seed, elo, advantage, nu, games):
    """Counts `[20, 3]` of all ordered pairs of five players."""
    x = (elo[PAIRS[:, 0]] - elo[PAIRS[:, 1]] + advantage) / ELO
    weights = np.stack([np.exp(x / 2), np.full(len(x), nu), np.exp(-x / 2)], axis=1)
    rates = weights / weights.sum(axis=1, keepdims=True)
    return np.random.default_rng(seed).multinomial(games, rates)


@pytest.mark.parametrize("rates", RATES)
def test_mean_score_covers_and_is_not_wide(rates, games=100, samples=1000):
    interval = functools.lru_cache(mean_score)
    drawn = np.random.default_rng(0).multinomial(games, rates, samples).tolist()
    result = np.array([interval(*triple) for triple in drawn])
    mean = rates[0] + rates[1] / 2
    covered = np.mean((result[:, 1] <= mean) & (mean <= result[:, 2]))
    assert covered >= 0.93
    normal = 2 * 1.96 * math.sqrt((rates[0] + rates[1] / 4 - mean**2) / games)
    assert np.mean(result[:, 2] - result[:, 1]) < normal + 3 / games


def test_ratings_cover_the_true_values():
    seed = 0
    elo = np.random.default_rng(seed).normal(0, 200, 5)
    truth = np.append(elo - elo.mean(), 60.0)
    covered = []
    for number in range(200):
        counts = tournament([seed, number], elo, 60, 0.7, 20)
        result = fit("abcde", *PAIRS.T, counts)
        low = np.append(result.low, result.first_move_advantage.low)
        high = np.append(result.high, result.first_move_advantage.high)
        covered.append((low <= truth) & (truth <= high))
    share = np.mean(covered, axis=0)
    assert ((share >= 0.9) & (share <= 0.99)).all()
