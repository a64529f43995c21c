"""Gumbel AlphaZero against a plain implementation of its paper, and against mctx's policy."""

import functools
import importlib

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import PUCT, Gumbel
from azjax.search.gumbel import considered_visits
from reference import Position, gumbel
from tables import BATCH, bench, repeat, run
from test_search import pile_states

CLEAR = 1e-4  # Choices with a smaller margin may differ in float32.
FEW = {"num_simulations": 20, "max_considered_actions": 3}
SETTINGS = [
    FEW | {"gumbel_scale": 3.0},
    {"value_scale": 0.5, "maxvisit_init": 2.0, "gumbel_scale": 0.5},
    {},
    {"value_scale": 1.0},
]


def noise_of(result):
    """The root's noise in a finished search, `[B, A]`."""
    return result.tree.extra_data[0]


def textbook(name, config, table, states, noise):
    """Results of the plain implementation, one for each row of the noise."""
    rules, a_bench = importlib.import_module(f"reference.{name}"), bench(name)
    logits, values = table.logits.tolist(), table.values.tolist()

    def evaluate(position):
        row = a_bench.number(np.array(position.board), position.player)
        return logits[row], values[row]

    settings = gumbel.Settings(*(getattr(config, name) for name in gumbel.Settings._fields))
    positions = zip(noise.tolist(), states.board.tolist(), states.player.tolist(), strict=False)
    return [
        gumbel.search(rules, evaluate, Position(tuple(board), player, False), row, settings)
        for row, board, player in positions
    ]


def assert_equals_textbook(name, config, states, add_noise, count=20):
    table = bench(name).random_table()
    result = run(config, table, states, name=name, add_noise=add_noise)
    assert (noise_of(result) != 0).all() == add_noise
    expected = textbook(name, config, table, states, noise_of(result)[:count])
    clear = np.array([one.margin for one in expected]) > CLEAR
    assert clear.mean() > 0.8
    ours = jax.tree.map(lambda leaf: leaf[: len(clear)][clear], result)
    actions = range(result.visit_counts.shape[1])
    visits, policy = (
        np.array([[getattr(one, field).get(action, 0) for action in actions] for one in expected])
        for field in ("visit_counts", "policy")
    )
    action, value = (
        np.array([getattr(one, field) for one in expected]) for field in ("action", "value")
    )
    np.testing.assert_array_equal(ours.visit_counts, visits[clear])
    np.testing.assert_allclose(ours.action_weights, policy[clear], atol=2e-4)
    np.testing.assert_array_equal(ours.action, action[clear])
    np.testing.assert_allclose(ours.value, value[clear], atol=1e-5)


@pytest.mark.parametrize("add_noise", [True, False])
def test_gumbel_equals_the_textbook(some_states, add_noise):
    """With every setting, and where a player moves twice."""
    for settings in SETTINGS:
        assert_equals_textbook("tic_tac_toe", Gumbel(**settings), some_states, add_noise)
    assert_equals_textbook("misere_pile", Gumbel(), pile_states(), add_noise)


def test_sequential_halving_is_that_of_mctx():
    halving = importlib.import_module("mctx._src.seq_halving")
    find = jax.jit(considered_visits, static_argnums=(2, 3))
    for simulations in (1, 7, 50, 200):
        ours = find(np.arange(17), np.int32(simulations), 200, 16)[:, :simulations]
        theirs = halving.get_table_of_considered_visits(16, simulations)
        np.testing.assert_array_equal(ours, theirs)


# The noise and the action.


def test_the_noise_is_gumbels_times_its_scale(some_states):
    table = bench("tic_tac_toe").random_table()
    for scale in (0.5, 3.0):
        search = functools.partial(run, Gumbel(gumbel_scale=scale), table, some_states)
        noise = [noise_of(search(seed=seed, add_noise=True)) for seed in range(4)]
        noise = np.concatenate(noise).ravel() / scale
        assert len(np.unique(noise)) > 0.99 * len(noise)
        error = np.pi / np.sqrt(6 * len(noise))
        assert noise.mean() == pytest.approx(np.euler_gamma, abs=5 * error)
        for probability in (0.1, 0.5, 0.9):  # The quantiles of exp(-exp(-x)).
            share = (noise < -np.log(-np.log(probability))).mean()
            assert share == pytest.approx(probability, abs=2.5 / np.sqrt(len(noise)))


