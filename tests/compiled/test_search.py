"""Searches against reference implementations in plain Python, and properties of all of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from azjax.games.base import init_batch
from azjax.search import PUCT, UCT, Gumbel, rollout_evaluator
from azjax.search.uct import random_order, uct_action
from guard import sharing
from reference import gumbel, minimax, misere_pile, puct, tic_tac_toe
from small import take
from tables import AS_IN_TRAINING, BATCH, FAULTS, bench, pile_states, repeat, run, textbook

CONFIGS = {"puct": PUCT(), "gumbel": Gumbel(), "uct": UCT()}
EACH = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
CLEAR = 1e-5  # Choices with a smaller margin may differ in float32.
HALVINGS = {  # Settings of Gumbel, and whether there is noise.
    "few": ({"num_simulations": 20, "max_considered_actions": 3, "gumbel_scale": 3.0}, True),
    "scales": ({"value_scale": 0.5, "maxvisit_init": 2.0, "gumbel_scale": 0.5}, True),
    "values": ({"value_scale": 1.0}, False),
}
RULES = {"tic_tac_toe": tic_tac_toe, "misere_pile": misere_pile}
ROLLOUTS = 2000


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
    finished = result.tree.embeddings.over
    assert finished.any() and not result.tree.node_values[finished].any()
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
            equal = functools.partial(np.testing.assert_array_equal, err_msg=fault)
            jax.tree.map(equal, take(result, ~hurt), take(sound, ~hurt))
            is_nan = np.isnan(result.value[hurt])
            assert is_nan.any() == ("values" in fault), fault
            assert fault != "values NaN" or is_nan.mean() > 0.8


@pytest.mark.parametrize("config", [PUCT(), Gumbel()], ids=["puct", "gumbel"])
def test_a_logit_of_minus_infinity_is_a_prior_of_almost_zero(config):
    table, start = bench("tic_tac_toe").constant_table(0), repeat([0] * 9)
    table.logits[:, [0, 5]] = -np.inf
    prior = run(config, table, start).prior[0]
    np.testing.assert_allclose(prior, (table.logits[0] == 0) / 7, atol=1e-6)
    table.logits[:] = -np.inf
    even = run(config, table, start).prior
    assert np.ptp(even) == 0 < even.min()


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
    last, first = take(result, slice(half, None)), take(found, slice(half - 1, None, -1))
    jax.tree.map(np.testing.assert_array_equal, last, first)
    np.testing.assert_array_equal(found.action[half:], 0)


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


# Gumbel.


def noise_of(result):
    """The root's noise in a finished search, `[B, A]`."""
    return result.tree.extra_data[0]


@pytest.mark.parametrize("kind", HALVINGS)
def test_gumbel_equals_the_textbook(some_states, kind):
    """Danihelka et al. 2022, in plain Python."""
    settings, add_noise = HALVINGS[kind]
    config, table = Gumbel(**settings), bench("tic_tac_toe").random_table()
    result = run(config, table, some_states, add_noise=add_noise)
    noise = noise_of(result)[:20]
    assert (noise != 0).all() == add_noise
    settings = gumbel.Settings(*(getattr(config, name) for name in gumbel.Settings._fields))
    given = noise.tolist(), [settings] * 20
    expected = textbook(gumbel, "tic_tac_toe", table, some_states, *given)
    clear = np.array([one.margin for one in expected]) > 10 * CLEAR
    assert clear.mean() > 0.7
    for row in np.flatnonzero(clear):
        one, ours = expected[row], jax.tree.map(lambda leaf: leaf[row], result)
        pairs = (one.visit_counts, ours.visit_counts), (one.policy, ours.action_weights)
        for found, counts in pairs:
            theirs = [found.get(action, 0) for action in range(9)]
            np.testing.assert_allclose(counts, theirs, atol=2e-4)
        np.testing.assert_allclose(ours.value, one.value, atol=1e-5)
        assert ours.action == one.action


def test_the_noise_is_gumbels_times_its_scale(some_states):
    table = bench("tic_tac_toe").random_table()
    draw = functools.partial(run, table=table, states=some_states, add_noise=True)
    one, three = (
        [noise_of(draw(Gumbel(gumbel_scale=scale), seed=seed)) for seed in range(4)]
        for scale in (1.0, 3.0)
    )
    np.testing.assert_allclose(three, 3 * np.array(one), rtol=1e-6)
    for probability in (0.1, 0.5, 0.9):  # The quantiles of exp(-exp(-x)).
        share = (np.array(one) < -np.log(-np.log(probability))).mean()
        assert share == pytest.approx(probability, abs=0.04)


