"""The benchmark: its options, its tables, and what it reads off a training."""

import dataclasses
import json

import jax
import pytest

from azjax.cli import launch
from azjax.cli import options as training_options
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.training import check_parts
from experiments import ladder
from experiments.benchmark import __main__ as benchmark
from experiments.benchmark import training
from experiments.benchmark.options import Options, median_seconds, show
from experiments.ladder import Rung, find_slopes
from refusals import check_program

COUNT = jax.device_count()


def test_only_chosen_measurements_run():
    assert Options().measures == ("speed",)
    assert Options(batch=True, verification=True).measures == ("batch", "verification")
    asked = [field.name for field in dataclasses.fields(Options) if field.default is False]
    assert asked == list(benchmark._RUN)


def test_functions_run_in_turn_after_a_warm_up_and_tables_are_printed(capsys):
    order = []
    found = median_seconds(2, a=lambda: order.append("a"), b=lambda: order.append("b"))
    assert order == ["a", "b"] * 3 and set(found) == {"a", "b"} and min(found.values()) >= 0
    rows = [{"what": "a", "s": 0.12345, "games": 1024}, {"what": "b", "s": None, "games": 8}]
    assert show("title", rows, missing="never") is rows
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("title", "what", "0.123 ", "1,024", "never"))


def test_the_devices_are_the_cores_that_divide_the_games(monkeypatch, tmp_path):
    monkeypatch.setattr(launch, "cores", lambda: 6)
    monkeypatch.setattr(benchmark, "measure", lambda options: {})
    monkeypatch.delenv("XLA_FLAGS")  # Of conftest.
    for words, wanted in [
        ("--games 1024", 4),
        ("--games 1024 --speed --batch --batch-sizes 3 96", 1),
        ("--batch --batch-sizes 3 96", 3),
        ("--verification", 4),
        ("--time-to-perfect", 6),
    ]:
        found = {}
        monkeypatch.setattr(jax.config, "update", found.__setitem__)
        assert benchmark.main([*words.split(), f"--out={tmp_path / 'x.json'}"]) == 0
        assert found == {"jax_num_cpu_devices": wanted}


def test_impossible_measurements_are_refused(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = [
        (["--batch", "--batch-sizes", "9"], f"use multiples of {COUNT}"),
        (["--games", "0"], "--games is 0: use 1 or more"),
        (["--verification", "--out", "."], ". is a folder: give the name of a file in it"),
        (["--verification", "--out", "nowhere/x.json"], "there is no folder nowhere"),
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
    settings = training.first_settings(options)
    config = training_options.parse(
        [f"--{name}={value}" for name, value in settings.items()]
    ).config
    check_parts(make_parts(config), COUNT)
    assert (config.network.layers, config.network.width, config.network.blocks) == ("conv", 4, 1)
    assert (config.search.num_simulations, config.selfplay.games) == (4, 256)


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

    monkeypatch.setattr(training, "run_training", train_one)
    monkeypatch.setattr(
        training.presets,
        "get",
        lambda name, get=presets.get: dataclasses.replace(
            get(name), selfplay=dataclasses.replace(get(name).selfplay, unroll_length=9)
        ),
    )
    options = Options(time_to_perfect=True, seeds=3, train_games=(99_000,))
    rows = training.time_to_perfect(options)
    assert [row["unbeatable, s"] for row in rows] == [6.0, None, 130.0]
    assert [row["perfect, s"] for row in rows] == [7.0, None, 130.0]
    assert [(row["iterations"], row["search blunders"]) for row in rows] == [(3, 3), (1, 3), (1, 3)]
    shown = capsys.readouterr().out
    assert "never" in shown and "perfect within 120 s: 1 of 3" in shown
    (median,) = [line.split() for line in shown.splitlines() if "median" in line]
    assert median.count("130") == 2


# The ladder.


def rung(game, width, decisions, *points):
    moves, errors = zip(*points, strict=True)
    return Rung(game, width, decisions, list(moves), list(errors), seconds=1.0)


def test_the_slope_is_the_exponent_of_positions():
    """Ten times as many positions, a hundred times as many moves: a slope of 2."""
    rungs = [
        rung("small", 64, 1000, (10, 5.0), (20, 1.0), (30, 0.0)),
        rung("large", 64, 10_000, (1000, 3.0), (2000, 0.5)),
        rung("small", 128, 1000, (10, 0.5)),
        rung("large", 128, 10_000, (5000, 2.0)),
    ]
    assert [r.cost(1.0) for r in rungs] == [20, 2000, 10, None]
    assert find_slopes(rungs, 1.0) == {"64": pytest.approx(2.0)}
    assert find_slopes(rungs, 2.0)["128"] == pytest.approx(2.699, abs=1e-3)