def test_a_larger_noise_scale_weakens_the_prior():
    """Of two actions of equal value, log 4 apart, 1 / (1 + 4 ** (-1 / scale)) choose the first."""
    two_left = repeat([1, 1, -1, -1, -1, 1, 1, 0, 0])  # A draw after either move.
    table = bench("tic_tac_toe").constant_table(0)
    table.logits[:, 7] = np.log(4)
    for scale in (0.0, 0.5, 2.0):
        search = functools.partial(run, Gumbel(gumbel_scale=scale), table, two_left)
        share = np.mean([search(seed=seed, add_noise=True).action == 7 for seed in range(6)])
        expected = 1 / (1 + 4 ** (-1 / scale)) if scale else 1
        error = np.sqrt(expected * (1 - expected) / (6 * BATCH))
        assert share == pytest.approx(expected, abs=5 * error)


def test_gumbel_plays_a_finalist_of_the_considered_actions(some_states):
    table, legal = bench("tic_tac_toe").random_table(), (some_states.board == 0).sum(axis=1)
    for settings, most in ((FEW, 3), ({}, 16)):
        result = run(Gumbel(**settings), table, some_states, add_noise=True)
        finalists = result.visit_counts == result.visit_counts.max(axis=1, keepdims=True)
        assert finalists[np.arange(len(legal)), result.action].all()
        visited = (result.visit_counts > 0).sum(axis=1)
        np.testing.assert_array_equal(visited, np.minimum(most, legal))


# The policies of mctx, in trees without illegal actions.


def by_mctx(policy, states, **settings):
    """The result of a policy of mctx with the random table."""
    game, evaluate = bench("tic_tac_toe").game, bench("tic_tac_toe").evaluate
    lowest = jnp.finfo(jnp.float32).min

    def look(table, states):
        logits, value = evaluate(table, None, states)
        legal = jax.vmap(game.legal_actions)(states)
        return jnp.where(legal, logits, lowest), jnp.where(states.over, 0.0, value)

    def recurrent(table, key, action, states):
        states, reward = jax.vmap(game.step)(states, action)
        logits, value = look(table, states)
        output = mctx.RecurrentFnOutput(
            reward=reward,
            discount=jnp.where(states.over, 0.0, -1.0),
            prior_logits=logits,
            value=value,
        )
        return output, states

    @jax.jit
    def search(table, states):
        logits, value = look(table, states)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)
        found = policy(
            table, jax.random.key(0), root, recurrent, invalid_actions=states.board != 0, **settings
        )
        return found.action, found.action_weights, found.search_tree.summary().visit_counts

    return jax.device_get(search(bench("tic_tac_toe").random_table(), states))


@pytest.mark.slow
def test_gumbel_equals_the_policy_of_mctx(some_states):
    config = Gumbel(num_simulations=20, max_considered_actions=3, value_scale=0.5)
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale / 2,
        maxvisit_init=config.maxvisit_init,
        rescale_values=False,
    )
    action, weights, visits = by_mctx(
        mctx.gumbel_muzero_policy,
        some_states,
        num_simulations=config.num_simulations,
        max_num_considered_actions=config.max_considered_actions,
        gumbel_scale=0.0,
        qtransform=qtransform,
    )
    ours = run(config, bench("tic_tac_toe").random_table(), some_states)
    np.testing.assert_array_equal(ours.visit_counts, visits)
    np.testing.assert_array_equal(ours.action, action)
    np.testing.assert_allclose(ours.action_weights, weights, atol=1e-5)


@pytest.mark.slow
def test_puct_equals_the_policy_of_mctx(some_states):
    """With a constant exploration weight and without rescaled Q."""

    def raw_q(tree, node):
        legal = tree.children_prior_logits[node] > jnp.finfo(jnp.float32).min
        q = jnp.where(tree.children_visits[node] > 0, tree.qvalues(node), 0.0)
        return jnp.where(legal, q, -1e9)

    action, _, visits = by_mctx(
        mctx.muzero_policy,
        some_states,
        num_simulations=32,
        dirichlet_fraction=0.0,
        pb_c_init=2.5,
        pb_c_base=1e9,
        temperature=0.0,
        qtransform=raw_q,
    )
    ours = run(PUCT(c_puct=2.5), bench("tic_tac_toe").random_table(), some_states)
    equal = (ours.visit_counts == visits).all(axis=1)
    assert equal.mean() > 0.98  # mctx decides between scores closer than 1e-7 by chance.
    equal &= (visits == visits.max(axis=1, keepdims=True)).sum(axis=1) == 1  # Nor among these.
    np.testing.assert_array_equal(ours.action[equal], action[equal])
