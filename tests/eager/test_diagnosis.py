"""Checks of the doctor that need no training."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from azjax import diagnosis
from azjax.cli import doctor
from azjax.diagnosis import Finding
from azjax.players.arena import Match, Tally
from azjax.runs import Config, create_run
from azjax.search import PUCT, uniform_evaluator
from azjax.training import LearnerConfig, Sample, SelfPlayConfig


def is_alarm(finding, sentence=""):
    assert sentence in finding.sentence
    return bool(finding.advice)


def test_strength_is_that_of_both_seats(monkeypatch, tic_tac_toe):
    """In the first row, whoever moves first wins."""
    evaluate = uniform_evaluator(tic_tac_toe)
    parts = SimpleNamespace(game=tic_tac_toe, evaluate=evaluate, search=PUCT())
    monkeypatch.setattr(diagnosis.arena, "draw_openings", lambda *given: None)
    for first, second, score, alarms in (
        ((100, 0, 0, 9), (0, 0, 100, 9), "0.50", [True, False]),
        ((100, 0, 0, 9), (80, 10, 10, 9), "0.93", [False, False]),
        ((0, 100, 0, 9), (0, 0, 100, 9), "0.25", [True, True]),
    ):
        match = Match("a", "b", Tally(*first), Tally(*second), False)
        monkeypatch.setattr(diagnosis.arena, "play_match", lambda *given, match=match: match)
        findings = diagnosis._strength(parts, None, jax.random.key(0))
        assert [is_alarm(finding, f"scores {score}") for finding in findings] == alarms


def test_few_positions_repeat_in_a_small_game():
    planes = np.arange(1000) % 20
    samples = Sample(planes, None, None, planes)
    assert is_alarm(diagnosis._repeats(samples, None), "2% of 1000")
    assert not is_alarm(diagnosis._repeats(samples, 23), "2% of 1000")


def test_games_that_never_end_are_an_alarm_after_their_first_moves():
    """A game lasts nine moves, and an iteration has four."""
    for carry_over, iteration, discounts, alarms in (
        (True, 3, [-1, -1], True),
        (True, 3, [-1, 0], False),
        (True, 2, [-1, -1], False),
        (False, 2, [-1, -1], True),
    ):
        config = SelfPlayConfig(unroll_length=4, carry_over=carry_over)
        parts = SimpleNamespace(selfplay=config, game=SimpleNamespace(max_plies=9))
        state = SimpleNamespace(iteration=iteration)
        finding = diagnosis._ends(parts, state, np.array(discounts))
        assert is_alarm(finding, f"{2 - np.count_nonzero(discounts)} games ended in 2") == alarms


def test_a_learning_rate_of_zero_is_an_alarm_after_the_warm_up():
    learner = LearnerConfig(warmup_steps=10_000, decay_steps=50, final_learning_rate=0.0)
    for step, alarms in ((1, False), (10_000, False), (10_025, False), (10_050, True)):
        state = SimpleNamespace(learner=SimpleNamespace(step=step))
        [finding] = diagnosis._rate(Config(learner=learner), state)
        assert is_alarm(finding, f"at step {step:,}") == alarms
    assert diagnosis._rate(Config(parts="custom.py:make"), None) == []


def test_policies_are_those_of_the_inference_form():
    """In which parameters are folded."""
    policy = np.array([[0.5, 0.5, 0]], np.float32)
    samples = Sample(jnp.eye(1, 5), policy > 0, policy, np.zeros(1))
    network = SimpleNamespace(infer=lambda params, planes: (planes @ params, None))
    for kernel, is_wrong in ((jnp.zeros((5, 3)), False), (9 * jnp.eye(5, 3), True)):
        finding = diagnosis._policies(network, kernel, samples)
        assert finding.sentence.startswith("KL 0.00") != is_wrong == is_alarm(finding)
        assert finding.sentence.endswith("; 0.00 from a uniform policy")


def test_the_exit_status_is_1_if_something_is_wrong(monkeypatch, tmp_path, capsys):
    """A run is examined even if its newest checkpoint is damaged, or missing as here."""
    run_dir = create_run(tmp_path / "run", Config())
    for advice, status, mark in (("", 0, "ok"), ("change it", 1, "NO")):
        found = [Finding("a", "is 1", advice), Finding("b", "is 2")]
        monkeypatch.setattr(diagnosis, "diagnose", lambda folder, parts, found=found: found)
        assert doctor.main(["--run-dir", str(run_dir)]) == status
        lines = capsys.readouterr().out.splitlines()
        assert lines == [f"{mark}  a: is 1", *[f"    {advice}"] * status, "ok  b: is 2"]
