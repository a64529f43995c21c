"""Statistics of comparisons, and of matches."""

import dataclasses
import functools
import json
import math
import re
import types
from typing import Any
from unittest.mock import ANY, Mock

import numpy as np
import optax
import pytest
from scipy import optimize, stats

from azjax import comparison
from azjax.cli import compare
from azjax.comparison import Comparison, Curves, compare_pairs, holm
from azjax.players.statistics import fit, mean_proportion, mean_score, proportion
from azjax.runs import CheckpointError, Config, directory, make_parts, presets
from azjax.search import PUCT, UCT
from azjax.training import SelfPlayConfig, alphazero_loss, make_learner
from refusals import assert_refused, check_program

SMALL = Config(selfplay=SelfPlayConfig(games=8, unroll_length=4))


def curves(name, errors, evaluations=(100, 200, 300)):
    """Errors `[K, S]` of a setting that was not trained."""
    steps = list(range(1, len(evaluations) + 1))
    times = [float(step) for step in steps]
    return Curves(name, {"name": name}, "cpu", steps, [*evaluations], steps, times, errors)


def effects(rows, *target, **which):
    return Comparison("tic_tac_toe", rows).effects(*target, **which)


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
    some = curves("some", [[0.5] * 4, [0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.5, 0.5]])
    more = dataclasses.replace(some, evaluations=[100, 200, 400])
    assert effects([some, more])[0][1:] == ((1, 1, 1), 1)  # Seeds that miss the target tie.
    never = curves("never", [[0.5] * 4] * 3)
    assert [e.measure for e in effects([slow, never])] == ["error"]
    late = curves("late", [[0.5] * 4, [0.5] * 4, [0.2] * 4])
    [effect] = effects([slow, late], 0.2)
    assert effect[:2] == ("evaluations", pytest.approx((1.5, 1, 1.5)))


def test_errors_with_the_search_are_compared():
    two = [curves(name, [[0.5, 0.4], [0.3, 0.2]], (100, 200)) for name in "ab"]
    assert_refused((lambda: effects(two, search=True), "a has no errors with the search"))
    rows = [dataclasses.replace(one, searched=[0.2 / k, 0.1 / k]) for k, one in enumerate(two, 1)]
    assert effects(rows)[0].ratio.estimate == 1
    assert effects(rows, 0.5, search=True)[0][:2] == ("error", pytest.approx((0.5, 0.5, 0.5)))
    listed = Comparison("tic_tac_toe", rows).to_rows()
    assert len(listed) == 2 * 2 * 2 and listed[1]["error_with_search"] is None
    assert listed[-1] == {"setting": "b", "seed": 1, "iterations": 2, "evaluations": 200} | {
        **{"moves": 2, "seconds": 2.0, "error": 0.2, "error_with_search": 0.05}
    }


@pytest.fixture
def trained(monkeypatch):
    """The name, seeds and evaluations of each setting that would be trained."""
    calls = []

    def train(name, parts, config, seeds, evaluations, measuring, tell):
        calls.append((name, seeds, evaluations))
        return dataclasses.replace(curves(name, [[0.0] * seeds]), config=config)

    monkeypatch.setattr(comparison, "train_seeds", train)
    monkeypatch.setattr(comparison, "make_measure", lambda game: None)
    return calls


def test_custom_parts_are_recognized_by_their_programs(trained, tmp_path, capsys):
    def parts(weight):
        loss = functools.partial(alphazero_loss, value_weight=weight)
        network = make_parts(SMALL).network
        return make_parts(SMALL)._replace(learner=make_learner(network, optax.sgd(0.1), loss))

    path = tmp_path / "c.json"
    settings = {"plain": SMALL, "half": parts(0.5), "twice": parts(2.0)}
    comparison.compare(settings, path, seeds=6, iterations=1)
    assert "with 6 seeds: use 7 or more\n" in capsys.readouterr().err
    comparison.compare({"plain": SMALL, "again": parts(2.0)}, path, seeds=6)
    assert [name for name, *_ in trained] == ["plain", "half", "twice"]
    other = dataclasses.replace(SMALL, game="connect_four:4x4")
    wrong: Any = {"plain": SMALL, "wrong": "puct"}
    assert_refused(
        (lambda: comparison.compare({"a": SMALL, "b": other}, path), "tic_tac_toe, connect_four"),
        (lambda: comparison.compare(wrong, path), "wrong is of type str: give a Config or Parts"),
    )
    with directory.lock(tmp_path / "c.json.lock", "writes c.json"):
        call = functools.partial(comparison.compare, settings, path, seeds=6)
        assert_refused((call, f"writes c.json in {tmp_path}: wait"), error=CheckpointError)


