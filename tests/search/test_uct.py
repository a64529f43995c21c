"""UCT against a reference implementation, in distribution; the search loop against mctx's."""

import dataclasses
import functools
import importlib
import math

import jax
import numpy as np
import pytest
from scipy.stats import chisquare

import misere_pile
from azjax import games
from azjax.games.base import init_batch
from azjax.games.tic_tac_toe import from_board
from azjax.search import ALGORITHMS, UCT, make_search
from azjax.search.evaluators import rollout_evaluator, uniform_evaluator
from azjax.search.gumbel import considered_visits
from azjax.search.uct import random_order, uct_action
from reference import Position, uct
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as tic_tac_toe_rules
from tables import AS_IN_TRAINING, BATCH, bench

GAMES = {"tic_tac_toe": games.make("tic_tac_toe"), "misere_pile": misere_pile.make()}
RULES = {"tic_tac_toe": tic_tac_toe_rules, "misere_pile": misere_pile_rules}
EMPTY = (0,) * 9
FORK = (1, 0, 0, 0, -1, 0, 0, 0, 1)  # O to move: an edge draws, a corner loses.
THREAT = (1, 1, 0, -1, -1, 0, 0, 0, 0)  # X to move and win.
LATE = (1, -1, 1, -1, -1, 1, 0, 0, 0)  # Three cells left, X to move.
TEXTBOOK_RUNS, OUR_RUNS = 400, 4096
ROOT_2 = math.sqrt(2)


@functools.cache
def compiled(name, simulations, exploration):
    config = UCT(num_simulations=simulations, exploration=exploration)
    return jax.jit(make_search(config, GAMES[name], rollout_evaluator(GAMES[name])))


def run(name, state, simulations, exploration=ROOT_2, runs=OUR_RUNS, seed=0):
    states = jax.tree.map(lambda leaf: np.resize(leaf, (runs, *leaf.shape)), jax.device_get(state))
    keys = jax.random.split(jax.random.key(seed), runs)
    result = compiled(name, simulations, exploration)(None, keys, states)
    return np.asarray(result.action), np.asarray(result.visit_counts), result


def textbook(name, position, simulations, exploration):
    rng, num_actions = np.random.default_rng(0), GAMES[name].num_actions
    actions, visits = [], np.zeros((TEXTBOOK_RUNS, num_actions))
    for row in visits:
        action, counts = uct.search(RULES[name], rng, position, simulations, exploration)
        actions.append(action)
        row[list(counts)] = list(counts.values())
    return np.array(actions), visits


def assert_same_mean(ours, theirs):
    """Column by column, within five standard errors of the difference."""
    error = np.sqrt(ours.var(axis=0) / len(ours) + theirs.var(axis=0) / len(theirs))
    assert (abs(ours.mean(axis=0) - theirs.mean(axis=0)) <= 5 * error + 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "simulations", "exploration"),
    [
        (EMPTY, 30, ROOT_2),
        (EMPTY, 12, 0.2),
        (FORK, 60, ROOT_2),
        (THREAT, 40, 0.7),
    ],
    ids=["empty", "empty, greedy", "fork", "threat"],
)
def test_uct_equals_the_textbook_in_distribution(board, simulations, exploration):
    state = from_board(board)
    position = Position(board, int(state.player), False)
    actions, visits, _ = run("tic_tac_toe", state, simulations, exploration)
    their_actions, their_visits = textbook("tic_tac_toe", position, simulations, exploration)
    assert_same_mean(visits, their_visits)
    assert_same_mean(visits**2, their_visits**2)
    assert_same_mean(np.eye(9)[actions], np.eye(9)[their_actions])


@pytest.mark.slow
def test_uct_equals_the_textbook_where_a_player_moves_twice():
    state, position = GAMES["misere_pile"].init(), misere_pile_rules.start()
    actions, visits, _ = run("misere_pile", state, 25)
    their_actions, their_visits = textbook("misere_pile", position, 25, ROOT_2)
    assert_same_mean(visits, their_visits)
    assert_same_mean(actions[:, None] * 1.0, their_actions[:, None] * 1.0)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("board", [FORK, LATE])
def test_every_node_follows_the_ucb1_formula(board):
    """With 60 constants, so that a slightly different bound changes the choice in many nodes."""
    _, _, result = run("tic_tac_toe", from_board(board), 60, runs=64)
    tree, constants = result.tree, np.linspace(0.05, 6, 60, dtype=np.float32)

    def choose(exploration, tree, node):
        return uct_action(UCT(exploration=exploration), tree, node)

    at_nodes = jax.vmap(jax.vmap(choose, (None, None, 0)), (None, 0, None))
    at_nodes = jax.vmap(at_nodes, (0, None, None))
    chosen = jax.jit(at_nodes, compiler_options=AS_IN_TRAINING)(constants, tree, np.arange(61))
    tree = jax.tree.map(np.asarray, tree)
    states, visits = tree.embeddings, tree.children_visits
    legal = (states.board == 0) & ~states.over[..., None]
    complete = (tree.node_visits > 0) & ((visits > 0) | ~legal).all(axis=-1) & legal.any(axis=-1)
    b, node = np.nonzero(complete)
    n, legal = visits[b, node], legal[b, node]
    total = n.sum(axis=-1, keepdims=True) + (node > 0)[:, None]  # Plus its own rollout.
    mean = (tree.children_rewards + tree.children_discounts * tree.children_values)[b, node]
    bound = np.sqrt(np.log(total + 1) / np.maximum(n, 1))
    score = np.where(legal, mean + constants[:, None, None] * bound, -99)
    best = np.sort(score, axis=-1)
    clear = best[..., -1] - best[..., -2] > 1e-4
    assert clear.sum() > 5000
    np.testing.assert_array_equal(np.asarray(chosen)[:, b, node][clear], score.argmax(-1)[clear])


