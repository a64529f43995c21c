"""PUCT against a reference implementation, and properties of all searches."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.search import PUCT, UCT, Gumbel, make_resumable
from guard import sharing
from reference import puct
from tables import BATCH, FAULTS, Faulty, bench, pile_states, repeat, run, textbook

CONFIGS = {"puct": PUCT(), "gumbel": Gumbel(), "uct": UCT()}
EACH = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
BOTH = pytest.mark.parametrize("config", [PUCT(), Gumbel()], ids=["puct", "gumbel"])
CLEAR = 1e-5  # Choices with a smaller margin may differ in float32.


@pytest.mark.parametrize(
    ("name", "config"),
    [("tic_tac_toe", PUCT()), ("tic_tac_toe", PUCT(c_puct=3.0))]
    + [("misere_pile", PUCT(first_play_urgency="parent"))],  # Where a player may move twice.
)
def test_puct_equals_the_textbook(name, config, some_states):
    states = some_states if name == "tic_tac_toe" else pile_states()
    table = bench(name).random_table()
    settings = [config.num_simulations, config.c_puct, config.first_play_urgency]
    expected = textbook(puct, name, table, states, *([each] * 12 for each in settings))
    clear = np.array([each.margin for each in expected]) >= CLEAR
    assert clear.mean() > 0.8
    result = run(config, table, states, name=name)
    for row in np.flatnonzero(clear):
        visits = expected[row].visit_counts
        found = result.visit_counts[row]
        assert found.sum() == config.num_simulations
        assert {action: found[action] for action in visits} == visits
        np.testing.assert_allclose(result.value[row], expected[row].value, atol=1e-5)


@EACH
def test_visits_and_values_add_up(some_states, config):
    """A root's value is the mean of its evaluation and the returns of its actions."""
    table = bench("tic_tac_toe").random_table(1)
    result, count = run(config, table, some_states), config.num_simulations
    _, raw = bench("tic_tac_toe").evaluate(table, None, some_states)
    assert (result.visit_counts.sum(axis=1) == count).all()
    assert (abs(result.q_values) <= 1).all()
    assert (result.q_values[result.visit_counts == 0] == 0).all()
    returned = (result.visit_counts * result.q_values).sum(axis=1)
    is_uct = config.algorithm == "uct"  # Its roots have no evaluation.
    mean = returned / count if is_uct else (raw + returned) / (count + 1)
    np.testing.assert_allclose(result.value, mean, atol=1e-5)
    if config.algorithm != "gumbel":
        np.testing.assert_allclose(result.action_weights, result.visit_counts / count, atol=1e-6)


def test_policy_value_is_the_mean_value_of_visited_actions(some_states):
    result = run(Gumbel(), bench("tic_tac_toe").random_table(), some_states)
    few = result._replace(visit_counts=np.where(np.arange(9) < 5, result.visit_counts, 0))
    weights = np.where(few.visit_counts > 0, few.action_weights, 0)
    total = weights.sum(axis=1)
    mean = (weights * few.q_values).sum(axis=1) / np.where(total > 0, total, 1)
    expected = np.where(total > 0, mean, few.value)
    assert (total == 0).any()
    np.testing.assert_allclose(few.policy_value, expected, atol=1e-6)


@EACH
def test_no_evaluator_makes_a_search_play_an_illegal_action(some_states, config):
    """This holds at any depth; the other positions of the batch are not affected."""
    a_bench, hurt = bench("tic_tac_toe"), np.arange(BATCH) % 4 == 3
    legal, table = some_states.board == 0, a_bench.random_table()
    search = functools.partial(run, config, states=some_states, add_noise=True)
    sound = search(table)
    cases = [(table, fault) for fault in FAULTS]
    cases += [(a_bench.constant_table(value), "none") for value in (1, -1)]  # All actions lose.
    for outputs, fault in cases:
        result = search(outputs, fault=fault, is_hurt=hurt)
        tree, over = result.tree, result.tree.embeddings.over
        illegal = (tree.embeddings.board != 0) | over[..., None]
        assert (tree.children_visits[illegal] == 0).all(), fault
        assert (result.visit_counts.sum(axis=1) == config.num_simulations).all(), fault
        assert legal[np.arange(BATCH), result.action].all(), fault
        assert not (result.action_weights > 0)[~legal].any(), fault
        sums = result.action_weights.sum(axis=1)
        assert np.isnan(sums[hurt & ~np.isclose(sums, 1, atol=1e-5)]).all(), fault
        if outputs is table:
            for ours, theirs in zip(*map(jax.tree.leaves, (result, sound)), strict=True):
                np.testing.assert_array_equal(ours[~hurt], theirs[~hurt], err_msg=fault)
            is_nan = np.isnan(result.value[hurt])
            assert is_nan.any() == ("values" in fault), fault
            assert fault != "values NaN" or is_nan.mean() > 0.8


@BOTH
def test_a_logit_of_minus_infinity_is_a_prior_of_almost_zero(config):
    table, start = bench("tic_tac_toe").constant_table(0), repeat([0] * 9)
    even = run(config, table, start).prior
    table.logits[:, [0, 5]] = -np.inf
    prior = run(config, table, start).prior[0]
    np.testing.assert_allclose(prior, (table.logits[0] == 0) / 7, atol=1e-6)
    table.logits[:] = -np.inf
    np.testing.assert_array_equal(run(config, table, start).prior, even)


