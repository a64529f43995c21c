"""The baseline uses the same game and network, and every measurement runs."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys

import jax
import numpy as np
import pgx
import pytest
from flax.traverse_util import flatten_dict, unflatten_dict

from azjax.cli import launch
from azjax.cli import options as training_options
from azjax.networks import make_network
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.training import check_parts, make_mesh
from experiments.benchmark import __main__ as benchmark
from experiments.benchmark import (
    iterations,
    measuring,
    products,
    speed,
    stepping,
    textbook,
    training,
)
from experiments.benchmark.options import Options
from refusals import check_program
from small import conv

COUNT = jax.device_count()
ENV = pgx.make("tic_tac_toe")
SMALL = Options(games=8, simulations=4, channels=4, blocks=1, repeats=1)
FLAGS = ["--games=8", "--simulations=4", "--channels=4", "--blocks=1", "--repeats=1"]
NAMES = {  # The baseline's layers, in order of creation, and ours.
    **{f"Conv_{i}": name for i, name in enumerate(["stem", "block0_a", "block0_b"])},
    **{f"BatchNorm_{i}": f"{name}_norm" for i, name in enumerate(["stem", "block0_a", "block0_b"])},
    **{"Conv_3": "policy_conv", "BatchNorm_3": "policy_conv_norm"},
    **{"Conv_4": "value_conv", "BatchNorm_4": "value_conv_norm"},
}


@pytest.mark.slow
def test_both_networks_compute_the_same(tic_tac_toe):
    """With the same weights, so both do the same work."""
    config = conv(width=4, blocks=1)
    network = make_network(config, tic_tac_toe)
    variables = jax.jit(network.init)(jax.random.key(0))
    init, baseline = textbook.make_network(ENV, 4, 1)
    theirs = flatten_dict(jax.jit(init)(jax.random.key(1)))
    ours = flatten_dict(variables)
    dense = {}
    for path in theirs:
        name = NAMES.get(path[1])
        if name is None:  # Dense layers are matched by shape.
            shape = theirs[path].shape
            (match,) = [p for p in ours if p[1] in ("policy", "value_hidden", "value")
                        and p[-1] == path[-1] and ours[p].shape == shape]  # fmt: skip
            dense[path] = ours[match]
        else:
            dense[path] = ours[(path[0], name, *path[2:])]
    planes = jax.random.bernoulli(jax.random.key(2), 0.4, (16, 3, 3, 2))
    logits, values = jax.jit(baseline.apply)(unflatten_dict(dense), planes)
    folded = jax.jit(network.fold)(variables)
    expected_logits, expected_values = jax.jit(network.infer)(folded, planes)
    np.testing.assert_allclose(logits, expected_logits, atol=1e-5)
    np.testing.assert_allclose(values, expected_values, atol=1e-5)
    assert len(jax.tree.leaves(variables["params"])) == len(
        [path for path in theirs if path[0] == "params"]
    )


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
@pytest.mark.slow
def test_the_baseline_plays_whole_games(algorithm):
    init, network = textbook.make_network(ENV, 4, 1)
    search = textbook.make_search(ENV, algorithm, network.apply, 4)
    play = jax.jit(textbook.make_selfplay(ENV, search, 12))
    variables = jax.jit(init)(jax.random.key(0))
    _, moves = play(variables, jax.random.key(1), textbook.init_games(ENV, jax.random.key(2), 8))
    ends = np.asarray(moves.terminated)
    assert ends.sum() >= 8 and set(np.unique(moves.reward)) <= {0.0, 1.0}
    assert (np.asarray(moves.reward)[~ends] == 0).all()
    np.testing.assert_allclose(moves.weights.sum(axis=-1), 1, atol=1e-5)
    taken = moves.observation.any(axis=-1).reshape(12, 8, 9)
    assert not np.asarray(moves.weights)[np.asarray(taken)].any()


@pytest.mark.slow
def test_without_flags_the_speed_table_is_printed_and_written(tmp_path, capsys):
    path = tmp_path / "found.json"
    assert benchmark.main([*FLAGS, "--blocks=0", f"--out={path}"]) == 0
    shown, found = capsys.readouterr().out, json.loads(path.read_text())
    assert f"{COUNT} devices" in shown and f"results: {path}" in shown and "textbook" in shown
    assert found["devices"] == COUNT
    rows = {row["what"].split(":")[0]: row for row in found["speed"]}
    alone = {"iteration over its self-play"}
    for what, row in rows.items():
        assert row["azjax"] > 0 and (row["textbook"] is None) == (what in alone)
        expected = row["azjax"] / row["textbook"] if row["textbook"] else None
        assert row["azjax / textbook"] == expected
    searches = {"search, puct", "search, puct on mctx's loop"}
    assert set(rows) - alone == {*searches, "self-play, gumbel"}


@pytest.mark.slow
def test_a_search_is_timed_on_each_engine(monkeypatch, tic_tac_toe):
    engines, clocked = [], {}
    build = speed.make_search
    monkeypatch.setattr(
        speed, "make_search", lambda config, *rest: engines.append(config) or build(config, *rest)
    )

    def clock(repeats, **runs):
        clocked.update({name: np.asarray(run()) for name, run in runs.items()})
        return {"azjax": 1.0, "mctx": 3.0, "textbook": 2.0}

    monkeypatch.setattr(speed, "median_seconds", clock)
    own, other = speed._time_searches(SMALL, tic_tac_toe, make_mesh())
    assert [config.engine for config in engines] == ["azjax", "mctx"]
    assert list(own.values()) == ["search, puct: outside the network", "ms", 1000, 2000, 0.5]
    assert list(other.values())[1:] == ["ms", 3000, 2000, 1.5]
    np.testing.assert_array_equal(clocked["azjax"], clocked["mctx"])
    assert clocked["azjax"].shape == clocked["textbook"].shape == (8,)


def test_only_chosen_measurements_run():
    assert Options().measures == ("speed",)
    assert Options(batch=True, verification=True).measures == ("batch", "verification")
    assert all(name in benchmark._RUN for name in Options(batch=True, many_seeds=True).measures)
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


@pytest.mark.slow
def test_the_cpu_is_split_before_jax_starts(tmp_path):
    lines = """
