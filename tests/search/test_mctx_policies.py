"""mctx's policies with the functions of `mctx_fns`, and their differences from azjax's searches.

Each difference that `docs/explanation/search.md` states has a test here, which runs both sides.
"""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

import azjax
from azjax.games.base import init_batch, play
from azjax.games.tic_tac_toe import from_board
from azjax.networks import MLPConfig, make_network
from azjax.search import (
    NEVER,
    PUCT,
    Gumbel,
    MctxGumbel,
    MctxMuZero,
    from_mctx,
    make_resumable,
    make_search,
    mctx_fns,
)
from azjax.search.evaluators import network_evaluator, rollout_evaluator, uniform_evaluator
from azjax.search.tree import ROOT
from tables import bench
from test_gumbel import by_mctx

POLICIES = {"muzero": mctx.muzero_policy, "gumbel": mctx.gumbel_muzero_policy}
OURS = {"muzero": PUCT, "gumbel": Gumbel}
BOTH = pytest.mark.parametrize("name", POLICIES)
TWO_LEFT = (1, -1, 1, -1, -1, 1, 0, 1, 0)  # O to move, in cells 6 or 8.
THREAT = (1, 1, 0, -1, -1, 0, 0, 0, 0)  # X to move and win in cell 2.
OPEN = (1, -1, 0, 0, 0, 0, 0, 0, 0)  # X to move.
WON = (1, 1, 1, -1, -1, 0, 0, 0, 0)


def batch(*boards):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(from_board, boards))


def run(name, fns, states, params=None, masked=True, seed=0, simulations=64, **settings):
    """The output of a policy, on the host; by default with all recommended arguments."""
    if masked:
        settings["invalid_actions"] = fns.invalid_actions(states)
    key_root, key = jax.random.split(jax.random.key(seed))
    policy = functools.partial(POLICIES[name], num_simulations=simulations, **settings)
    act = jax.jit(lambda p: policy(p, key, fns.root(p, key_root, states), fns.recurrent_fn))
    return jax.device_get(act(params))


def ours(name, game, evaluate, states, params=None, seed=0, simulations=64, add_noise=False):
    search = make_search(OURS[name](num_simulations=simulations), game, evaluate)
    keys = jax.random.split(jax.random.key(seed), len(states.board))
    return jax.device_get(jax.jit(search)(params, keys, states, 0.0, add_noise))


def visits_below(tree, game):
    """Visits `[B]` of actions in finished games, and of illegal actions in others."""
    over = jax.vmap(jax.vmap(game.is_over))(tree.embeddings)[..., None]
    legal = jax.vmap(jax.vmap(game.legal_actions))(tree.embeddings)
    visits = np.asarray(tree.children_visits)
    return (visits * over).sum(axis=(1, 2)), (visits * (~legal & ~over)).sum(axis=(1, 2))


# The functions.


@pytest.mark.parametrize("name", ["tic_tac_toe", "misere_pile"])
def test_the_functions_keep_the_game_s_conventions(name, solution):
    """For every action in many positions: legal, illegal and in finished games."""
    game, table = bench(name).game, bench(name).random_table()
    states = solution.states if name == "tic_tac_toe" else _pile(game)
    size, actions = len(states.board), game.num_actions
    fns = mctx_fns(game, bench(name).evaluate)
    root = fns.root(table, jax.random.key(0), states)
    legal, over = jax.vmap(game.legal_actions)(states), jax.vmap(game.is_over)(states)
    logits, values = bench(name).evaluate(table, None, states)
    np.testing.assert_array_equal(root.prior_logits, np.where(legal, logits, NEVER))
    np.testing.assert_array_equal(root.value, np.where(over, 0, values))
    np.testing.assert_array_equal(fns.invalid_actions(states), ~legal)
    kinds = set()
    for action in range(actions):
        played = jnp.full(size, action)
        output, after = fns.recurrent_fn(table, jax.random.key(0), played, states)
        expected = jax.vmap(functools.partial(play, game))(states, played)
        jax.tree.map(np.testing.assert_array_equal, after, expected.state)
        same = after.player == states.player
        discount = np.where(after.over, 0, np.where(same, 1, -1))
        np.testing.assert_array_equal(output.discount, discount)
        np.testing.assert_array_equal(output.reward, expected.reward)
        assert (np.asarray(output.reward)[over] == 0).all()
        assert (np.asarray(output.value)[after.over] == 0).all()
        later = jax.vmap(game.legal_actions)(after)
        np.testing.assert_array_equal(output.prior_logits != NEVER, later)
        assert np.isfinite(output.prior_logits).all()
        kinds |= set(zip(discount[~over], np.asarray(output.reward)[~over], strict=True))
    mover_wins, mover_loses = (0, 1), (0, -1)
    assert (mover_wins if name == "tic_tac_toe" else mover_loses) in kinds and (-1, 0) in kinds