@EACH
def test_a_finished_game_in_the_tree_has_the_value_of_its_result(config):
    """An evaluator that returns 0.7 for finished games has no effect."""
    last_move_draws = [1, -1, 1, 1, -1, -1, -1, 1, 0]
    last_move_wins = [1, -1, 1, -1, 1, -1, -1, 1, 0]
    states = repeat(last_move_draws, last_move_wins)
    result = run(config, bench("tic_tac_toe").constant_table(0.7), states)
    n, root = config.num_simulations, 0 if config.algorithm == "uct" else 1
    np.testing.assert_array_equal(result.visit_counts[:, 8], n)
    np.testing.assert_allclose(result.q_values[:2, 8], [0, 1], atol=1e-6)
    expected = np.array([0.7 * root, 0.7 * root + n]) / (n + root)
    np.testing.assert_allclose(result.value[:2], expected, atol=1e-6)
    finished = result.tree.embeddings.over
    assert (result.tree.node_values[finished] == 0).all()


@EACH
def test_a_result_does_not_depend_on_the_batch_around_it(some_states, config):
    """Therefore it does not depend on the number of devices that share a batch.

    The first half is replaced by finished games with other keys, and the batch is reversed.
    """
    table, half = bench("tic_tac_toe").random_table(), BATCH // 2
    over = repeat([1, 1, 1, -1, -1, 0, 0, 0, 0])
    others = jax.tree.map(lambda a, b: np.r_[a[:half], b[half:]][::-1], over, some_states)
    keys = jax.random.split(jax.random.key(0), BATCH)
    new = jax.random.split(jax.random.key(1), BATCH)
    search = functools.partial(run, config, table, luck=0.5, temperature=1.0)
    noise = np.arange(BATCH) % 2 == 0
    result = search(states=some_states, seed=keys, add_noise=noise)
    mixed = jnp.concatenate([new[:half], keys[half:]])[::-1]
    found = search(states=others, seed=mixed, add_noise=noise[::-1])
    for ours, theirs in zip(*map(jax.tree.leaves, (result, found)), strict=True):
        np.testing.assert_array_equal(ours[half:], theirs[::-1][half:])
    np.testing.assert_array_equal(found.action[half:], 0)


def test_a_search_in_steps_may_change_its_budget(some_states):
    """With the last budget known in the first phase of halving, it equals the whole search."""
    a_bench, config = bench("tic_tac_toe"), Gumbel()
    off, still = np.float32(1), np.zeros(BATCH, bool)  # The evaluator is random.
    params = Faulty(a_bench.random_table(), off, np.int32(0), still)
    keys = jax.random.split(jax.random.key(0), BATCH)
    steps = make_resumable(config, a_bench.game, a_bench.evaluate_faulty)
    with sharing():
        init, step, finish = map(jax.jit, steps)
        tree = init(params, keys, some_states, np.int32(20))
        for done, count in np.int32([[0, 3], [3, 29]]):
            tree = step(params, keys, some_states, np.int32(32), tree, done, count)
        found = finish(params, keys, some_states, np.int32(32), tree)
    expected = run(config, a_bench.random_table(), some_states, luck=1.0)
    np.testing.assert_array_equal(found.visit_counts, expected.visit_counts)
    np.testing.assert_array_equal(found.action, expected.action)


def test_noise_acts_in_full_on_two_legal_actions():
    """For two actions the Dirichlet is a Beta: mean 1/2, variance 1 / (4 (2 alpha + 1))."""
    table = bench("tic_tac_toe").constant_table(0)
    table.logits[:, 7] = np.log(4)  # Of the legal 7 and 8: 0.8 and 0.2.
    states = repeat([1, 1, -1, -1, -1, 1, 1, 0, 0])  # A draw after either move.
    for alpha, fraction in ((0.3, 0.25), (5.0, 1.0)):
        config = PUCT(dirichlet_alpha=alpha, dirichlet_fraction=fraction)
        results = [run(config, table, states, seed=seed, add_noise=True) for seed in range(6)]
        priors = np.concatenate([result.prior for result in results])
        np.testing.assert_allclose(priors[:, [7, 8]].sum(axis=1), 1, atol=1e-5)
        mean, deviation = priors[:, 7].mean(), priors[:, 7].std()
        expected = fraction / np.sqrt(4 * (2 * alpha + 1))
        assert mean == pytest.approx((1 - fraction) * 0.8 + fraction * 0.5, abs=expected / 5)
        assert deviation == pytest.approx(expected, rel=0.1)


def test_temperature_draws_by_powers_of_visits():
    table, start = bench("tic_tac_toe").random_table(), repeat([0] * 9)
    temperature = np.resize(np.float32([0, 0.5, 1, 2]), BATCH)
    results = [run(PUCT(), table, start, seed=s, temperature=temperature) for s in range(6)]
    actions, visits = np.stack([r.action for r in results]), results[0].visit_counts[0]
    assert (actions[:, temperature == 0] == visits.argmax()).all() and (visits > 0).sum() >= 3
    for each in (0.5, 1, 2):
        counts = np.bincount(actions[:, temperature == each].ravel(), minlength=9)
        share = visits ** (1 / each) / (visits ** (1 / each)).sum()
        error = np.sqrt(counts.sum() * share * (1 - share))
        assert (abs(counts - counts.sum() * share) <= 5 * error).all()
