"""Verification of networks: in training, in slices, and with searches; the certifier's calls."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax import training
from azjax.networks import MLPConfig
from azjax.proof import certificate as certificates
from azjax.proof.callbacks import Verification
from azjax.proof.certificate import make_certifier, searches_to_verify
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import PUCT, Gumbel
from azjax.training.loop import Loop
from azjax.training.metrics import Record
from integers import random_like
from tables import bench

CONFIG = dataclasses.replace(
    presets.smoke(presets.get("default")), network=MLPConfig(hidden=(8,), head_hidden=4)
)
PARTS = make_parts(CONFIG)
LARGER = PARTS._replace(game=PARTS.game._replace(most_positions=10**6))
RECORD = Record(1, 0.0, 0, 0.0, {"loss": 0.0})


class Certifier:
    """Runs once: a table as network, and searches that record how they are called."""

    def __init__(self, solution):
        self.checked, self.done, self.calls = [], [], []
        self.table = bench("tic_tac_toe").random_table()
        self.searches = PUCT(num_simulations=6, c_puct=0.3), Gumbel(num_simulations=6)
        parts = PARTS._replace(search=self.searches[0])
        evaluate = bench("tic_tac_toe").evaluate

        def make_search(search, game, evaluate):
            def find(params, key, states, temperature=0.0, add_noise=False):
                self.calls.append((search, temperature, add_noise))
                first = jnp.argmax(jax.vmap(game.legal_actions)(states), axis=1)
                last = 8 - jnp.argmax(jax.vmap(game.legal_actions)(states)[:, ::-1], axis=1)
                action = first if search.algorithm == "puct" else last
                return types.SimpleNamespace(action=action, value=params.values[: len(action)])

            return find

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(parts), "evaluate", property(lambda parts: evaluate))
            patch.setattr(certificates, "make_search", make_search)
            patch.setattr(certificates, "SLICE", 1000)
            patch.setattr(certificates, "check_trees", lambda *given: self.checked.append(given))
            notify = lambda *done: self.done.append(done)  # noqa: E731
            certify = make_certifier(parts, solution, self.searches, notify)
            self.certificate = certify(jax.tree.map(jnp.asarray, self.table), 11, 0.0, 5)
            make_certifier(parts, solution)


@pytest.fixture(scope="module")
def certifier(solution):
    return Certifier(solution)


def test_searches_are_verified_with_their_settings_and_without_noise(certifier, solution):
    assert certifier.calls == [(search, 0.0, False) for search in certifier.searches]
    sizes = [1000, 2000, 3000, 4000, 4520]
    names = ("network alone", "puct(6)", "gumbel(6)")
    assert certifier.done == [(name, done) for name in names for done in sizes]
    # Trees are checked for one slice; by default those of `searches_to_verify`.
    expected = [*certifier.searches, *searches_to_verify(certifier.searches[0])]
    assert [given[0] for given in certifier.checked] == expected
    assert certifier.checked[0][2] == 1000
    legal, optimal = solution.legal[solution.decisions], solution.optimal[solution.decisions]
    for search, actions in zip(
        certifier.certificate.searches,
        (legal.argmax(axis=1), 8 - legal[:, ::-1].argmax(axis=1)),
        strict=True,
    ):
        assert search.blunders == (~optimal[np.arange(4520), actions]).sum()
        assert search.num_simulations == 6


# In training.


@pytest.fixture(scope="module")
def verifications():
    """Of a small game, and of the same game with the limits of a larger one."""
    with pytest.MonkeyPatch.context() as patch:
        alone = lambda parts, search, params: certificates.network_policy(parts, params)  # noqa: E731
        patch.setattr(certificates, "search_policy", alone)
        small, large = (Verification(parts, training.make_mesh()) for parts in (PARTS, LARGER))
        small.on_start(make_loop())
        large.on_start(make_loop())
        certificates_of_both = [each.certify(make_loop(), 0) for each in (small, large)]
        return small, large, certificates_of_both


def make_loop():
    """After one iteration, with parameters that differ from their average."""
    shapes = jax.eval_shape(PARTS.network.init, jax.random.key(0))
    average = jax.tree.map(jnp.asarray, random_like(shapes, 0))
    wrong = jax.tree.map(lambda leaf: leaf + np.nan, average)
    learner = types.SimpleNamespace(average=average, variables=wrong)
    state = types.SimpleNamespace(iteration=np.int32(1), learner=learner)
    return Loop(PARTS, state, None, 9, 0.0)


def test_a_larger_game_is_verified_in_slices_with_the_same_result(verifications):
    small, large, (whole, certificate) = verifications
    for mine, theirs in zip(small.answers, large.answers, strict=True):
        assert np.isfinite(mine).all()
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    assert small.verdict.blunders > 0
    for mine, theirs in zip(small.verdict, large.verdict, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    assert (len(whole.searches), certificate.searches) == (2, ())
    assert dataclasses.replace(whole, searches=(), seconds=0) == dataclasses.replace(
        certificate, seconds=0
    )


def test_the_verdict_is_added_to_the_record(verifications):
    loop, verification = make_loop(), verifications[0]
    loop.record = RECORD
    verification.on_iteration(loop)
    verdict, found = verification.verdict, loop.record.as_dict()
    names = ("blunders", "value_sign_errors", "value_error")
    assert [found[name] for name in names] == [getattr(verdict, name) for name in names]
    lines = [found["losing_lines_first"], found["losing_lines_second"]]
    assert lines == verdict.losing_lines.tolist() and lines[0] != lines[1]


def test_verification_of_a_larger_game_costs_a_tenth_of_the_evaluations(verifications):
    assert verifications[0].every == 1
    every = -(-4520 // (0.1 * 16 * 4 * 5))  # Games, plies, evaluations per move.
    assert verifications[1].every == every
    with guard.sharing():
        for most, expected in ((0, every), (7, 7), (500, every)):
            assert Verification(LARGER, training.make_mesh(), most).every == expected


@pytest.mark.parametrize(
    ("every", "last", "found"),
    [(1, 9, [0, 1, 2, 3, 4, 5, 6]), (3, 9, [3, 6]), (3, 5, [3, 5, 6])],
)
def test_every_few_iterations_and_the_last_are_verified(every, last, found, verifications):
    """A resumed run is verified at its start."""
    verdict = verifications[0].verdict
    verification = Verification.__new__(Verification)
    verification.every, verification._verify = every, lambda params: (verdict, params)

    def is_verified(iteration, method):
        learner = types.SimpleNamespace(average=jnp.int32(7))
        state = types.SimpleNamespace(iteration=jnp.int32(iteration), learner=learner)
        getattr(verification, method)(Loop(PARTS, state, None, last, 0.0, record=RECORD))
        assert verification.answers in (None, 7)
        return verification.verdict is not None

    methods = ["on_start", *["on_iteration"] * 6]
    assert [i for i, method in enumerate(methods) if is_verified(i, method)] == found
    assert is_verified(1, "on_start") and is_verified(0, "on_start") == (every == 1)
