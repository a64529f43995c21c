"""When a training examines its network, and that a larger game is examined as a small one is."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import training
from azjax.proof.callbacks import Verification
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.training.loop import Loop
from azjax.training.metrics import Record

PARTS = make_parts(presets.smoke(presets.get("default")))
RECORD = Record(1, 0.0, 0, 0.0, {"loss": 0.0})


@pytest.fixture(scope="module")
def verifications():
    """Of a small game, and of the same where nobody knows that."""
    larger = PARTS._replace(game=PARTS.game._replace(most_positions=10**6))
    return [Verification(parts, training.make_mesh()) for parts in (PARTS, larger)]


@pytest.fixture
def loop():
    """After one iteration, with parameters that are not their average."""
    state = training.make_state(PARTS, jax.random.key(0), training.make_mesh())
    wrong = jax.tree.map(lambda leaf: leaf + jnp.nan, state.learner.variables)
    learner = state.learner._replace(variables=wrong)
    return Loop(PARTS, state.replace(learner=learner, iteration=state.iteration + 1), None, 9, 0.0)


def test_a_larger_game_is_examined_in_slices_with_the_same_result(verifications, loop):
    for verification in verifications:
        verification.on_start(loop)
    small, large = verifications
    for mine, theirs in zip(small.answers, large.answers, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    assert small.verdict.blunders > 0
    for mine, theirs in zip(small.verdict, large.verdict, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    small, large = (verification.certify(loop, 0) for verification in verifications)
    assert (len(small.searches), large.searches) == (2, ())
    assert dataclasses.replace(small, searches=(), seconds=0) == dataclasses.replace(
        large, seconds=0
    )


def test_what_is_found_is_in_the_record(verifications, loop):
    loop.record = RECORD
    verification = verifications[0]
    verification.on_iteration(loop)
    verdict, found = verification.verdict, loop.record.as_dict()
    names = ("blunders", "value_sign_errors", "value_error")
    assert [found[name] for name in names] == [getattr(verdict, name) for name in names]
    lines = [found["losing_lines_first"], found["losing_lines_second"]]
    assert lines == verdict.losing_lines.tolist() and lines[0] != lines[1]


def test_a_larger_game_is_examined_as_often_as_a_tenth_of_the_evaluations_allows(verifications):
    small, large = verifications
    assert small.every == 1
    assert large.every == -(-4520 // (0.1 * 16 * 4 * 5))  # Games, plies and evaluations a move.


@pytest.mark.parametrize(("most", "every"), [(0, 142), (7, 7), (500, 142)])
def test_it_may_be_examined_more_often(most, every):
    larger = PARTS._replace(game=PARTS.game._replace(most_positions=10**6))
    assert Verification(larger, training.make_mesh(), most).every == every


@pytest.mark.parametrize(
    ("every", "last", "found"),
    [(1, 9, [0, 1, 2, 3, 4, 5, 6]), (3, 9, [3, 6]), (3, 5, [3, 5, 6])],
)
def test_it_is_examined_every_few_iterations_and_at_the_end(every, last, found, verifications):
    verdict = verifications[0].verdict or verifications[1].verdict
    verification = Verification.__new__(Verification)
    verification.every, verification._verify = every, lambda params: (verdict, params)

    def is_examined(iteration):
        learner = types.SimpleNamespace(ema_params=jnp.int32(7))
        state = types.SimpleNamespace(iteration=jnp.int32(iteration), learner=learner)
        loop = Loop(PARTS, state, None, last, 0.0, record=RECORD)
        (verification.on_iteration if iteration else verification.on_start)(loop)
        assert verification.answers in (None, 7)
        return verification.verdict is not None

    assert [i for i in range(7) if is_examined(i)] == found


def test_a_run_that_goes_on_is_examined_at_once(verifications, loop):
    large = verifications[1]
    large.on_start(loop)
    assert large.verdict is not None
    loop.state = loop.state.replace(iteration=loop.state.iteration * 0)
    large.on_start(loop)
    assert large.verdict is None
