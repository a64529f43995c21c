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
from experiments.benchmark import cost, measuring, training
from experiments.benchmark.loops import Cost, Loop, count_kernels
from experiments.benchmark.options import Options
from experiments.ladder import Rung, find_slopes
from refusals import check_program

COUNT = jax.device_count()


def test_only_chosen_measurements_run():
    assert Options().measures == ("speed",)
    assert Options(batch=True, verification=True).measures == ("batch", "verification")
    asked = [field.name for field in dataclasses.fields(Options) if field.default is False]
    assert asked == list(benchmark._RUN)


def test_functions_run_in_turn_after_a_warm_up():
    order = []
    found = measuring.median_seconds(2, a=lambda: order.append("a"), b=lambda: order.append("b"))
    assert order == ["a", "b"] * 3 and set(found) == {"a", "b"} and min(found.values()) >= 0


def test_tables_contain_words_numbers_and_missing_values(capsys):
    rows = [{"what": "a", "s": 0.12345, "games": 1024}, {"what": "b", "s": None, "games": 8}]
    assert measuring.show("title", rows, missing="never") is rows
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("title", "what", "0.123 ", "1,024", "never"))


def test_the_devices_are_the_cores_that_divide_the_games(monkeypatch):
    monkeypatch.setattr(launch, "cores", lambda: 6)
    monkeypatch.delenv("XLA_FLAGS")  # Of conftest.
    for given, wanted in [
        (Options(games=1024), 4),
        (Options(games=1024, speed=True, batch=True, batch_sizes=(3, 96)), 1),
        (Options(batch=True, batch_sizes=(3, 96)), 3),
        (Options(verification=True), 4),
        (Options(time_to_perfect=True), 6),
    ]:
        found = {}
        monkeypatch.setattr(jax.config, "update", found.__setitem__)
        benchmark.split_cpu(given)
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
    parsed = training_options.parse([f"--{name}={value}" for name, value in settings.items()])
    config, plan = parsed.config, parsed.plan
    check_parts(make_parts(config), COUNT)
    assert (config.network.layers, config.network.width, config.network.blocks) == ("conv", 4, 1)
    assert (config.search.algorithm, config.search.num_simulations) == ("gumbel", 4)
    assert (config.selfplay.games, config.selfplay.unroll_length) == (256, 1)
    assert (config.learner.batch_size, config.learner.steps) == (1024, 1)
    assert (plan.until, plan.max_iterations) == ("never", 1)


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


# Costs that are computed.


def test_kernels_are_operations_that_compute_or_move_data():
    text = """HloModule jit_f

%body (p: f32[3]) -> f32[3] {
  ROOT %x = f32[3]{0} add(%p, %p)
}

ENTRY %main (p: f32[3], q: s32[]) -> (f32[3], s32[]) {
  %p = f32[3]{0} parameter(0)
  %q = s32[] parameter(1)
  %fused = f32[3]{0} fusion(%p), kind=kLoop, calls=%body
  %both = (f32[3]{0}, s32[]) tuple(%fused, %q)
  %loop = (f32[3]{0}, s32[]) while(%both), condition=%c, body=%body
  %dot.1 = f32[3,3]{1,0} dot(%fused, %p), metadata={op_name="jit(f)/dot_general("}
  ROOT %copy = f32[3]{0} copy(%fused)
}
"""
    assert count_kernels(text) == 3


def test_sizes_fit_their_cards(monkeypatch):
    """Launches take as long as the games' traffic, up to a power of two."""
    small = presets.smoke(presets.get("connect_four"))
    monkeypatch.setattr(presets, "get", lambda name: small)
    once = Cost(kernels=1000, flops=1e9, bytes=2e6 * cost._MEASURED, memory=0)
    monkeypatch.setattr(cost, "find_costs", lambda games: [("azjax", [Loop((), 1, once)], 17)])
    monkeypatch.setattr(
        cost, "_CARDS", {16: ("slow", 100), 40: ("fast", 10_000), 1: ("tiny", 10_000)}
    )
    asked = []

    def find_needs(games):
        asked.append(games)
        return cost.memory.Estimate(0, 0, games * 90_000, games * 10_000, 0, 0)

    monkeypatch.setattr(cost, "find_needs", find_needs)
    slow, fast, tiny = cost.choose_sizes(Options(cards=True))
    # 5 ms of launches; 2 MB a game at 100 GB/s are 20 us, of which 250 fit, and at 10 TB/s 25,000.
    assert [row["games"] for row in (slow, fast, tiny)] == [256, 32_768, 4096]
    assert asked == [256, 32_768, 32_768, 16_384, 8192, 4096]
    for row, memory in ((slow, 16), (fast, 40), (tiny, 1)):
        assert row["card"].startswith(f"{memory} GB") and 2 * row["whole run, GB"] <= memory
        assert row["games_at_once"] == 0
        moves = row["games"] * small.selfplay.unroll_length
        assert row["capacity"] == 24 * moves
        assert row["steps"] * row["batch_size"] == 4 * moves
    assert slow["launches, ms/move"] == pytest.approx(5)
    assert slow["traffic, ms/move"] == pytest.approx(5.12)


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
