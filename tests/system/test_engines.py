"""More than 1,000 searches by each algorithm, on all engines; UCT in distribution."""

import math
import pathlib
import runpy

import jax
import numpy as np
import pytest

import reference
from azjax import games
from azjax.games.base import init_batch
from azjax.games.tic_tac_toe import from_board
from azjax.networks import MLPConfig, make_network
from azjax.search import ALGORITHMS, PUCT, UCT, make_search
from azjax.search.evaluators import network_evaluator, rollout_evaluator
from reference import Position, uct
from tables import BATCH, ENGINES, assert_equal, bench, search_by, search_table

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
FORK = (1, 0, 0, 0, -1, 0, 0, 0, 1)  # O to move: an edge draws, a corner loses.
TEXTBOOK_RUNS, OUR_RUNS = 200, 1024


def with_network(game):
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8), game)
    variables = network.init(jax.random.key(3))
    larger = jax.tree.map(lambda leaf: 3 * leaf, variables)  # So that outputs differ.
    return network_evaluator(game, network), network.fold(larger)


def assert_engines_agree(search):
    ours, *others = map(search, ENGINES)
    for theirs in others:
        assert_equal(ours, theirs)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_engines_find_the_same_bit_for_bit(algorithm, solution):
    """With a table where some values are NaN."""
    rows = solution.decisions[::4][:1024]
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    given = ALGORITHMS[algorithm](num_simulations=40), "tic_tac_toe", states, 0.5
    assert_engines_agree(lambda engine: search_table(engine, *given, "some values NaN"))


def test_a_custom_algorithm_with_a_network_runs_on_all_engines():
    game = games.make("connect_four")
    rule = runpy.run_path(str(EXAMPLES / "search_rule.py"))["GrowingPUCT"](num_simulations=40)
    assert not hasattr(rule, "engine")
    states = jax.tree.map(lambda leaf: leaf[::97][:BATCH], game.positions().states)
    given = rule, game, *with_network(game), states
    assert_engines_agree(lambda engine: search_by(engine, *given))


def test_all_engines_find_the_same_where_a_player_moves_twice():
    """In Othello, players pass; these trees reach the end of the game."""
    game = games.make("othello:4")
    states = jax.device_get(jax.jit(lambda: init_batch(game, 8))())
    given = PUCT(num_simulations=150), game, *with_network(game), states
    assert_engines_agree(lambda engine: search_by(engine, *given))


def assert_same_mean(ours, theirs):
    """Column by column, within five standard errors of the difference."""
    error = np.sqrt(ours.var(axis=0) / len(ours) + theirs.var(axis=0) / len(theirs))
    assert (abs(ours.mean(axis=0) - theirs.mean(axis=0)) <= 5 * error + 1e-9).all()


@pytest.mark.parametrize("name", ["tic_tac_toe", "misere_pile"])
def test_uct_equals_the_textbook_in_distribution(name):
    game, rules = bench(name).game, getattr(reference, name)
    actions = range(game.num_actions)

    exploration = math.sqrt(2)

    @jax.jit
    def search(keys, states):
        config = UCT(num_simulations=30, exploration=exploration)
        result = make_search(config, game, rollout_evaluator(game))(None, keys, states)
        return result.action, result.visit_counts

    state = jax.device_get(from_board(FORK) if name == "tic_tac_toe" else game.init())
    states = jax.tree.map(lambda leaf: np.resize(leaf, (OUR_RUNS, *leaf.shape)), state)
    keys, rng = jax.random.split(jax.random.key(0), OUR_RUNS), np.random.default_rng(0)
    action, visits = map(np.asarray, search(keys, states))
    position = Position(tuple(state.board.tolist()), int(state.player), False)
    found = [uct.search(rules, rng, position, 30, exploration) for _ in range(TEXTBOOK_RUNS)]
    theirs = np.array([[counts.get(a, 0) for a in actions] for _, counts in found])
    assert_same_mean(visits, theirs)
    assert_same_mean(visits**2, theirs**2)
    assert_same_mean(np.eye(len(actions))[action], np.eye(len(actions))[[a for a, _ in found]])
