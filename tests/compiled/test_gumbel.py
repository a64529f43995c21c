"""Gumbel AlphaZero against a plain implementation of its paper, and its noise."""

import jax
import numpy as np
import pytest

from azjax.search import Gumbel
from azjax.search.gumbel import considered_visits
from guard import sharing
from reference import gumbel
from tables import bench, run, textbook

CLEAR = 1e-4  # Choices with a smaller margin may differ in float32.
FEW = {"num_simulations": 20, "max_considered_actions": 3}
SETTINGS = [
    FEW | {"gumbel_scale": 3.0},
    {"value_scale": 0.5, "maxvisit_init": 2.0, "gumbel_scale": 0.5},
    {"value_scale": 1.0},
]


def noise_of(result):
    """The root's noise in a finished search, `[B, A]`."""
    return result.tree.extra_data[0]


@pytest.mark.parametrize("settings", SETTINGS, ids=["few", "scales", "values"])
@pytest.mark.parametrize("add_noise", [True, False])
def test_gumbel_equals_the_textbook(some_states, settings, add_noise):
    config, table = Gumbel(**settings), bench("tic_tac_toe").random_table()
    result = run(config, table, some_states, add_noise=add_noise)
    noise = noise_of(result)[:20]
    assert (noise != 0).all() == add_noise
    settings = gumbel.Settings(*(getattr(config, name) for name in gumbel.Settings._fields))
    given = noise.tolist(), [settings] * 20
    expected = textbook(gumbel, "tic_tac_toe", table, some_states, *given)
    clear = np.array([one.margin for one in expected]) > CLEAR
    assert clear.mean() > 0.7
    for row in np.flatnonzero(clear):
        one, ours = expected[row], jax.tree.map(lambda leaf: leaf[row], result)
        for found, counts in (
            (one.visit_counts, ours.visit_counts),
            (one.policy, ours.action_weights),
        ):
            theirs = [found.get(action, 0) for action in range(9)]
            np.testing.assert_allclose(counts, theirs, atol=2e-4)
        np.testing.assert_allclose(ours.value, one.value, atol=1e-5)
        assert ours.action == one.action


def test_sequential_halving_is_that_of_the_reference():
    with sharing():
        find = jax.jit(considered_visits, static_argnums=(2, 3))
        ours = {n: find(np.arange(1, 17), np.int32(n), 200, 16) for n in (1, 7, 50, 200)}
    for simulations, table in ours.items():
        settings = gumbel.Settings(simulations)
        theirs = [gumbel.halving(settings, legal) for legal in range(1, 17)]
        np.testing.assert_array_equal(table[:, :simulations], theirs)


def test_the_noise_is_gumbels_times_its_scale(some_states):
    table, seeds = bench("tic_tac_toe").random_table(), range(4)
    one, three = (
        [
            noise_of(run(Gumbel(gumbel_scale=scale), table, some_states, seed=seed, add_noise=True))
            for seed in seeds
        ]
        for scale in (1.0, 3.0)
    )
    np.testing.assert_allclose(three, 3 * np.array(one), rtol=1e-6)
    for probability in (0.1, 0.5, 0.9):  # The quantiles of exp(-exp(-x)).
        share = (np.array(one) < -np.log(-np.log(probability))).mean()
        assert share == pytest.approx(probability, abs=0.04)
