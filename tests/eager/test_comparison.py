"""Statistics of comparisons, and the file that they continue."""

import dataclasses
import json
import math
import types

import numpy as np
import pytest
from azjax.training.effort import count_evaluations

from azjax import comparison, games
from azjax.cli import compare, expect
from azjax.comparison import Curves, compare_pairs, effects, holm
from azjax.runs.config import Config, make_parts
from azjax.search import PUCT
from azjax.training.parts import SelfPlayConfig
from refusals import assert_refused, check_program

GAME = games.make("tic_tac_toe")


def curves(name, errors, evaluations=(100, 200, 300)):
    """Errors `[K, S]` of a setting that was not trained."""
    steps = list(range(1, len(evaluations) + 1))
    times = [float(step) for step in steps]
    return Curves(name, {"name": name}, "cpu", steps, [*evaluations], steps, times, errors)


def test_equal_settings_differ_in_five_percent_of_comparisons():
    rng = np.random.default_rng(0)
    draws = np.exp(rng.normal(size=(400, 2, 20)))
    found = [compare_pairs(*pair) for pair in draws]
    assert 0.02 < np.mean([p < 0.05 for _, p in found]) < 0.08
    covered = [interval.low <= 1 <= interval.high for interval, _ in found]
    assert np.mean(covered) > 0.9


def test_a_ratio_is_that_of_the_pairs():
    first = np.array([100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0])
    interval, p_value = compare_pairs(first, first / 2)
    assert interval == pytest.approx((0.5, 0.5, 0.5)) and p_value < 0.05
    assert compare_pairs(first, first)[1] == 1
    assert compare_pairs(np.zeros(4), np.zeros(4)) == ((1, 1, 1), 1)
    assert compare_pairs(first, 0 * first)[0].estimate < 0.5  # An error of zero is small.


def test_p_values_are_corrected_for_their_number():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1, 1] and holm([]) == []


def test_costs_are_compared_if_half_of_the_seeds_reach_the_target():
    errors = [[0.5, 0.5, 0.5, 0.5], [0.0, 0.2, 0.0, 0.3], [0.0, 0.0, 0.0, 0.1]]
    slow = curves("slow", errors)
    assert slow.cost(0.0).tolist() == [200, 300, 200, math.inf]
    assert slow.cost(0.1).tolist() == [200, 300, 200, 300]
    fast = curves("fast", [[0.0] * 4] * 3)
    [effect] = effects([slow, fast])
    assert effect.measure == "evaluations" and effect.ratio.estimate == pytest.approx(0.5, abs=0.1)
    other = curves("other", errors, (101, 201, 301))
    some = curves("some", [[0.5] * 4, [0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.5, 0.5]])
    more = dataclasses.replace(some, evaluations=[100, 200, 400])
    assert effects([some, more])[0][1:] == ((1, 1, 1), 1)  # Seeds that miss the target tie.
    assert effects([slow, other])[0].ratio.estimate == pytest.approx(1.0, abs=0.01)
    never = curves("never", [[0.5] * 4] * 3)
    assert [e.measure for e in effects([slow, never])] == ["error"]


def test_all_settings_make_as_many_evaluations(monkeypatch, tmp_path):
    """A finished setting is not trained again; another comparison is refused."""
    trained = []

    def train(name, config, game, seeds, evaluations, tell):
        trained.append((name, seeds, evaluations))
        return dataclasses.replace(curves(name, [[0.0] * seeds]), config=config.as_dict())

    monkeypatch.setattr(comparison, "train_seeds", train)
    small = Config(selfplay=SelfPlayConfig(games=8, unroll_length=4))
    assert make_parts(small).evaluations == 8 * 4 * 17
    path, settings = tmp_path / "c.json", {"a": small, "b": dataclasses.replace(small, seed=1)}
    comparison.compare({"a": small}, GAME, path, seeds=2, iterations=3)
    assert trained == [("a", 2, 3 * 8 * 4 * 17)]
    found = comparison.compare(settings, GAME, path, seeds=2)
    assert trained[1] == ("b", *trained[0][1:])
    assert [name for name, *_ in trained] == ["a", "b"] and [c.name for c in found] == ["a", "b"]
    again = comparison.compare({"c": small}, GAME, path, seeds=2)
    assert [c.name for c in again] == ["c"] and len(trained) == 2
    assert len(json.loads(path.read_text())["settings"]) == 2
    odd = dataclasses.replace(small, selfplay=SelfPlayConfig(games=9, unroll_length=4))
    both, new = {"a": small, "odd": odd}, tmp_path / "new.json"
    refused = "selfplay.games is 9, not a multiple of replay.shards"
    assert_refused((lambda: comparison.compare(both, GAME, new, seeds=2, iterations=3), refused))
    assert len(trained) == 2 and not new.exists()
    bad = tmp_path / "bad.json"
    bad.write_text("[]")
    lost = tmp_path / "no" / "c.json"
    assert_refused(
        (lambda: comparison.compare(settings, GAME, path, seeds=3, iterations=3), "seeds 2, not 3"),
        (lambda: comparison.compare(settings, GAME, bad), "is not a comparison"),
        (lambda: comparison.compare(settings, GAME, lost), "there is no folder"),
        (lambda: comparison.compare(settings, GAME, path, seeds=0), "seeds is 0: use 1 or more"),
        (lambda: comparison.compare({}, GAME, new), "there are no settings to compare"),
        (
            lambda: comparison.make_measure(games.make("othello")),
            "othello has no exact errors",
        ),
    )


def test_values_are_combined_and_bad_ones_refused(capfd):
    options = compare.Options(vary=("search.num_simulations=2,4", "targets.td_lambda=1,0.5"))
    settings = compare._combine(options)
    assert [*settings] == [
        f"search.num_simulations={number} targets.td_lambda={weight}"
        for number in (2, 4)
        for weight in ("1", "0.5")
    ]
    last = [*settings.values()][-1]
    assert last.search.num_simulations == 4 and last.targets.td_lambda == 0.5
    [kind] = compare._combine(compare.Options(vary=("search.algorithm=puct",))).values()
    assert kind.search == PUCT(num_simulations=16)  # As in the preset.
    flags = compare.Options(vary=("selfplay.carry_over=true,false",))
    kept = [config.selfplay.carry_over for config in compare._combine(flags).values()]
    assert kept == [True, False]
    rows = [
        ("--vary search.algorithm", "--vary search.algorithm has no values: write SETTING=VALUE"),
        ("--vary game=hex:3,hex:4", "--vary game=hex:3,hex:4 is not a setting: use --game, or"),
        ("--vary search.simulations=2", "did you mean --search.num-simulations?"),
        ("--out results.txt", "--out is results.txt: name a file that ends in .json"),
    ]
    check_program(compare.main, rows, capfd)


def test_the_time_that_a_game_takes_grows_with_its_positions(monkeypatch):
    solved = types.SimpleNamespace(decisions=range(134_289 * 2**10))
    monkeypatch.setattr(expect.console, "solve", lambda game: solved)
    moves = 327_680 * 2**3.5  # 3.7 million.
    said = expect.describe(GAME, rate=moves / 600)
    assert f"after {moves:,.0f} moves, 10 minutes here" in said and "18 minutes to 110" in said
    shipped = games.make("connect_four")
    assert "209,321,984 moves: 10 hours here" in expect.describe(shipped, 209_321_984 / 36_000)
    assert "an hour makes 7,200 moves" in expect.describe(games.make("hex:7"), 2.0)
