"""When a training examines its network, and that a larger game is examined as a small one is."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from azjax.cli.proof import Proof, examine, make_proof

from azjax import training
from azjax.runs import presets
from azjax.runs.config import make_parts

PARTS = make_parts(presets.smoke(presets.get("default")))


@pytest.fixture(scope="module")
def proofs():
    """Of a small game, and of the same where nobody knows that."""
    larger = PARTS._replace(game=PARTS.game._replace(most_positions=10**6))
    return [make_proof(parts, training.make_mesh()) for parts in (PARTS, larger)]


def test_a_larger_game_is_examined_in_slices_with_the_same_result(proofs):
    state = training.make_state(PARTS, jax.random.key(0), training.make_mesh())
    (verdict, seen), (other, less) = (examine(p, state, anyway=True) for p in proofs)
    assert seen.logits is not None and less.logits is less.values is None
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, atol=1e-5), seen.portrait, less.portrait
    )
    assert verdict.blunders > 0
    for mine, theirs in zip(verdict, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    params = PARTS.network.fold(training.one_copy(state.learner.ema_params))
    small, large = (
        proof.certify(params, found, 3, 0.0, 0)
        for proof, found in zip(proofs, (verdict, other), strict=True)
    )
    assert (len(small.searches), large.searches) == (2, ())
    assert dataclasses.replace(small, searches=(), seconds=0) == dataclasses.replace(
        large, seconds=0
    )


def test_a_larger_game_is_examined_as_often_as_a_tenth_of_the_evaluations_allows(proofs):
    small, large = proofs
    assert small.every == 1
    assert large.every == -(-4520 // (0.1 * 16 * 4 * 5))  # Games, plies and evaluations a move.


@pytest.mark.parametrize(("most", "every"), [(0, 142), (7, 7), (500, 142)])
def test_it_may_be_examined_more_often(most, every):
    larger = PARTS._replace(game=PARTS.game._replace(most_positions=10**6))
    assert make_proof(larger, training.make_mesh(), most).every == every


@pytest.mark.parametrize(
    ("every", "anyway", "found"),
    [(1, False, [0, 1, 2, 3, 4, 5, 6]), (3, False, [3, 6]), (3, True, [0, 1, 2, 3, 4, 5, 6])],
)
def test_it_is_examined_every_few_iterations_or_anyway(every, anyway, found):
    proof = Proof(None, lambda params: (params, "seen"), None, every)

    def state(iteration):
        learner = types.SimpleNamespace(ema_params=jnp.int32(7))
        return types.SimpleNamespace(iteration=jnp.int32(iteration), learner=learner)

    answers = {i: examine(proof, state(i), anyway) for i in range(7)}
    assert [i for i, answer in answers.items() if answer == (7, "seen")] == found
    assert all(answer == (None, None) for i, answer in answers.items() if i not in found)


def test_nothing_is_examined_where_there_is_no_proof():
    assert examine(None, None) == (None, None)
