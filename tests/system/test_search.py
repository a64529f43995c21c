"""Long searches: all engines, UCT in distribution, and mctx's policies compared with azjax's.

Each difference that `docs/explanation/search.md` states has a test here, which runs both sides.
"""

import functools
import importlib
import math
import pathlib
import runpy

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games
from azjax.games.base import init_batch
from azjax.games.tic_tac_toe import from_board
from azjax.networks import MLPConfig, make_network
from azjax.search import ALGORITHMS, PUCT, ROOT, UCT, Gumbel, from_mctx, make_search, mctx_fns
from azjax.search.evaluators import network_evaluator, rollout_evaluator, uniform_evaluator
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
    game, rules = bench(name).game, importlib.import_module(f"reference.{name}")
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


# mctx's policies.

POLICIES = {"muzero": mctx.muzero_policy, "gumbel": mctx.gumbel_muzero_policy}
QUIET = {
    "muzero": {"temperature": 0.0, "dirichlet_fraction": 0.0},
    "gumbel": {"gumbel_scale": 0.0},
}
TWO_LEFT = (1, -1, 1, -1, -1, 1, 0, 1, 0)  # O to move, in cells 6 or 8.
THREAT = (1, 1, 0, -1, -1, 0, 0, 0, 0)  # X to move and win in cell 2.
OPEN = (1, -1, 0, 0, 0, 0, 0, 0, 0)  # X to move.
WON = (1, 1, 1, -1, -1, 0, 0, 0, 0)


def batch(*boards):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(from_board, boards))


def run(name, fns, states, params=None, masked=True, simulations=64, **settings):
    """The output of a policy, on the host; by default with all recommended arguments."""
    if masked:
        settings["invalid_actions"] = fns.invalid_actions(states)
    key_root, key = jax.random.split(jax.random.key(0))
    policy = functools.partial(POLICIES[name], num_simulations=simulations, **settings)
    act = jax.jit(lambda p: policy(p, key, fns.root(p, key_root, states), fns.recurrent_fn))
    return jax.device_get(act(params))


def ours(config, game, evaluate, states, params=None, add_noise=False):
    search = make_search(config, game, evaluate)
    keys = jax.random.split(jax.random.key(0), len(states.board))
    return jax.device_get(jax.jit(search)(params, keys, states, 0.0, add_noise))


def visits_below(tree, game):
    """Visits `[B]` of actions in finished games, and of illegal actions in others."""
    over = jax.vmap(jax.vmap(game.is_over))(tree.embeddings)[..., None]
    legal = jax.vmap(jax.vmap(game.legal_actions))(tree.embeddings)
    visits = np.asarray(tree.children_visits)
    return (visits * over).sum(axis=(1, 2)), (visits * (~legal & ~over)).sum(axis=(1, 2))


def test_gumbel_equals_the_policy_of_mctx(some_states):
    a_bench, table = bench("tic_tac_toe"), bench("tic_tac_toe").random_table()
    config = Gumbel(num_simulations=20, max_considered_actions=3, value_scale=0.5)
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale / 2,
        maxvisit_init=config.maxvisit_init,
        rescale_values=False,
    )
    theirs = run(
        *("gumbel", mctx_fns(a_bench.game, a_bench.evaluate), some_states, table),
        simulations=config.num_simulations,
        max_num_considered_actions=config.max_considered_actions,
        gumbel_scale=0.0,
        qtransform=qtransform,
    )
    result = ours(config, a_bench.game, a_bench.evaluate, some_states, table)
    visits = theirs.search_tree.summary().visit_counts
    np.testing.assert_array_equal(result.visit_counts, visits)
    np.testing.assert_array_equal(result.action, theirs.action)
    np.testing.assert_allclose(result.action_weights, theirs.action_weights, atol=1e-5)