def _pile(game):
    """The positions of the pile with 5, 4, ..., 0 stones."""
    every = [game.init()]
    for _ in range(5):
        every.append(game.step(every[-1], 0)[0])
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *every)


@pytest.mark.slow
@BOTH
def test_policies_equal_those_with_functions_written_for_the_game(name, some_states):
    """Functions from test_gumbel.py, for tic-tac-toe only."""
    arguments = {"muzero": {"temperature": 0.0, "dirichlet_fraction": 0.0}, "gumbel": {}}[name]
    action, weights, visits = by_mctx(POLICIES[name], some_states, num_simulations=16, **arguments)
    fns = mctx_fns(bench("tic_tac_toe").game, bench("tic_tac_toe").evaluate)
    table = bench("tic_tac_toe").random_table()
    invalid = fns.invalid_actions(some_states)

    @jax.jit
    def act(table):
        root = fns.root(table, jax.random.key(0), some_states)
        key = jax.random.key(0)
        return POLICIES[name](table, key, root, fns.recurrent_fn, 16, invalid, **arguments)

    output = act(table)
    np.testing.assert_array_equal(output.action, action)
    np.testing.assert_allclose(output.action_weights, weights, atol=1e-6)
    np.testing.assert_array_equal(output.search_tree.summary().visit_counts, visits)


def test_the_package_exports_it():
    assert azjax.search.mctx_fns is mctx_fns
    with pytest.raises(AttributeError, match="module 'azjax' has no attribute 'searches'"):
        getattr(azjax, "searches")  # noqa: B009


@pytest.mark.parametrize("call", ["root", "recurrent_fn", "invalid_actions"])
def test_wrong_states_and_keys_are_rejected(call, tic_tac_toe):
    fns = mctx_fns(tic_tac_toe, uniform_evaluator(tic_tac_toe))
    states, key, actions = batch(OPEN, THREAT), jax.random.key(0), jnp.zeros(2, jnp.int32)

    def ask(states, key=key):
        before = {"root": (None, key), "recurrent_fn": (None, key, actions), "invalid_actions": ()}
        return getattr(fns, call)(*before[call], states)

    ask(states)
    with pytest.raises(ValueError, match="states must be a batch, with one leading axis"):
        ask(from_board(OPEN))
    with pytest.raises(ValueError, match="use states of that game"):
        ask(init_batch(azjax.make("connect_four"), 2))
    if call != "invalid_actions":
        with pytest.raises(ValueError, match="use typed keys"):
            ask(states, jnp.zeros(2, jnp.uint32))
        with pytest.raises(ValueError, match="use one key, or a batch of"):
            ask(states, jax.random.split(key, 3))


def test_bad_evaluators_are_rejected(tic_tac_toe):
    with pytest.raises(ValueError, match="the evaluator is of type str"):
        mctx_fns(tic_tac_toe, "uniform")
    fns = mctx_fns(tic_tac_toe, lambda params, keys, states: (jnp.zeros((1, 8)), jnp.zeros(1)))
    with pytest.raises(ValueError, match="the evaluator"):
        fns.root(None, jax.random.key(0), batch(OPEN))


