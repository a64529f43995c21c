"""The benchmark, the ladder and the lecture: refusals, arithmetic and tables."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import jax
import numpy as np
import pytest

from azjax.cli import train
from azjax.players.statistics import Interval
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.training import check_parts
from experiments import ladder
from experiments.benchmark import __main__ as benchmark
from experiments.benchmark import training
from experiments.benchmark.options import Options
from experiments.ladder import Rung, find_slopes
from experiments.lecture import exploration, learning, matches
from experiments.lecture.matches import count_p_value
from refusals import check_program

COUNT = jax.device_count()


def test_impossible_measurements_are_refused(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = [
        (["--batch", "--batch-sizes", "9"], f"use multiples of {COUNT}"),
        (["--games", "0"], "--games is 0: use 1 or more"),
        (["--verification", "--out", "."], ". is a folder: give the name of a file in it"),
        (["--batch", "--batch-sizes"], "--batch-sizes is empty: use numbers of games"),
    ]
    check_program(benchmark.main, rows, capfd)
    rows = [
        ("--games connect_four", "connect_four cannot be solved: use smaller games"),
        ("--games", "a ladder needs a game and a width"),
    ]
    check_program(ladder.main, rows, capfd)


def test_the_training_process_gets_the_chosen_sizes():
    options = Options(games=256, simulations=4, channels=4, blocks=1)
    flags = [f"--{name}={value}" for name, value in training.first_settings(options).items()]
    config = train.parse(flags).config
    check_parts(make_parts(config), COUNT)
    assert (config.network.width, config.network.blocks, config.selfplay.games) == (4, 1, 256)


def test_times_to_perfect_are_read_off_the_iterations(monkeypatch, capsys):
    """A run that never becomes perfect is slower than all others."""
    names = ("seconds", "losing_lines_first", "losing_lines_second", "blunders")
    runs = [
        [(5.0, 1, 0, 9), (6.0, 0, 0, 2), (7.0, 0, 0, 0)],
        [(5.0, 0, 2, 9)],
        [(130.0, 0, 0, 0)],
    ]

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
    rows = training.time_to_perfect(options)
    assert [row["unbeatable, s"] for row in rows] == [6.0, None, 130.0]
    assert [row["perfect, s"] for row in rows] == [7.0, None, 130.0]
    assert [(row["iterations"], row["search blunders"]) for row in rows] == [(3, 3), (1, 3), (1, 3)]
    shown = capsys.readouterr().out
    assert "never" in shown and "perfect within 120 s: 1 of 3" in shown
    (median,) = [line.split() for line in shown.splitlines() if "median" in line]
    assert median.count("130") == 2


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


def column(elements, title):
    """Returns the cells below a title, in every table of an experiment that has it."""
    cells = []
    for table in itertools.chain.from_iterable(element.iter("table") for element in elements):
        titles = ["".join(cell.itertext()) for cell in table.iter("th")]
        if title in titles:
            rows = table.findall("tbody/tr")
            cells += ["".join(row[titles.index(title)].itertext()) for row in rows]
    return cells


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


def test_a_series_is_summarized_game_by_game_and_compared_if_there_are_enough():
    outcomes = np.array([[1, -1], [0, -1], [1, 1]], np.int8)  # Three games of two learners.
    series = learning.Series(10, "minimax", 3, (1, 1, 1))
    summary = learning._summarize(series, "last", outcomes)
    assert summary["mean counts"] == [1.5, 0.5, 1.0]
    np.testing.assert_allclose(summary["per game"], [0, -0.5, 1])
    np.testing.assert_allclose(summary["running"], [0, -0.25, (2 / 3 - 1 / 3) / 2])
    behind_then_ahead = np.where(np.arange(200) < 60, -0.5, 0.5)
    assert 64 <= learning._crossing(behind_then_ahead) <= 66
    series = learning.SERIES[1]._replace(lecture=(375, 0, 0))
    for learners, verdict in ((4, "– a range needs 100 learners, not 4"), (100, "yes")):
        outcomes = np.ones((375, learners), np.int8)
        shown = learning.show([learning._summarize(series, "last", outcomes)])
        assert column(shown, "compatible") == [verdict]


def urn_probability(triple, reference):
    """Computes the Dirichlet-multinomial probability with Polya's urn, game by game."""
    urn = [2 * count + 1 for count in reference]
    probability = Fraction(math.factorial(sum(triple)) // math.prod(map(math.factorial, triple)))
    for kind, count in enumerate(triple):
        for _ in range(count):
            probability *= Fraction(urn[kind], sum(urn))
            urn[kind] += 2
    return probability


def test_count_p_value_is_the_enumeration():
    for observed, reference in [((2, 1, 0), (3, 2, 1)), ((0, 0, 6), (9, 1, 0))]:
        values = range(sum(observed) + 1)
        triples = [t for t in itertools.product(values, repeat=3) if sum(t) == sum(observed)]
        chances = [urn_probability(triple, reference) for triple in triples]
        likely = urn_probability(observed, reference)
        exact = sum(chance for chance in chances if chance <= likely)
        assert count_p_value(observed, reference) == pytest.approx(float(exact), rel=1e-9)
    # Half a loss and half a draw in 100,000 games are expected: two triples of 1 in 2,000 each.
    assert count_p_value((99, 0, 1), (100_000, 0, 0)) == pytest.approx(1e-3, rel=0.01)


def test_counts_are_compared_with_the_lectures():
    corner, edge, center = (14_652, 5_184, 7_896), (14_232, 5_184, 10_176), (15_648, 4_608, 5_616)
    moves = [corner, edge, corner, edge, center, edge, corner, edge, corner]
    results = {"all": [131_184, 46_080, 77_904], "by first move": [[*row] for row in moves]}
    assert column(matches.show_all(results), "equal") == ["yes"] * 3
    results["by first move"][0][0] += 1
    assert column(matches.show_all(results), "equal") == ["no", "yes", "yes"]
    assert column(exploration.show_bound(exploration.compute_bound(None)), "equal") == ["yes"] * 5
    row = {"first": "a", "second": "b", "lecture": None, "counts": [1, 2, 3], "p-value": None}
    assert column(matches.show_matches([row]), "compatible") == ["– no count to compare with"]
