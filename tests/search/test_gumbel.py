"""Gumbel AlphaZero against a plain implementation of its paper, and against mctx's policy."""

import dataclasses
import functools
import importlib
import itertools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax.search import PUCT, Gumbel
from reference import Position, gumbel
from tables import BATCH, bench, repeat, run

GUMBEL = Gumbel()
CLEAR = 1e-4  # Choices with a smaller margin may differ in float32.
SETTINGS = [
    {"num_simulations": 20, "max_considered_actions": 3, "gumbel_scale": 3.0},
    {"value_scale": 0.5, "maxvisit_init": 2.0, "gumbel_scale": 0.5},
    {},
    {"num_simulations": 50, "max_considered_actions": 4},
    {"value_scale": 1.0},
]
CASES = [
    pytest.param(settings, explore, marks=() if explore and row < 2 else pytest.mark.slow)
    for row, settings in enumerate(SETTINGS)
    for explore in (True, False)
]


def config_of(settings):
    return dataclasses.replace(GUMBEL, **settings)


def noise_of(result):
    """The root's noise in a finished search, `[B, A]`."""
    return result.tree.extra_data[0]


def textbook(name, config, table, states, noise):
    """Results of the plain implementation in the first 80 positions; slow."""
    rules, a_bench = importlib.import_module(f"reference.{name}"), bench(name)
    logits, values = table.logits.tolist(), table.values.tolist()

    def evaluate(position):
        row = a_bench.number(np.array(position.board), position.player)
        return logits[row], values[row]

    settings = gumbel.Settings(*(getattr(config, name) for name in gumbel.Settings._fields))
    positions = zip(states.board.tolist(), states.player.tolist(), noise.tolist(), strict=True)
    return [
        gumbel.search(rules, evaluate, Position(tuple(board), player, False), row, settings)
        for board, player, row in itertools.islice(positions, 80)
    ]


def dense(rows, num_actions):
    """Dictionaries as an array `[B, A]`."""
    return np.array([[row.get(action, 0) for action in range(num_actions)] for row in rows])


def assert_equals_textbook(result, expected):
    result = jax.tree.map(lambda leaf: leaf[: len(expected)], result)
    num_actions = result.visit_counts.shape[1]
    clear = np.array([one.margin for one in expected]) > CLEAR
    assert clear.mean() > 0.9
    visits = dense([one.visit_counts for one in expected], num_actions)
    policy = dense([one.policy for one in expected], num_actions)
    np.testing.assert_array_equal(result.visit_counts[clear], visits[clear])
    np.testing.assert_allclose(result.action_weights[clear], policy[clear], atol=2e-4)
    np.testing.assert_array_equal(
        result.action[clear], np.array([e.action for e in expected])[clear]
    )
    np.testing.assert_allclose(
        result.value[clear], np.array([e.value for e in expected])[clear], atol=1e-5
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("settings", "explore"), CASES, ids=str)
def test_gumbel_equals_the_textbook(some_states, settings, explore):
    config, table = config_of(settings), bench("tic_tac_toe").random_table()
    result = run(config, table, some_states, add_noise=explore)
    assert (noise_of(result) != 0).all() == explore
    expected = textbook("tic_tac_toe", config, table, some_states, noise_of(result))
    assert_equals_textbook(result, expected)


def test_gumbel_equals_the_textbook_where_a_player_moves_twice():
    boards = np.tril(np.ones((5, 5), np.int8), -1)[:4]
    state_type = type(bench("misere_pile").game.init())
    states = state_type(boards, np.zeros(4, np.int8), np.zeros(4, bool))
    table = bench("misere_pile").random_table()
    result = run(GUMBEL, table, states, name="misere_pile")
    expected = textbook("misere_pile", GUMBEL, table, states, noise_of(result))
    assert_equals_textbook(result, expected)


# The noise.


@pytest.mark.parametrize(
    "scale", [3.0, *(pytest.param(scale, marks=pytest.mark.slow) for scale in (0.5, 1.0))]
)
def test_the_noise_is_gumbels_times_its_scale(some_states, scale):
    config = config_of({"num_simulations": 1, "gumbel_scale": scale})
    table = bench("tic_tac_toe").random_table()
    noise = [noise_of(run(config, table, some_states, seed=s, add_noise=True)) for s in range(8)]
    noise = np.concatenate(noise).ravel() / scale
    assert len(np.unique(noise)) > 0.99 * len(noise)
    error = np.pi / np.sqrt(6 * len(noise))
    assert noise.mean() == pytest.approx(np.euler_gamma, abs=5 * error)
    for probability in (0.1, 0.5, 0.9):  # The quantiles of exp(-exp(-x)).
        share = (noise < -np.log(-np.log(probability))).mean()
        assert share == pytest.approx(probability, abs=2.5 / np.sqrt(len(noise)))


@pytest.mark.parametrize(
    "scale", [0.5, *(pytest.param(scale, marks=pytest.mark.slow) for scale in (0.0, 1.0, 2.0))]
)
def test_a_larger_noise_scale_weakens_the_prior(scale):
    """Of two actions of equal value, log 4 apart, 1 / (1 + 4 ** (-1 / scale)) choose the first."""
    two_left = repeat([1, 1, -1, -1, -1, 1, 1, 0, 0])  # A draw after either move.
    table = bench("tic_tac_toe").constant_table(0)
    table.logits[:, 7] = np.log(4)
    config = config_of({"gumbel_scale": scale, "num_simulations": 4})
    results = [run(config, table, two_left, seed=seed, add_noise=True) for seed in range(8)]
    share = np.mean([result.action == 7 for result in results])
    expected = 1 / (1 + 4 ** (-1 / scale)) if scale else 1.0
    assert share == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / 2048))


@pytest.mark.slow
def test_few_considered_actions_concentrate_the_visits(some_states):
    table = bench("tic_tac_toe").random_table()
    for most in (1, 2, 5):
        config = config_of({"max_considered_actions": most})
        visited = (run(config, table, some_states).visit_counts > 0).sum(axis=1)
        legal = (some_states.board == 0).sum(axis=1)
        np.testing.assert_array_equal(visited, np.minimum(most, legal))


# The action.


def test_gumbel_plays_a_finalist(some_states):
    result = run(GUMBEL, bench("tic_tac_toe").random_table(), some_states, add_noise=True)
    finalists = result.visit_counts == result.visit_counts.max(axis=1, keepdims=True)
    assert finalists[np.arange(BATCH), result.action].all()


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


@pytest.mark.parametrize("settings", SETTINGS[2:], ids=str)
@pytest.mark.slow
def test_gumbel_equals_the_policy_of_mctx(some_states, settings):
    config = config_of(settings)
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


@pytest.mark.parametrize("c_puct", [0.5, 2.5])
@pytest.mark.slow
def test_puct_equals_the_policy_of_mctx(some_states, c_puct):
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
        pb_c_init=c_puct,
        pb_c_base=1e9,
        temperature=0.0,
        qtransform=raw_q,
    )
    config = PUCT(c_puct=c_puct, num_simulations=32)
    ours = run(config, bench("tic_tac_toe").random_table(), some_states)
    equal = (ours.visit_counts == visits).all(axis=1)
    assert equal.mean() > 0.98  # mctx decides between scores closer than 1e-7 by chance.
    equal &= (visits == visits.max(axis=1, keepdims=True)).sum(axis=1) == 1  # Nor among these.
    np.testing.assert_array_equal(ours.action[equal], action[equal])