def test_each_position_has_a_key_for_its_rollout(tic_tac_toe):
    fns = mctx_fns(tic_tac_toe, rollout_evaluator(tic_tac_toe))
    states = init_batch(tic_tac_toe, 32)
    output, _ = fns.recurrent_fn(None, jax.random.key(0), jnp.zeros(32, jnp.int32), states)
    assert set(np.asarray(output.value)) == {-1, 0, 1}
    keys = jax.random.split(jax.random.key(1), 32)
    values = fns.root(None, keys, states).value
    np.testing.assert_array_equal(fns.root(None, jax.random.key(1), states).value, values)


@pytest.mark.slow_after(1)
@BOTH
def test_a_win_is_found_next_to_a_finished_game(name, tic_tac_toe):
    """Without noise; results in the finished game are meaningless but finite."""
    fns = mctx_fns(tic_tac_toe, uniform_evaluator(tic_tac_toe))
    quiet = {"muzero": {"temperature": 0.0, "dirichlet_fraction": 0.0}}.get(name, {})
    output = run(name, fns, batch(THREAT, WON), **quiet)
    assert output.action[0] == 2 and output.search_tree.qvalues(jnp.zeros(2, int))[0, 2] == 1
    assert np.isfinite(output.action_weights).all()
    assert (output.search_tree.node_values[1] == 0).all()


# Policies as algorithms.


@BOTH
def test_a_policy_searches_each_position_with_its_own_key_noise_and_temperature(name):
    """Every second game explores; the others get the result of mctx without noise."""
    a_bench, table = bench("tic_tac_toe"), bench("tic_tac_toe").random_table()
    search = jax.jit(
        make_search(from_mctx(POLICIES[name], num_simulations=16), a_bench.game, a_bench.evaluate)
    )
    states, keys = batch(*[OPEN, (0,) * 9] * 16), jax.random.split(jax.random.key(1), 32)
    explores = jnp.arange(32) % 4 < 2
    temperature = jnp.where(explores, 1.0, 0.0)
    result = jax.device_get(search(table, keys, states, temperature, explores))
    quiet = {"muzero": {"temperature": 0.0, "dirichlet_fraction": 0.0}}
    quiet = quiet.get(name, {"gumbel_scale": 0.0})
    fns = mctx_fns(a_bench.game, a_bench.evaluate)
    expected = run(name, fns, states, table, simulations=16, **quiet)
    visits = expected.search_tree.summary().visit_counts
    np.testing.assert_array_equal(result.visit_counts[~explores], visits[~explores])
    np.testing.assert_array_equal(result.action[~explores], expected.action[~explores])
    np.testing.assert_allclose(
        result.action_weights[~explores], expected.action_weights[~explores], atol=1e-6
    )
    explored = result.visit_counts[explores].reshape(8, 2, 9)
    assert all(len(np.unique(explored[:, row], axis=0)) > 3 for row in (0, 1))
    assert (np.asarray(states.board)[np.arange(32), result.action] == 0).all()
    backwards = [x[::-1] for x in (keys, temperature, explores)]
    turned = jax.tree.map(lambda leaf: leaf[::-1], states)
    again = search(table, backwards[0], turned, *backwards[1:])
    np.testing.assert_array_equal(again.action[::-1], result.action)
    np.testing.assert_array_equal(again.visit_counts[::-1], result.visit_counts)


def test_equal_positions_get_equal_moves(tic_tac_toe):
    """mctx breaks ties at random; without exploration, the key has no effect."""
    search = make_search(MctxMuZero(num_simulations=4), tic_tac_toe, uniform_evaluator(tic_tac_toe))
    result = jax.jit(search)(None, jax.random.key(0), init_batch(tic_tac_toe, 16))
    assert len(np.unique(result.visit_counts, axis=0)) == len(np.unique(result.action)) == 1