from azjax.cli import launch
from experiments.benchmark import __main__ as benchmark
launch.cores = lambda: 3
benchmark.measure = lambda options: {}
benchmark.main()
import jax
print(jax.device_count())
"""
    environment = dict(os.environ)
    environment.pop("XLA_FLAGS")  # Of conftest.
    command = [sys.executable, "-c", lines, "--time-to-perfect", f"--out={tmp_path / 'x.json'}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "3"


def test_impossible_measurements_are_rejected_in_one_sentence(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = [
        (["--batch", "--batch-sizes", "9"], f"use multiples of {COUNT}"),
        (["--games", "0"], "--games is 0: use 1 or more"),
        (["--verification", "--out", "."], ". is a folder: give the name of a file in it"),
        (["--verification", "--out", "nowhere/x.json"], "there is no folder nowhere"),
        (["--batch", "--batch-sizes"], "--batch-sizes is empty: use numbers of games"),
    ]
    check_program(benchmark.main, rows, capfd)


@pytest.mark.slow
def test_the_error_of_a_training_is_shown(capfd):
    assert benchmark.main(["--time-to-perfect", "--train-games", "12"]) == 2
    assert "error: training failed: error: selfplay.games is 12" in capfd.readouterr().err


@pytest.mark.slow
def test_every_number_of_games_is_measured(tmp_path, capsys):
    out = tmp_path / "x.json"
    flags = [*FLAGS, "--batch", "--batch-sizes", "8", "16", "--out", str(out)]
    assert benchmark.main(flags) == 0
    found = json.loads(out.read_text())["batch"]
    assert [row["games"] for row in found] == [8, 16]
    for row in found:
        assert row["microseconds/move"] * row["moves/s"] == pytest.approx(1e6)
        assert 500 < row["search, bytes/game"] < 2000
    assert "microseconds/move" in capsys.readouterr().out


@pytest.mark.slow
def test_seeds_in_one_program_are_timed_against_one_alone(monkeypatch):
    def clock(repeats, together, alone):
        for _ in range(2):  # States are donated.
            assert (together().moves.shape, alone().moves.shape) == ((2,), ())
        return {"together": 6.0, "alone": 2.0}

    small = presets.smoke(presets.get("default"))
    monkeypatch.setattr(presets, "get", lambda name: small)
    monkeypatch.setattr(iterations, "_COUNTS", (2,))
    monkeypatch.setattr(iterations, "median_seconds", clock)
    (row,) = iterations.time_many_seeds(dataclasses.replace(SMALL, train_games=(16,)))
    assert list(row.values()) == [16, 2, 3.0, 2.0, pytest.approx(2 / 3)]


def test_products_count_two_operations_per_factor(monkeypatch):
    def clock(repeats, **runs):
        shapes = {name: (run().shape, run().dtype.name) for name, run in runs.items()}
        assert shapes == {name: ((512 * COUNT, 512), name) for name in ("float32", "bfloat16")}
        return {"float32": 1.0, "bfloat16": 0.5}

    monkeypatch.setattr(products, "_LAYERS", 3)
    monkeypatch.setattr(products, "median_seconds", clock)
    (row,) = products.time_products(SMALL)
    assert list(row.values()) == [3 * 2 * 512**3 * COUNT / 1e9, 3 * 4 * 512**3 * COUNT / 1e9]


@pytest.mark.slow
def test_every_wait_in_the_explorer_is_timed(browser, monkeypatch):
    monkeypatch.setattr(stepping, "open_browser", lambda: contextlib.nullcontext(browser))
    monkeypatch.setattr(stepping, "_PAGES", 1)
    monkeypatch.setattr(stepping, "_SEEDS", ["seed", [1, 2]])
    rows = stepping.time_explorer(simulations=8)
    times = {row["waiting for"]: row["times"] for row in rows}
    assert len(rows) == 7 and times.pop("a step, click to paint") == 3 * 8
    for name, count in times.items():
        assert count == (1 if "Connect Four" in name else 2), name
    assert all(0 < row["median, ms"] <= row["slowest, ms"] for row in rows)


def test_the_training_process_gets_the_chosen_sizes():
    settings = training.first_settings(dataclasses.replace(SMALL, games=256))
    parsed = training_options.parse([f"--{name}={value}" for name, value in settings.items()])
    config, plan = parsed.config, parsed.plan
    check_parts(make_parts(config), COUNT)
    assert (config.network.layers, config.network.width, config.network.blocks) == ("conv", 4, 1)
    assert (config.search.algorithm, config.search.num_simulations) == ("gumbel", 4)
    assert (config.selfplay.games, config.selfplay.unroll_length) == (256, 1)
    assert (config.learner.batch_size, config.learner.steps) == (1024, 1)
    assert (plan.until, plan.max_iterations) == ("never", 1)


@pytest.mark.slow
def test_the_first_iteration_starts_cold_then_warm():
    (row,) = training.time_first_iteration(SMALL)
    assert 0 < row["warm cache, s"] < row["cold, s"] < 600


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
        certificate = {"searches": [{"blunders": 1}, {"blunders": 2}]}
        (run_dir / "certificate.json").write_text(json.dumps(certificate))
        return [dict(zip(names, record, strict=True)) for record in runs[settings["seed"]]]

    monkeypatch.setattr(training, "run_training", train_one)
    rows = training.time_to_perfect(Options(time_to_perfect=True, seeds=3))
    assert [row["unbeatable, s"] for row in rows] == [6.0, None, 130.0]
    assert [row["perfect, s"] for row in rows] == [7.0, None, 130.0]
    assert [(row["iterations"], row["search blunders"]) for row in rows] == [(3, 3), (1, 3), (1, 3)]
    shown = capsys.readouterr().out
    assert "never" in shown and "perfect within 120 s: 1 of 3" in shown
    (median,) = [line.split() for line in shown.splitlines() if "median" in line]
    assert median.count("130") == 2