def test_all_settings_make_as_many_evaluations(trained, tmp_path):
    """A finished setting is not trained again; another comparison is refused."""
    path, settings = tmp_path / "c.json", {"a": SMALL, "b": dataclasses.replace(SMALL, seed=1)}
    comparison.compare({"a": SMALL}, path, seeds=2, iterations=3)
    found = comparison.compare(settings, path, seeds=2).curves
    assert [c.name for c in found] == ["a", "b"]
    again = comparison.compare({"c": SMALL}, path, seeds=2).curves
    assert [c.name for c in again] == ["c"]
    assert len(json.loads(path.read_text())["settings"]) == 2
    new, bad, lost = (tmp_path / name for name in ("new.json", "bad.json", "no/c.json"))
    bad.write_text("[]")
    odd = dataclasses.replace(SMALL, selfplay=SelfPlayConfig(games=9, unroll_length=4))
    refused = "selfplay.games is 9, not a multiple of replay.shards"
    assert_refused(
        (lambda: comparison.compare({"a": SMALL, "odd": odd}, new, seeds=2), refused),
        (lambda: comparison.compare(settings, path, seeds=3, iterations=3), "seeds 2, not 3"),
        (lambda: comparison.compare(settings, bad), "is not a comparison"),
        (lambda: comparison.compare(settings, lost), "there is no folder"),
        (lambda: comparison.compare({}, new), "there are no settings to compare"),
    )
    assert trained == [(name, 2, 3 * 8 * 4 * 17) for name in "ab"] and not new.exists()


def test_values_are_combined_and_bad_ones_refused(capfd):
    def combine(*vary):
        return compare._combine(compare.Options(vary=vary))

    settings = combine("search.num_simulations=2,4", "targets.td_lambda=1,0.5")
    pairs = [(2, 1), (2, 0.5), (4, 1), (4, 0.5)]
    assert [*settings] == [f"search.num_simulations={n} targets.td_lambda={x}" for n, x in pairs]
    found = [(one.search.num_simulations, one.targets.td_lambda) for one in settings.values()]
    assert found == pairs
    [kind] = combine("search.algorithm=puct").values()
    assert kind.search == PUCT(num_simulations=16)  # As in the preset.
    flags = combine("selfplay.carry_over=true,false").values()
    assert [config.selfplay.carry_over for config in flags] == [True, False]
    rows = [
        ("--vary search.algorithm", "--vary search.algorithm has no values: write SETTING=VALUE"),
        ("--vary game=hex:3,hex:4", "--vary game=hex:3,hex:4 is not a setting: use --game, or"),
        ("--vary search.simulations=2", "did you mean --search.num-simulations?"),
        ("--out results.txt", "--out is results.txt: name a file that ends in .json"),
    ]
    check_program(compare.main, rows, capfd)
    assert_refused((lambda: combine("seed=1,2"), "--vary seed=1,2 is not a setting: use"))