def test_a_random_evaluator_gets_the_key_of_each_position(tic_tac_toe):
    """Also without exploration, where the policy itself draws with a fixed key."""
    evaluate = rollout_evaluator(tic_tac_toe)
    search = jax.jit(make_search(MctxGumbel(num_simulations=4), tic_tac_toe, evaluate))
    result = search(None, jax.random.key(0), init_batch(tic_tac_toe, 16))
    assert len(np.unique(result.q_values, axis=0)) > 8


def test_calls_that_cannot_work_are_rejected(tic_tac_toe):
    network = network_evaluator(
        tic_tac_toe, make_network(MLPConfig(hidden=(4,), head_hidden=4), tic_tac_toe)
    )
    policy, key, states = mctx.gumbel_muzero_policy, jax.random.key(0), init_batch(tic_tac_toe, 1)
    steps = make_resumable(from_mctx(policy), tic_tac_toe, uniform_evaluator(tic_tac_toe))
    calls = [
        (lambda: from_mctx(3), "search.policy is 3, which is not of type Callable"),
        (
            lambda: from_mctx(mctx.stochastic_muzero_policy),
            "other arguments than params, .* a required argument",
        ),
        (lambda: from_mctx(policy, num_simulations=0), "search.num_simulations is 0"),
        (lambda: steps.start(None, key, states, 32), "mctx runs its own loop, which cannot stop"),
        (
            lambda: make_search(PUCT(), tic_tac_toe, network)(None, key, states),
            "params is None, and the evaluator is a network",
        ),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()


# Differences between mctx and azjax.


@pytest.mark.slow_after(1)
@BOTH
def test_mctx_expands_finished_games(name, tic_tac_toe):
    evaluate, states = uniform_evaluator(tic_tac_toe), batch(THREAT)
    output = run(name, mctx_fns(tic_tac_toe, evaluate), states)
    below, illegal = visits_below(output.search_tree, tic_tac_toe)
    assert below > 20 and illegal == 0
    assert visits_below(ours(name, tic_tac_toe, evaluate, states).tree, tic_tac_toe)[0] == 0


@pytest.mark.slow_after(1)
@BOTH
def test_mctx_visits_illegal_root_actions_unless_it_is_given_the_mask(name, tic_tac_toe):
    """Although their logits are the lowest: MuZero's noise and Gumbel's halving reach them."""
    fns = mctx_fns(tic_tac_toe, uniform_evaluator(tic_tac_toe))
    legal = np.array(TWO_LEFT) == 0
    unmasked, masked = (
        run(name, fns, batch(TWO_LEFT), masked=masked).search_tree.children_visits[0, ROOT]
        for masked in (False, True)
    )
    assert unmasked[~legal].sum() > 0 and masked[~legal].sum() == 0


@pytest.mark.slow_after(1)
@BOTH
def test_mctx_plays_illegal_actions_in_the_tree_where_values_are_nan(name, tic_tac_toe):
    def evaluate(params, keys, states):
        size = len(states.board)
        return jnp.zeros((size, 9)), jnp.full(size, jnp.nan)

    output = run(name, mctx_fns(tic_tac_toe, evaluate), batch(OPEN))
    assert visits_below(output.search_tree, tic_tac_toe)[1] > 0
    result = ours(name, tic_tac_toe, evaluate, batch(OPEN))
    assert visits_below(result.tree, tic_tac_toe)[1] == 0 and OPEN[result.action[0]] == 0


def test_muzero_s_noise_on_illegal_actions_is_lost(tic_tac_toe):
    """With 2 of 9 actions legal and equal priors, it moves the priors by a third of PUCT's."""
    fns, size = mctx_fns(tic_tac_toe, uniform_evaluator(tic_tac_toe)), 4096
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf, size, axis=0), batch(TWO_LEFT))
    tree = run("muzero", fns, states, simulations=1).search_tree
    theirs = jax.nn.softmax(tree.children_prior_logits[:, ROOT])
    evaluate = uniform_evaluator(tic_tac_toe)
    prior = ours("muzero", tic_tac_toe, evaluate, states, simulations=1, add_noise=True).prior
    moved = [np.abs(np.asarray(noisy)[:, 6] - 0.5).mean() for noisy in (theirs, prior)]
    assert 0 < moved[0] < moved[1] / 3


