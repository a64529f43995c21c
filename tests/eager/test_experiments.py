"""The benchmark, the ladder and the lecture: arithmetic and tables."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import pytest

from azjax.players.statistics import Interval
from azjax.runs import presets
from experiments.benchmark import training
from experiments.benchmark.options import Options
from experiments.ladder import Rung, find_slopes
from experiments.lecture import exploration
from experiments.lecture.matches import count_p_value


def test_times_to_perfect_are_read_off_the_iterations(monkeypatch, capsys):
    """A run that never becomes perfect is slower than all others."""
    names = ("seconds", "losing_lines_first", "losing_lines_second", "blunders")
    first = [(5.0, 1, 0, 9), (6.0, 0, 0, 2), (7.0, 0, 0, 0)]
    runs = [first, [(5.0, 0, 2, 9)], [(130.0, 0, 0, 0)]]

    def train_one(run_dir, settings, **variables):
        run_dir.mkdir()
        assert (settings["selfplay.games"], settings["replay.capacity"]) == (99_000, 891_000)
        certificate = {"searches": [{"blunders": 1}, {"blunders": 2}]}
        (run_dir / "certificate.json").write_text(json.dumps(certificate))
        return [dict(zip(names, record, strict=True)) for record in runs[settings["seed"]]]

    config = presets.get("default")
    nine = dataclasses.replace(config.selfplay, unroll_length=9)
    config = dataclasses.replace(config, selfplay=nine)
    monkeypatch.setattr(training, "run_training", train_one)
    monkeypatch.setattr(training.presets, "get", lambda name: config)
    options = Options(time_to_perfect=True, seeds=3, train_games=(99_000,))
    shown = [
        (row["unbeatable, s"], row["perfect, s"], row["iterations"], row["search blunders"])
        for row in training.time_to_perfect(options)
    ]
    assert shown == [(6.0, 7.0, 3, 3), (None, None, 1, 3), (130.0, 130.0, 1, 3)]
    assert "perfect within 120 s: 1 of 3" in capsys.readouterr().out


def test_the_slope_is_the_exponent_of_positions():
    """Ten times as many positions, a hundred times as many moves: a slope of 2."""
    rungs = [
        Rung("small", 64, 1000, [10, 20, 30], [5.0, 1.0, 0.0], 1.0),
        Rung("large", 64, 10_000, [1000, 2000], [3.0, 0.5], 1.0),
        Rung("small", 128, 1000, [10], [0.5], 1.0),
        Rung("large", 128, 10_000, [5000], [2.0], 1.0),
    ]
    assert [r.cost(1.0) for r in rungs] == [20, 2000, 10, None]
    assert find_slopes(rungs, 1.0) == {"64": pytest.approx(2.0)}
    assert find_slopes(rungs, 2.0)["128"] == pytest.approx(2.699, abs=1e-3)


# The lecture.


def test_a_curve_is_u_shaped_only_if_both_ends_are_significantly_higher():
    for estimates, verdict in [
        ((0.5, 0.2, 0.5), "yes: both ends lose"),
        ((0.5, 0.2, 0.25), "no: only too little exploration loses"),
        ((0.25, 0.2, 0.5), "no: only too much exploration loses"),
        ((0.25, 0.2, 0.25), "no: neither end loses"),
    ]:
        lost = [Interval(x, x - 0.1, x + 0.1) for x in estimates]
        constant, interval, answer = exploration._find_u([0, 1, 10], lost).values()
        assert answer == f"{verdict} significantly more"
        assert (constant, interval[:7]) == ("1.00", "0.200 [")


def urn_probability(triple, reference):
    """Computes the Dirichlet-multinomial probability with Polya's urn, game by game."""
    urn = [2 * count + 1 for count in reference]
    probability = Fraction(math.factorial(sum(triple)) // math.prod(map(math.factorial, triple)))
    for kind, count in enumerate(triple):
        for _ in range(count):
            probability *= Fraction(urn[kind], sum(urn))
            urn[kind] += 2
    return probability


@pytest.mark.parametrize(
    ("observed", "reference"), [((2, 1, 0), (3, 2, 1)), ((0, 0, 6), (9, 1, 0))]
)
def test_count_p_value_is_the_enumeration(observed, reference):
    values = itertools.product(range(sum(observed) + 1), repeat=3)
    chances = [urn_probability(t, reference) for t in values if sum(t) == sum(observed)]
    likely = urn_probability(observed, reference)
    exact = sum(chance for chance in chances if chance <= likely)
    assert count_p_value(observed, reference) == pytest.approx(float(exact), rel=1e-9)
