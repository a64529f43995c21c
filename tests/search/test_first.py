"""Gumbel's first visits, evaluated in one call: the same search as one after the other."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games.base import init_batch, random_action
from azjax.networks import MLPConfig, make_network
from azjax.search import Gumbel, make_search
from azjax.search import first as firsts
from azjax.search.evaluators import (
    Evaluator,
    network_evaluator,
    rollout_evaluator,
    uniform_evaluator,
)
from tables import AS_IN_TRAINING, bench

ROWS = 24


@pytest.fixture(autouse=True)
def together(monkeypatch):
    """Evaluates together wherever possible."""
    monkeypatch.setattr(firsts, "_ROWS_PER_CALL", 10**6)


def positions(game):
    """Positions of random games, including finished ones, and their numbers of legal actions."""

    @jax.jit
    @jax.vmap
    def random_position(key, length):
        def move(ply, state):
            return game.step(state, random_action(game, jax.random.fold_in(key, ply), state))[0]

        state = jax.lax.fori_loop(0, length, move, game.init())
        return state, jnp.sum(game.legal_actions(state))

    lengths = np.arange(300) % game.max_plies
    return jax.device_get(random_position(jax.random.split(jax.random.key(0), 300), lengths))


def batches(game):
    """Batches of `ROWS` positions that are over or have at least 1, 2, 3 or 4 legal actions."""
    states, legal = positions(game)
    for least in (1, 2, 3, 4):
        over, alive = np.flatnonzero(legal == 0), np.flatnonzero(legal >= least)
        fewest = alive[np.argsort(legal[alive], kind="stable")]
        rows = np.resize(np.concatenate([over[:3], fewest[:3], alive[:18]]), ROWS)
        yield jax.tree.map(lambda leaf, rows=rows: leaf[rows], states)


def both_ways(game, evaluate, params, settings):
    """Results of all batches, in one call and in several, with noise in half of the rows."""
    found, noise = [], np.arange(ROWS) % 2 == 0
    for rows in (1024, 0):
        algorithm = Gumbel(**settings, rows_together=rows)
        search = functools.partial(make_search(algorithm, game, evaluate), temperature=0.0)
        search = jax.jit(search, compiler_options=AS_IN_TRAINING)
        keys = jax.random.split(jax.random.key(1), 3)
        inputs = ((key, states) for states in batches(game) for key in keys)
        found.append([search(params, *each, add_noise=noise) for each in inputs])
    return jax.device_get(found)


@pytest.mark.parametrize(
    ("name", "draws", "settings"),
    [
        ("tic_tac_toe", False, {"num_simulations": 16}),
        ("connect_four", True, {"num_simulations": 7}),
        pytest.param("connect_four", False, {"num_simulations": 20}, marks=pytest.mark.slow),
        pytest.param("tic_tac_toe", True, {"num_simulations": 4}, marks=pytest.mark.slow),
        pytest.param(
            "tic_tac_toe",
            False,
            {"num_simulations": 24, "max_considered_actions": 3},
            marks=pytest.mark.slow,
        ),
        pytest.param("othello:4", True, {"num_simulations": 12}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_first_visits_together_make_the_same_tree(name, draws, settings):
    """Bit for bit, with random evaluators as well; 288 searches of each kind."""
    game = games.make(name)
    evaluate = rollout_evaluator(game) if draws else bench(name).evaluate
    table = None if draws else bench(name).random_table()
    jax.tree.map(np.testing.assert_array_equal, *both_ways(game, evaluate, table, settings))


@pytest.mark.slow
def test_with_a_network_they_differ_only_by_rounding(tic_tac_toe):
    """Products with another number of rows may round differently."""
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8), tic_tac_toe)
    params = network.fold(network.init(jax.random.key(0)))
    evaluate = network_evaluator(tic_tac_toe, network)
    found, expected = both_ways(tic_tac_toe, evaluate, params, {"num_simulations": 2})
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.visit_counts, theirs.visit_counts)
        np.testing.assert_allclose(ours.tree.raw_values, theirs.tree.raw_values, atol=1e-6)
        np.testing.assert_allclose(ours.action_weights, theirs.action_weights, atol=1e-5)


@pytest.mark.parametrize(("rows_per_call", "with_full_column"), [(10**6, 12), (0, 17)])
def test_sixteen_simulations_of_connect_four_take_eleven_calls(
    monkeypatch, rows_per_call, with_full_column
):
    """One for the roots, one for all seven columns, and nine; a finished game changes nothing."""
    monkeypatch.setattr(firsts, "_ROWS_PER_CALL", rows_per_call)
    game, calls = games.make("connect_four"), []
    uniform = uniform_evaluator(game)

    def evaluate(params, keys, states):
        jax.debug.callback(lambda: calls.append(1))
        return uniform(params, keys, states)

    search = jax.jit(
        make_search(Gumbel(num_simulations=16, rows_together=14), game, Evaluator(evaluate))
    )

    def count(moves):
        """Calls for two positions: the first of a game, and the one after the moves."""
        after, first = init_batch(game, 1), init_batch(game, 1)
        for column in moves:
            after = jax.vmap(game.step)(after, jnp.full(1, column))[0]
        states = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), first, after)
        calls.clear()
        jax.block_until_ready(search(None, jax.random.key(0), states))
        jax.effects_barrier()
        return len(calls)

    assert count([]) == 11
    assert count([0, 1, 0, 1, 0, 1, 0]) == 11  # Four in column 0: over.
    assert count([0] * 6) == with_full_column  # Six columns are left.