# UCT.


def test_every_node_follows_the_ucb1_formula():
    """With 60 constants, so that a slightly different bound changes the choice in many nodes."""
    states = repeat([1, 0, 0, 0, -1, 0, 0, 0, 1], [1, -1, 1, -1, -1, 1, 0, 0, 0])
    tree = run(UCT(), bench("tic_tac_toe").random_table(), states, luck=1.0).tree
    constants = np.linspace(0.05, 6, 60, dtype=np.float32)

    def choose(exploration, tree, node):
        return uct_action(UCT(exploration=exploration), tree, node)

    at_nodes = jax.vmap(jax.vmap(choose, (None, None, 0)), (None, 0, None))
    at_nodes = jax.vmap(at_nodes, (0, None, None))
    with sharing():
        compiled = jax.jit(at_nodes, compiler_options=AS_IN_TRAINING)
        chosen = np.asarray(compiled(constants, tree, np.arange(33)))
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
    np.testing.assert_array_equal(chosen[:, b, node][clear], score.argmax(-1)[clear])


def test_untried_actions_are_tried_in_uniformly_random_order():
    """At the root and below it, counted over many positions."""
    table, start = bench("tic_tac_toe").constant_table(0), repeat([0] * 9)
    trees = [run(UCT(), table, start, seed=seed).tree for seed in range(16)]
    index = np.concatenate([tree.children_index[:, 0] for tree in trees])
    tried = np.argsort(index, axis=1)
    for place in range(9):
        assert chisquare(np.bincount(tried[:, place], minlength=9)).pvalue > 1e-4
    pairs = np.bincount(tried[:, 0] * 9 + tried[:, 1], minlength=81)
    assert chisquare(np.delete(pairs, np.arange(9) * 10)).pvalue > 1e-4
    below = [t.action_from_parent[t.parents == t.children_index[:, :1, 0]] for t in trees]
    counts = np.bincount(np.concatenate(below), minlength=9)
    assert counts[0] == 0 and chisquare(counts[1:]).pvalue > 1e-4  # Below action 0.
    orders = random_order(jax.random.split(jax.random.key(1), 4096), np.zeros((4096, 9)))
    assert chisquare(np.bincount(orders.argmax(axis=1), minlength=9)).pvalue > 1e-4


def test_the_order_of_first_visits_does_not_depend_on_the_evaluator():
    """Below the root, the order and the evaluation of a position have keys of their own."""
    table, start = bench("tic_tac_toe").constant_table(0), repeat([0] * 9)
    tree = run(UCT(), table, start, luck=1.0).tree
    values = tree.raw_values[:, 1:10].ravel()  # The first nine nodes below the root.
    first = tree.children_prior_logits[:, 1:10].max(axis=-1).ravel()
    assert abs(np.corrcoef(values, first)[0, 1]) < 0.15


# Rollouts.


@pytest.mark.parametrize("name", RULES)
def test_rollouts_average_to_the_value_of_random_play(name):
    """In four positions of a random game; 0.12 is five standard errors."""
    game, rules, rng = bench(name).game, RULES[name], np.random.default_rng(1)
    state, position, roll_out = game.init(), rules.start(), jax.jit(rollout_evaluator(game))
    means, expected = [], []
    for row in range(4):
        many = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (ROLLOUTS, *leaf.shape)), state)
        with sharing():
            logits, values = jax.device_get(roll_out(None, jax.random.key(row), many))
        assert values.dtype == logits.dtype == np.float32 and not logits.any()
        assert set(np.unique(values).tolist()) <= {-1, 0, 1}
        means.append(values.mean())
        expected.append(minimax.random_play_value(rules, position))
        if not position.over:
            action = int(rng.choice(rules.legal(position)))
            state, position = game.step(state, action)[0], rules.play(position, action)[0]
    np.testing.assert_allclose(means, expected, atol=0.12)
    assert np.ptp(expected) > 0.4  # A constant would not pass.


def test_a_rollout_that_max_plies_cuts_off_has_no_value(tic_tac_toe):
    """It does not count as a draw."""
    with sharing():
        short = jax.jit(rollout_evaluator(tic_tac_toe._replace(max_plies=6)))
        values = short(None, jax.random.key(0), init_batch(tic_tac_toe, 64))[1]
    assert 0 < np.isnan(values).sum() < 64