def test_options_reach_the_comparison(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    slow = curves("slow", [[0.5] * 6, [0.2] * 6, [0.0] * 6])
    slower = curves("slower", [[0.5] * 6, [0.5] * 6, [0.2] * 6])

    trained = Mock(return_value=Comparison("tic_tac_toe", [slow, slower]))
    monkeypatch.setattr(comparison, "compare", trained)
    monkeypatch.setattr(compare.processes, "set_cpu_devices", lambda number: None)
    path = tmp_path / "c.json"
    words = f"--preset mlp --seeds 6 --iterations 7 --target 0.2 --out {path}"
    assert compare.main(words.split()) == 0
    given = {"seeds": 6, "iterations": 7, "tell": ANY}
    trained.assert_called_once_with({"default": presets.get("mlp")}, path, **given)
    out, page = capsys.readouterr().out, path.with_suffix(".html").read_text()
    assert re.search(r"slow +6 of 6 +200 +0.00% +– +3.0\n", out)
    assert re.search(r"slower +6 of 6 +300 +20.00% +– +3.0 +1.50 \[1.50, 1.50\] +0.031", out)
    assert "Comparison of settings: tic_tac_toe" in page


def test_the_averaged_networks_are_measured_alone_and_at_the_end_with_the_search(monkeypatch):
    """Here a network is its number of iterations, times its seed."""

    def advance(states):
        average = states.learner.average + np.arange(2)
        learner = types.SimpleNamespace(average=average, variables=-average)
        return types.SimpleNamespace(learner=learner), None

    def measure(parts, variables, search=None):
        return float(variables) / (1 if search is None else search.num_simulations)

    first = types.SimpleNamespace(learner=types.SimpleNamespace(average=np.zeros(2)))
    monkeypatch.setattr(comparison, "compile_seeds", lambda parts, seeds: (first, advance))
    measuring = measure, 68  # An eighth.
    each, search = 8 * 4 * 17, PUCT(num_simulations=4)
    parts = make_parts(SMALL)
    found = comparison.train_seeds("a", parts, {}, 2, round(3.4 * each), measuring)
    assert (found.iterations, found.errors) == ([2, 3], [[0, 2], [0, 3]])
    assert (found.evaluations, found.moves) == ([2 * each, 3 * each], [64, 96])
    assert found.searched == [0, 3 / SMALL.search.num_simulations]
    parts = parts._replace(search=dataclasses.replace(search, num_simulations=16))
    assert comparison.train_seeds("a", parts, {}, 2, each, measuring).searched == [0, 1 / 16]
    random = parts._replace(search=UCT(num_simulations=16))
    assert comparison.train_seeds("a", random, {}, 2, each, measuring).searched is None


# Intervals have their coverage, and ratings are the mode of the posterior.


ELO = 400 / math.log(10)


def test_the_squared_margins_of_a_mean_are_those_of_its_rates_summed():
    few, many = proportion(1, 10), proportion(11, 12)
    below, above = (
        math.hypot(*(rate.estimate - rate[end] for rate in (few, many))) / 2 for end in (1, 2)
    )
    mean = (few.estimate + many.estimate) / 2
    assert abs(below - above) > 0.01
    result = mean_proportion(np.array([1, 11]), np.array([10, 12]))
    assert result == pytest.approx([mean, mean - below, mean + above])


def test_mean_score_is_symmetric():
    for wins, losses in ((7, 13), (19_990, 10)):
        exact = stats.binomtest(wins, wins + losses).proportion_ci(method="wilson")
        assert mean_score(wins, 0, losses)[1:] == pytest.approx([*exact], abs=1e-9)
    for wins, draws, losses in [(3, 5, 12), (0, 30, 1), (1, 0, 50)]:
        left, right = mean_score(wins, draws, losses), mean_score(losses, draws, wins)
        assert left == pytest.approx([1 - right[0], 1 - right[2], 1 - right[1]], abs=1e-9)
        assert left.low < left.estimate < left.high


def log_posterior(theta, first, second, counts):
    """The log posterior of the ratings, the advantage and log nu, in logits."""
    total = -sum(t * t for t in theta) / 2 / (1000 / ELO) ** 2
    for one, two, (wins, draws, losses) in zip(first, second, counts, strict=True):
        x = theta[one] - theta[two] + theta[-2]
        scale = math.log(math.exp(x / 2) + math.exp(theta[-1]) + math.exp(-x / 2))
        total += (wins - losses) * x / 2 + draws * theta[-1] - (wins + draws + losses) * scale
    return total


def test_the_fit_is_the_mode_and_its_curvature():
    games = [0, 1, 2, 0], [1, 2, 0, 2], [[5, 1, 2], [3, 0, 4], [2, 6, 1], [1, 1, 0]]
    result = fit("abc", *games)
    mode = np.array([*result.ratings, result.first_move_advantage.estimate]) / ELO
    mode = np.append(mode, math.log(result.draw_parameter))

    def slope(theta, step):
        return optimize.approx_fprime(theta, log_posterior, step, *games)

    np.testing.assert_allclose(slope(mode, 1e-7), 0, atol=1e-5)
    hessian = optimize.approx_fprime(mode, slope, 1e-4, 1e-4)
    contrasts = np.eye(5) - np.pad(np.full((3, 3), 1 / 3), (0, 2))
    margins = 1.959964 * ELO * np.sqrt(np.diag(contrasts @ np.linalg.inv(-hessian) @ contrasts))
    found = [*(result.high - result.ratings), *(result.ratings - result.low)]
    np.testing.assert_allclose(found, [*margins[:3], *margins[:3]], rtol=1e-3)
    advantage = result.first_move_advantage
    assert advantage.high - advantage.estimate == pytest.approx(margins[3], rel=1e-3)