def test_puct_equals_the_policy_of_mctx(some_states):
    """With a constant exploration weight and without rescaled Q."""

    def raw_q(tree, node):
        legal = tree.children_prior_logits[node] > jnp.finfo(jnp.float32).min
        q = jnp.where(tree.children_visits[node] > 0, tree.qvalues(node), 0.0)
        return jnp.where(legal, q, -1e9)

    a_bench, table = bench("tic_tac_toe"), bench("tic_tac_toe").random_table()
    theirs = run(
        *("muzero", mctx_fns(a_bench.game, a_bench.evaluate), some_states, table),
        simulations=32,
        pb_c_init=2.5,
        pb_c_base=1e9,
        qtransform=raw_q,
        **QUIET["muzero"],
    )
    result = ours(PUCT(c_puct=2.5), a_bench.game, a_bench.evaluate, some_states, table)
    visits = theirs.search_tree.summary().visit_counts
    equal = (result.visit_counts == visits).all(axis=1)
    assert equal.mean() > 0.98  # mctx decides between scores closer than 1e-7 by chance.
    equal &= (visits == visits.max(axis=1, keepdims=True)).sum(axis=1) == 1  # Nor among these.
    np.testing.assert_array_equal(result.action[equal], theirs.action[equal])


def test_a_policy_as_an_algorithm_equals_the_policy(name="gumbel"):
    """Without noise, and where a game is over."""
    a_bench, table = bench("tic_tac_toe"), bench("tic_tac_toe").random_table()
    states = batch(*[OPEN, (0,) * 9, THREAT, WON] * 8)
    algorithm = from_mctx(POLICIES[name], num_simulations=16)
    result = ours(algorithm, a_bench.game, a_bench.evaluate, states, table)
    fns = mctx_fns(a_bench.game, a_bench.evaluate)
    expected = run(name, fns, states, table, simulations=16, **QUIET[name])
    live = np.arange(32) % 4 != 3
    visits = expected.search_tree.summary().visit_counts
    np.testing.assert_array_equal(result.visit_counts[live], visits[live])
    np.testing.assert_array_equal(result.action[live], expected.action[live])
    weights, theirs = result.action_weights[live], expected.action_weights[live]
    np.testing.assert_allclose(weights, theirs, atol=1e-6)
    assert np.isfinite(result.action_weights).all()
    assert (expected.search_tree.node_values[~live] == 0).all()


# Differences between mctx and azjax.


def test_mctx_expands_finished_games_and_visits_illegal_actions(tic_tac_toe):
    """Illegal actions at the root without the mask, and in the tree where values are NaN."""
    evaluate = uniform_evaluator(tic_tac_toe)
    fns = mctx_fns(tic_tac_toe, evaluate)
    below, illegal = visits_below(run("muzero", fns, batch(THREAT)).search_tree, tic_tac_toe)
    assert below > 20 and illegal == 0
    result = ours(PUCT(num_simulations=64), tic_tac_toe, evaluate, batch(THREAT))
    assert visits_below(result.tree, tic_tac_toe)[0] == 0
    visits = run("muzero", fns, batch(TWO_LEFT), masked=False).search_tree.children_visits[0, ROOT]
    assert visits[np.array(TWO_LEFT) != 0].sum() > 0

    def hurt(params, keys, states):
        return jnp.zeros((len(states.board), 9)), jnp.full(len(states.board), jnp.nan)

    tree = run("gumbel", mctx_fns(tic_tac_toe, hurt), batch(OPEN)).search_tree
    assert visits_below(tree, tic_tac_toe)[1] > 0


def test_mctx_rescales_the_values_of_every_node():
    """With values divided by 128, mctx grows the same tree and azjax another; no game ends."""
    a_bench, states = bench("tic_tac_toe"), batch((0,) * 9)
    fns, table = mctx_fns(a_bench.game, a_bench.evaluate), a_bench.random_table()
    small = table._replace(values=table.values / 128)
    theirs, other = (
        run("muzero", fns, states, params, simulations=4, **QUIET["muzero"]).search_tree
        for params in (table, small)
    )
    assert not theirs.embeddings.over.any()
    np.testing.assert_array_equal(theirs.children_visits, other.children_visits)
    config = PUCT(num_simulations=4)
    mine, differs = (
        ours(config, a_bench.game, a_bench.evaluate, states, params).tree
        for params in (table, small)
    )
    assert (mine.children_visits != differs.children_visits).any()
