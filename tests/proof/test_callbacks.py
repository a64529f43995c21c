"""Verification during training: when it takes place, and equal results in large and small games."""

import dataclasses
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import training
from azjax.proof.callbacks import Certification, Verification
from azjax.proof.certificate import VerifiedSearch, issue
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.training.loop import Loop
from azjax.training.metrics import Record

PARTS = make_parts(presets.smoke(presets.get("default")))
RECORD = Record(1, 0.0, 0, 0.0, {"loss": 0.0})


@pytest.fixture(scope="module")
def verifications():
    """Of a small game, and of the same game with the limits of a larger one."""
    larger = PARTS._replace(game=PARTS.game._replace(most_positions=10**6))
    found = [Verification(parts, training.make_mesh()) for parts in (PARTS, larger)]
    found[0].on_start(make_loop())
    return found


@pytest.fixture
def loop():
    return make_loop()


def make_loop():
    """After one iteration, with parameters that differ from their average."""
    state = training.make_state(PARTS, jax.random.key(0), training.make_mesh())
    wrong = jax.tree.map(lambda leaf: leaf + jnp.nan, state.learner.variables)
    learner = state.learner._replace(variables=wrong)
    return Loop(PARTS, state.replace(learner=learner, iteration=state.iteration + 1), None, 9, 0.0)


def test_a_larger_game_is_verified_in_slices_with_the_same_result(verifications, loop):
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


def test_the_verdict_is_added_to_the_record(verifications, loop):
    loop.record = RECORD
    verification = verifications[0]
    verification.on_iteration(loop)
    verdict, found = verification.verdict, loop.record.as_dict()
    names = ("blunders", "value_sign_errors", "value_error")
    assert [found[name] for name in names] == [getattr(verdict, name) for name in names]
    lines = [found["losing_lines_first"], found["losing_lines_second"]]
    assert lines == verdict.losing_lines.tolist() and lines[0] != lines[1]


def test_verification_of_a_larger_game_costs_a_tenth_of_the_evaluations(verifications):
    small, large = verifications
    assert small.every == 1
    assert large.every == -(-4520 // (0.1 * 16 * 4 * 5))  # Games, plies, evaluations per move.


@pytest.mark.parametrize(("most", "every"), [(0, 142), (7, 7), (500, 142)])
def test_verification_may_be_more_frequent(most, every):
    larger = PARTS._replace(game=PARTS.game._replace(most_positions=10**6))
    assert Verification(larger, training.make_mesh(), most).every == every


@pytest.mark.parametrize(
    ("every", "last", "found"),
    [(1, 9, [0, 1, 2, 3, 4, 5, 6]), (3, 9, [3, 6]), (3, 5, [3, 5, 6])],
)
def test_every_few_iterations_and_the_last_are_verified(every, last, found, verifications):
    verdict = verifications[0].verdict
    verification = Verification.__new__(Verification)
    verification.every, verification._verify = every, lambda params: (verdict, params)

    def is_verified(iteration):
        learner = types.SimpleNamespace(average=jnp.int32(7))
        state = types.SimpleNamespace(iteration=jnp.int32(iteration), learner=learner)
        loop = Loop(PARTS, state, None, last, 0.0, record=RECORD)
        (verification.on_iteration if iteration else verification.on_start)(loop)
        assert verification.answers in (None, 7)
        return verification.verdict is not None

    assert [i for i in range(7) if is_verified(i)] == found


def test_a_resumed_run_is_verified_at_its_start(verifications, loop):
    large = verifications[1]
    large.on_start(loop)
    assert large.verdict is not None
    loop.state = loop.state.replace(iteration=loop.state.iteration * 0)
    large.on_start(loop)
    assert large.verdict is None


class Examined:
    """A verification with given results in each iteration: blunders, losses, search blunders."""

    def __init__(self, verifications, results):
        self._verdict = verifications[0].verdict
        self._results = iter(results)

    def next(self):
        self.blunders, self.lost, self.searched = next(self._results)
        self.verdict = self._verdict._replace(
            blunders=jnp.int32(self.blunders), losing_lines=jnp.array([0, self.lost])
        )

    def certify(self, loop, seed):
        searches = (VerifiedSearch("puct", 32, self.searched),)
        return issue(PARTS, self.verdict, searches, loop.iteration, loop.started, seed)


@pytest.mark.parametrize(
    ("goal", "results", "stop"),
    [
        ("perfect", [(1, 0, 0), (0, 0, 2), (0, 0, 0), (0, 0, 0)], 3),  # Searches count as well.
        ("perfect", [(1, 0, 0), (0, 0, 2), (1, 1, 0), (0, 0, 1)], None),
        ("unbeatable", [(1, 1, 0), (2, 0, 3), (0, 0, 0), (0, 0, 0)], 2),
        ("never", [(0, 0, 0)] * 4, None),
    ],
)
def test_the_training_stops_when_the_goal_is_proved(goal, results, stop, verifications, tmp_path):
    verification, shown = Examined(verifications, results), []
    path = tmp_path / "certificate.json"
    certification = Certification(verification, goal, 5, path, shown.append)
    loop = types.SimpleNamespace(parts=PARTS, iteration=0, started=0.0, stop=False)
    while loop.iteration < 4 and not loop.stop:
        loop.iteration += 1
        verification.next()
        certification.on_iteration(loop)
        assert certification.reached == loop.stop == (loop.iteration == stop)
    certification.on_end(loop)
    content = json.loads(path.read_text())
    assert content == json.loads(json.dumps(shown[0].as_json())) and len(shown) == 1
    assert content["iterations"] == loop.iteration == (stop or 4)
    assert (content["seed"], content["blunders"]) == (5, results[loop.iteration - 1][0])


def test_a_new_certificate_replaces_an_old_one_only_after_training(verifications, tmp_path):
    verification = Examined(verifications, [(1, 0, 0)])
    verification.next()
    path = tmp_path / "certificate.json"
    path.write_text("old")
    loop = types.SimpleNamespace(parts=PARTS, iteration=1, started=0.0, stop=False)
    certification = Certification(verification, "perfect", 5, path)
    certification.on_end(loop)
    assert path.read_text() == "old"
    certification.on_iteration(loop)
    certification.on_end(loop)
    assert json.loads(path.read_text())["blunders"] == 1


def test_a_resumed_run_stops_at_once_if_its_goal_is_proved(verifications, tmp_path):
    for iteration in (0, 1):
        verification = Examined(verifications, [(0, 0, 0)])
        verification.next()
        certification = Certification(verification, "perfect", 5, tmp_path / "certificate.json")
        loop = types.SimpleNamespace(parts=PARTS, iteration=iteration, started=0.0, stop=False)
        certification.on_start(loop)
        assert loop.stop == (iteration > 0)