@pytest.mark.slow
def test_every_action_is_tried_before_any_is_repeated():
    _, visits, _ = run("tic_tac_toe", from_board(EMPTY), 9, runs=64)
    assert (visits == 1).all()
    _, visits, _ = run("tic_tac_toe", from_board(EMPTY), 5, runs=2048)
    assert (visits.max(axis=1) == 1).all() and (visits.sum(axis=1) == 5).all()
    assert abs(visits.mean(axis=0) - 5 / 9).max() < 5 * math.sqrt(5 / 9 * 4 / 9 / 2048)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "hex:11"])
def test_untried_actions_are_tried_in_uniformly_random_order(name):
    """At the root and below it, counted over many positions."""
    game, runs = games.make(name), 4096
    search = jax.jit(make_search(UCT(num_simulations=3), game, uniform_evaluator(game)))
    result = search(None, jax.random.split(jax.random.key(0), runs), init_batch(game, runs))
    index = np.asarray(result.tree.children_index)
    _, first, second, third = np.asarray(result.tree.action_from_parent).T
    assert (index[:, 0] >= 0).sum() == 3 * runs
    for actions in (first, second, third):
        assert chisquare(np.bincount(actions, minlength=game.num_actions)).pvalue > 1e-4
    pairs = np.bincount(first * game.num_actions + second, minlength=game.num_actions**2)
    pairs = np.delete(pairs, np.arange(game.num_actions) * (game.num_actions + 1))
    assert chisquare(pairs).pvalue > 1e-4 and (first != second).all()

    orders = random_order(jax.random.split(jax.random.key(1), runs), np.zeros((runs, 9)))
    assert chisquare(np.bincount(orders.argmax(axis=1), minlength=9)).pvalue > 1e-4


@pytest.mark.slow
def test_ties_in_visits_go_to_the_action_tried_first():
    actions, _, result = run("tic_tac_toe", from_board(EMPTY), 9, runs=512)
    index = np.asarray(result.tree.children_index[:, 0])
    np.testing.assert_array_equal(actions, index.argmin(axis=1))
    assert len(np.unique(actions)) == 9


@pytest.mark.slow
def test_the_exploration_constant():
    _, wide, _ = run("tic_tac_toe", from_board(EMPTY), 45, exploration=1e6, runs=64)
    assert (wide == 5).all()
    _, greedy, _ = run("tic_tac_toe", from_board(EMPTY), 45, exploration=0.0, runs=64)
    assert greedy.max(axis=1).mean() > 20


@pytest.mark.slow
def test_the_value_is_the_mean_outcome_for_the_mover():
    _, visits, result = run("tic_tac_toe", from_board(FORK), 60, runs=64)
    mean = (visits * np.asarray(result.q_values)).sum(axis=1) / 60
    np.testing.assert_allclose(result.value, mean, atol=1e-5)
    action, _, result = run("tic_tac_toe", from_board(THREAT), 40, 0.7, runs=64)
    assert (action == 2).all() and (np.asarray(result.q_values)[:, 2] == 1).all()


@pytest.mark.slow
def test_a_setting_may_be_swept_under_vmap():
    game = GAMES["tic_tac_toe"]
    keys = jax.random.split(jax.random.key(0), 8)
    states = jax.tree.map(lambda leaf: np.resize(leaf, (8, *leaf.shape)), from_board(EMPTY))

    def visits(exploration):
        config = UCT(num_simulations=30, exploration=exploration)
        return make_search(config, game, rollout_evaluator(game))(None, keys, states).visit_counts

    constants = np.float32([0.1, 1.0, 5.0])
    swept = jax.jit(jax.vmap(visits))(constants)
    single = jax.jit(visits)(constants[1])
    np.testing.assert_array_equal(swept[1], single)
    assert (np.asarray(swept[0]) != np.asarray(swept[2])).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["misere_pile", "tic_tac_toe"])
@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
def test_simulations_equal_those_of_mctx_bit_for_bit(solution, name, algorithm):
    a_bench = bench(name)
    table, config = a_bench.random_table(), ALGORITHMS[algorithm](num_simulations=40)
    states = jax.tree.map(lambda leaf: leaf[:1], solution.states)
    if name == "tic_tac_toe":
        rows = np.random.default_rng(1).choice(solution.decisions, BATCH, replace=False)
        states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    else:
        states = jax.tree.map(lambda leaf: leaf[None], a_bench.game.init())
    keys = jax.random.split(jax.random.key(0), len(states.board))

    ours = make_search(config, a_bench.game, a_bench.evaluate)
    theirs = make_search(config, a_bench.game, a_bench.evaluate, engine="mctx")
    ours, theirs = (
        jax.jit(search, compiler_options=AS_IN_TRAINING)(table, keys, states)
        for search in (ours, theirs)
    )
    np.testing.assert_array_equal(ours.tree.node_visits, theirs.tree.node_visits)
    for field in ("action", "visit_counts", "q_values", "value", "action_weights"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))


def test_sequential_halving_is_that_of_mctx():
    halving = importlib.import_module("mctx._src.seq_halving")
    compiled = jax.jit(considered_visits, static_argnums=(2, 3))
    for simulations in (1, 7, 50, 200):
        for considered in (1, 2, 7, 16):
            every = np.arange(considered + 1)
            ours = compiled(every, simulations, simulations, considered)
            theirs = halving.get_table_of_considered_visits(considered, simulations)
            np.testing.assert_array_equal(ours, theirs)


def test_a_bad_exploration_constant_is_rejected():
    with pytest.raises(ValueError, match="search.exploration is -1.0: use 0 or more"):
        UCT(exploration=-1.0)
    assert dataclasses.replace(UCT(), exploration=0).exploration == 0
