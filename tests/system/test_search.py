"""Long searches: all loops, UCT in distribution, and mctx's policies compared with azjax's."""

import functools
import math
import pathlib
import runpy

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

import reference
from azjax import games
from azjax.games.base import init_batch
from azjax.games.tic_tac_toe import from_board
from azjax.networks import MLPConfig, make_network
from azjax.search import PUCT, UCT, Gumbel, MctxPolicy, make_search, mctx_fns
from azjax.search.evaluators import network_evaluator, rollout_evaluator
from reference import Position, uct
from tables import BATCH, LOOPS, assert_equal, batch, bench, search_by

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
FORK = (1, 0, 0, 0, -1, 0, 0, 0, 1)  # O to move: an edge draws, a corner loses.
TEXTBOOK_RUNS, OUR_RUNS = 200, 1024


def with_network(game):
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8), game)
    variables = network.init(jax.random.key(3))
    larger = jax.tree.map(lambda leaf: 3 * leaf, variables)  # So that outputs differ.
    return network_evaluator(game, network), network.fold(larger)


def assert_loops_agree(search):
    ours, *others = map(search, LOOPS)
    for loop, theirs in zip([*LOOPS][1:], others, strict=True):
        assert_equal(ours, theirs, loop)


def test_a_custom_algorithm_with_a_network_runs_in_all_loops():
    game = games.make("connect_four")
    rule = runpy.run_path(str(EXAMPLES / "search_rule.py"))["GrowingPUCT"](num_simulations=40)
    states = jax.tree.map(lambda leaf: leaf[::97][:BATCH], game.positions().states)
    given = rule, game, *with_network(game), states
    assert_loops_agree(lambda loop: search_by(loop, *given))


def test_all_loops_find_the_same_where_a_player_moves_twice():
    """In Othello, players pass; these trees reach the end of the game."""
    game = games.make("othello:4")
    states = jax.device_get(jax.jit(lambda: init_batch(game, 8))())
    given = PUCT(num_simulations=150), game, *with_network(game), states
    assert_loops_agree(lambda loop: search_by(loop, *given))


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


# mctx's policies.

BENCH = bench("tic_tac_toe")
GAME = BENCH.game
THREAT = (1, 1, 0, -1, -1, 0, 0, 0, 0)  # X to move and win in cell 2.
OPEN = (1, -1, 0, 0, 0, 0, 0, 0, 0)  # X to move.
WON = (1, 1, 1, -1, -1, 0, 0, 0, 0)


def find(config, states, params):
    search = jax.jit(make_search(config, GAME, BENCH.evaluate))
    keys = jax.random.split(jax.random.key(0), len(states.board))
    return jax.device_get(search(params, keys, states))


def test_searches_equal_the_policies_of_mctx(some_states):
    """With a constant exploration weight and without rescaled Q."""

    def raw_q(tree, node):
        legal = tree.children_prior_logits[node] > jnp.finfo(jnp.float32).min
        q = jnp.where(tree.children_visits[node] > 0, tree.qvalues(node), 0.0)
        return jnp.where(legal, q, -1e9)

    puct = functools.partial(mctx.muzero_policy, pb_c_init=2.5, pb_c_base=1e9, qtransform=raw_q)
    completed = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        **{"value_scale": 0.25, "maxvisit_init": 50.0, "rescale_values": False},
    )
    gumbel = functools.partial(
        mctx.gumbel_muzero_policy, max_num_considered_actions=3, qtransform=completed
    )
    table = BENCH.random_table()
    for config, policy in [
        (PUCT(c_puct=2.5), puct),
        (Gumbel(max_considered_actions=3, value_scale=0.5), gumbel),
    ]:
        ours, theirs = (find(each, some_states, table) for each in (config, MctxPolicy(policy)))
        equal = (ours.visit_counts == theirs.visit_counts).all(axis=1)
        assert equal.mean() > 0.98  # mctx decides between scores closer than 1e-7 by chance.
        most = theirs.visit_counts.max(axis=1, keepdims=True)
        clear = equal & ((theirs.visit_counts == most).sum(axis=1) == 1)
        np.testing.assert_array_equal(ours.action[clear], theirs.action[clear])
        weights = ours.action_weights[equal], theirs.action_weights[equal]
        np.testing.assert_allclose(*weights, atol=1e-5)


def test_a_policy_as_an_algorithm_equals_the_policy():
    """Without noise, and where a game is over."""
    table, states = BENCH.random_table(), batch(*[OPEN, (0,) * 9, THREAT, WON] * 8)
    invalid = (states.board != 0) | states.over[:, None]
    settings = {"num_simulations": 16, "gumbel_scale": 0.0, "invalid_actions": invalid}
    policy = functools.partial(mctx.gumbel_muzero_policy, **settings)
    fns, (key_root, key) = mctx_fns(GAME, BENCH.evaluate), jax.random.split(jax.random.key(0))
    act = jax.jit(lambda p: policy(p, key, fns.root(p, key_root, states), fns.recurrent_fn))
    expected = jax.device_get(act(table))
    result = find(MctxPolicy(mctx.gumbel_muzero_policy, 16), states, table)
    live = np.arange(32) % 4 != 3
    visits = expected.search_tree.summary().visit_counts
    np.testing.assert_array_equal(result.visit_counts[live], visits[live])
    np.testing.assert_array_equal(result.action[live], expected.action[live])
    weights, theirs = result.action_weights[live], expected.action_weights[live]
    np.testing.assert_allclose(weights, theirs, atol=1e-6)
    assert np.isfinite(result.action_weights).all()
    assert (expected.search_tree.node_values[~live] == 0).all()
