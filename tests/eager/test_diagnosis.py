"""Checks of the doctor that need no training."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from azjax import diagnosis
from azjax.cli import doctor
from azjax.diagnosis import Finding
from azjax.players.arena import Match, Tally
from azjax.runs import create_run
from azjax.runs.config import Config
from azjax.search import PUCT, UCT, Gumbel
from azjax.search.evaluators import uniform_evaluator
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.targets import Sample
from refusals import assert_refused


def is_alarm(finding, sentence=""):
    assert sentence in finding.sentence
    return bool(finding.advice)


def test_strength_is_that_of_both_seats(monkeypatch, tic_tac_toe):
    """In the first row, whoever moves first wins."""
    evaluate = uniform_evaluator(tic_tac_toe)
    parts = SimpleNamespace(game=tic_tac_toe, evaluate=evaluate, search=PUCT())
    monkeypatch.setattr(diagnosis, "_random_position", lambda game, most, key: most)
    for first, second, score, alarms in (
        ((100, 0, 0, 9), (0, 0, 100, 9), "0.50", [True, False]),
        ((100, 0, 0, 9), (80, 10, 10, 9), "0.93", [False, False]),
        ((0, 100, 0, 9), (0, 0, 100, 9), "0.25", [True, True]),
    ):
        match = Match("a", "b", Tally(*first), Tally(*second), False)
        monkeypatch.setattr(diagnosis.arena, "play_match", lambda *given, match=match: match)
        findings = diagnosis._strength(parts, None, jax.random.key(0))
        assert [is_alarm(finding, f"scores {score}") for finding in findings] == alarms


def test_positions_are_decided_by_the_opponent_and_not_by_moving_again():
    """In this game, the only move takes one stone; `reward` is that of the last one."""
    for stones, again, reward, expected in (
        (1, False, 1, 1),
        (1, False, 0, 0),
        (1, False, -1, -1),
        (2, False, 1, -1),
        (2, True, 1, 0),  # The same player wins with the next move.
        (2, False, -1, 0),
        (3, False, 1, 0),
    ):
        game = SimpleNamespace(
            num_actions=1,
            step=lambda left, action, last=reward: (left - 1, jnp.where(left == 1, last, 0.0)),
            legal_actions=lambda left: (left > 0)[None],
            is_over=lambda left: left == 0,
            player=lambda left, again=again: jnp.where(again, 0, left % 2),
            chance=None,
        )
        assert diagnosis.decided(game, jnp.int32(stones)) == expected


def test_samples_stay_and_are_used_a_number_of_times():
    """Of 64 games with 4 moves each: 256 samples an iteration."""
    config = SelfPlayConfig(games=64, unroll_length=4)
    for capacity, steps, sentence, advice in (
        (51_200, 100, "stays for 200 iterations and is used 200.0 times", ""),
        (51_456, 1, "stays for 201 iterations and is used 2.0 times", "lower replay.capacity"),
        (512, 101, "stays for 2 iterations and is used 202.0 times", "lower learner.steps, or"),
    ):
        replay = SimpleNamespace(capacity=capacity, batch_size=512)
        learner = SimpleNamespace(steps=steps)
        parts = SimpleNamespace(selfplay=config, replay=replay, learner=learner)
        finding = diagnosis._ages(parts)
        assert is_alarm(finding, sentence) == bool(advice) and finding.advice.startswith(advice)


def test_few_positions_repeat_in_a_small_game():
    planes = np.arange(1000) % 20
    samples = Sample(planes, None, None, planes)
    assert is_alarm(diagnosis._repeats(samples, None), "2% of 1000")
    assert not is_alarm(diagnosis._repeats(samples, 23), "2% of 1000")


def test_games_that_start_alike_are_an_alarm_unless_moves_are_drawn(monkeypatch):
    def start_games(config, game, keys, archive):
        return np.arange(len(keys)) % (archive or 1)

    monkeypatch.setattr(diagnosis.selfplay, "start_games", start_games)
    config, same = SelfPlayConfig(opening_share=0.0), Gumbel(gumbel_scale=0.0)
    for search, archive, count, alarms in (
        (Gumbel(), None, 1, False),
        (same, None, 1, True),
        (same, 2, 2, False),  # Starts from the archive.
        (PUCT(), None, 1, False),
        (UCT(), None, 1, False),
    ):
        parts = SimpleNamespace(selfplay=config, search=search, game=None)
        state = SimpleNamespace(archive=archive)
        finding = diagnosis._openings(parts, state, jax.random.key(0))
        assert is_alarm(finding, f"{count} different starts") == alarms


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


def test_gradients_are_those_of_the_last_ten_records():
    """Ten large ones, then ten others; some records have none."""
    for last, clip, sentence, alarms in (
        (5.0, 1.0, "median norm 5 in the last 10 ", False),
        (0.0, 1.0, "median norm 0 in the last 10 ", True),
        (101.0, 1.0, "median norm 1e+02 in the last 10 ", True),
        (101.0, 0.0, "median norm 1e+02 in the last 10 ", False),
    ):
        config = Config(learner=LearnerConfig(clip_norm=clip))
        records = [{"grad_norm": norm} for norm in [1e6] * 10 + [last] * 10]
        [finding] = diagnosis._gradients(config, records)
        assert is_alarm(finding, sentence) == alarms
        records[15:] = [{}] * 4 + [{"grad_norm": None}]
        [finding] = diagnosis._gradients(config, records)
        assert "in the last 5 iterations" in finding.sentence
    assert diagnosis._gradients(Config(), [{}]) == []


def test_units_without_gradients_are_dead_and_empty_cells_are_not():
    def train(variables, planes, axis_name):
        units = jax.nn.relu(planes @ variables["params"]["kernel"])
        others = jax.nn.relu(variables["params"]["more"][None, 0])
        return (units, units[:, 0] + jnp.sum(others)), {}

    def examine(kernel, actions=9):
        game = SimpleNamespace(num_actions=actions)
        parts = SimpleNamespace(network=SimpleNamespace(train=train), game=game)
        learner = SimpleNamespace(variables={"params": {"kernel": kernel, "more": np.ones((1, 2))}})
        with jax.disable_jit():
            finding = diagnosis._units(parts, SimpleNamespace(learner=learner), samples)
        return finding.sentence.partition(" ")[0], bool(finding.advice)

    planes, thirds = np.ones((8, 5), np.float32), np.full((8, 3), 1 / 3, np.float32)
    planes[:, 1:] = 0  # Four of five cells are empty.
    samples = Sample(planes, np.ones((8, 3), bool), thirds, thirds[:, 0])
    kernel = np.arange(1, 16, dtype=np.float32).reshape(5, 3)
    assert examine(kernel) == ("0%", False)
    assert examine(kernel * [1, -1, -1]) == ("67%", True)
    assert examine(kernel * [1, -1, -1], actions=3) == ("0%", False)  # Illegal actions.


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


def test_a_player_that_comes_with_azjax_has_nothing_to_examine():
    said = "hex:6 comes with azjax, without a checkpoint: name a run's folder"
    assert_refused((lambda: diagnosis.diagnose("hex:6"), said))
