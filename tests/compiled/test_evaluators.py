"""Rollouts and the exact evaluator against plain recursion; what evaluators return."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.base import init_batch
from azjax.search.evaluators import (
    rollout_evaluator,
)
from guard import sharing
from reference import minimax
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as tic_tac_toe_rules
from tables import bench

RULES = {"tic_tac_toe": tic_tac_toe_rules, "misere_pile": misere_pile_rules}
ROLLOUTS = 2000


@functools.cache
def rollouts(name):
    """`(key, states [ROLLOUTS, ...]) -> values`."""
    return jax.jit(functools.partial(rollout_evaluator(bench(name).game), None))


def roll_out(name, key, states):
    with sharing():
        logits, values = rollouts(name)(key, states)
    assert (logits.dtype, values.dtype) == (jnp.float32, jnp.float32) and not logits.any()
    return np.asarray(values)


@pytest.mark.parametrize("name", RULES)
def test_rollouts_average_to_the_value_of_random_play(name):
    """In four positions of a random game; 0.12 is five standard errors."""
    game, rules, rng = bench(name).game, RULES[name], np.random.default_rng(1)
    state, position = game.init(), rules.start()
    means, expected = [], []
    for row in range(4):
        many = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (ROLLOUTS, *leaf.shape)), state)
        values = roll_out(name, jax.random.key(row), many)
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
