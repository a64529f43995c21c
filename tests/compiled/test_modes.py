"""JAX's strict promotion: nothing mixes types or ranks. Programs are traced, not compiled.

`tests/system/test_modes.py` tries every package, also in 64-bit mode.
"""

import functools

import jax
import pytest

import azjax
from azjax.games.base import describe, init_batch
from azjax.search import ALGORITHMS, make_search
from azjax.search.evaluators import rollout_evaluator


@pytest.fixture(autouse=True)
def strict():
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield


def trace(function, *args):
    shapes = jax.eval_shape(function, *args)
    assert "64[" not in describe(shapes)
    return shapes


def test_searches(tic_tac_toe):
    states, key = init_batch(tic_tac_toe, 2), jax.random.key(0)
    for algorithm in ALGORITHMS.values():
        search = make_search(
            algorithm(num_simulations=3), tic_tac_toe, rollout_evaluator(tic_tac_toe)
        )
        trace(functools.partial(search, None, temperature=1.0, add_noise=True), key, states)


def test_a_shipped_player():
    player = azjax.load("tic_tac_toe")  # Its network has integers as weights.
    act = functools.partial(player.agent.act, player.params)
    trace(act, jax.random.key(0), init_batch(player.game, 2))