@pytest.mark.slow_after(1)
@BOTH
def test_mctx_rescales_the_values_of_every_node(name):
    """With values divided by 128, mctx grows the same tree and azjax another; no game ends."""
    a_bench, states = bench("tic_tac_toe"), batch((0,) * 9)
    fns, table = mctx_fns(a_bench.game, a_bench.evaluate), a_bench.random_table()
    small = table._replace(values=table.values / 128)
    count, quiet = {
        "muzero": (4, {"dirichlet_fraction": 0.0}),
        "gumbel": (16, {"gumbel_scale": 0.0}),
    }[name]
    theirs, other = (
        run(name, fns, states, params, simulations=count, **quiet).search_tree
        for params in (table, small)
    )
    assert not theirs.embeddings.over.any()
    np.testing.assert_array_equal(theirs.children_visits, other.children_visits)
    mine, differs = (
        ours(name, a_bench.game, a_bench.evaluate, states, params, simulations=count).tree
        for params in (table, small)
    )
    assert (mine.children_visits != differs.children_visits).any()


def test_mctx_rescales_gumbel_values_over_illegal_actions():
    """They get the mixed value, which may lie outside the range of the legal actions' values."""
    a_bench, states = bench("tic_tac_toe"), batch(TWO_LEFT)
    fns, legal = mctx_fns(a_bench.game, a_bench.evaluate), np.array(TWO_LEFT) == 0
    tree = run("gumbel", fns, states, a_bench.constant_table(1.0), simulations=4).search_tree
    one = jax.tree.map(lambda leaf: leaf[0], tree)
    assert (one.children_visits[ROOT, legal] > 0).all()
    without = one.replace(
        **{
            name: getattr(one, name)[:, legal]
            for name in ("children_index", "children_prior_logits", "children_visits")
            + ("children_rewards", "children_discounts", "children_values")
        }
    )
    for rescale, differs in ((True, True), (False, False)):
        transform = functools.partial(
            mctx.qtransform_completed_by_mix_value, rescale_values=rescale
        )
        among_all, among_legal = transform(one, ROOT)[legal], transform(without, ROOT)
        assert (np.abs(among_all - among_legal) > 1e-3).any() == differs


def test_mctx_results_depend_on_the_position_in_the_batch(tic_tac_toe):
    """mctx draws with one key per batch; azjax uses one key per position."""
    evaluate, states = uniform_evaluator(tic_tac_toe), batch(*[OPEN] * 16)
    theirs = run("gumbel", mctx_fns(tic_tac_toe, evaluate), states, simulations=8)
    assert len(set(theirs.action)) > 1
    search = make_search(Gumbel(num_simulations=8), tic_tac_toe, evaluate)
    keys = jax.random.wrap_key_data(jnp.zeros((16, 2), jnp.uint32))
    assert len(set(np.asarray(search(None, keys, states, add_noise=True).action))) == 1


def test_muzero_draws_its_action_by_default(tic_tac_toe):
    evaluate, states = uniform_evaluator(tic_tac_toe), batch(*[OPEN] * 64)
    output = run("muzero", mctx_fns(tic_tac_toe, evaluate), states, simulations=9)
    visits = output.search_tree.children_visits[:, ROOT]
    assert (visits[np.arange(64), output.action] < visits.max(axis=1)).any()
    result = ours("muzero", tic_tac_toe, evaluate, states, simulations=9)
    most = result.visit_counts.max(axis=1)
    np.testing.assert_array_equal(result.visit_counts[np.arange(64), result.action], most)
