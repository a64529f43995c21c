"""The baseline plays the same game with the same network, and the measurements measure."""

import dataclasses
import importlib.util
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict, unflatten_dict

from azjax import train
from azjax.network import NetworkConfig, make_network
from experiments import launch
from experiments import options as training_options
from experiments.benchmark import __main__ as benchmark
from experiments.benchmark import (
    batch,
    devices,
    iteration,
    model,
    plot,
    runs,
    scale,
    speed,
    starting,
    textbook,
    timing,
)
from experiments.benchmark.options import Options

COUNT = jax.device_count()
SMALL = Options(games=8, simulations=4, channels=4, blocks=1, repeats=1)
FLAGS = ["--games=8", "--simulations=4", "--channels=4", "--blocks=1", "--repeats=1"]
NAMES = {  # Of the baseline's layers, in the order of their making, and ours.
    **{f"Conv_{i}": name for i, name in enumerate(["stem", "block0_a", "block0_b"])},
    **{f"BatchNorm_{i}": f"{name}_norm" for i, name in enumerate(["stem", "block0_a", "block0_b"])},
    **{"Conv_3": "policy_conv", "BatchNorm_3": "policy_conv_norm"},
    **{"Conv_4": "value_conv", "BatchNorm_4": "value_conv_norm"},
}


def test_both_networks_compute_the_same(tic_tac_toe):
    """With the same weights: so neither side has less to do."""
    config = NetworkConfig(channels=4, blocks=1)
    network = make_network(config, tic_tac_toe)
    variables = jax.jit(network.init)(jax.random.key(0))
    init, evaluate = textbook.make_network(4, 1)
    theirs = flatten_dict(jax.jit(init)(jax.random.key(1)))
    ours = flatten_dict(variables)
    dense = {}
    for path in theirs:
        name = NAMES.get(path[1])
        if name is None:  # Dense layers are told apart by their shapes.
            shape = theirs[path].shape
            (match,) = [p for p in ours if p[1] in ("policy", "value_hidden", "value")
                        and p[-1] == path[-1] and ours[p].shape == shape]  # fmt: skip
            dense[path] = ours[match]
        else:
            dense[path] = ours[(path[0], name, *path[2:])]
    planes = jax.random.bernoulli(jax.random.key(2), 0.4, (16, 3, 3, 2))
    logits, values = jax.jit(evaluate)(unflatten_dict(dense), planes)
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
    init, evaluate = textbook.make_network(4, 1)
    search = textbook.make_search(algorithm, evaluate, 4)
    play = jax.jit(textbook.make_selfplay(search, 12))
    variables = jax.jit(init)(jax.random.key(0))
    _, moves = play(variables, jax.random.key(1), textbook.init_games(jax.random.key(2), 8))
    ends = np.asarray(moves.terminated)
    assert ends.sum() >= 8 and set(np.unique(moves.reward)) <= {0.0, 1.0}
    assert (np.asarray(moves.reward)[~ends] == 0).all()
    np.testing.assert_allclose(moves.weights.sum(axis=-1), 1, atol=1e-5)
    taken = moves.observation.any(axis=-1).reshape(12, 8, 9)
    assert not np.asarray(moves.weights)[np.asarray(taken)].any()


@pytest.mark.slow
def test_without_flags_the_whole_table_is_printed_and_written(tmp_path, capsys):
    path = tmp_path / "found.json"
    flags = [*FLAGS, "--blocks=0", "--algorithms=gumbel", f"--out={path}"]
    assert benchmark.main(flags) == 0
    shown, found = capsys.readouterr().out, json.loads(path.read_text())
    assert f"{COUNT} devices" in shown and f"results: {path}" in shown and "textbook" in shown
    assert found["devices"] == COUNT
    rows = {(row["name"], row["unit"]): row for row in found["speed"]}
    compared = {name for name, row in rows.items() if row["textbook"]}
    for name in ("network", "search, gumbel", "self-play, gumbel", "learner"):
        assert any(name == pair[0] for pair in compared)
    assert {part for part in ("trace", "lower", "compile")} == {
        name.split(": ")[1] for name, _ in compared if name.startswith("compiling an iteration: ")
    }
    for row in rows.values():
        expected = row["ours"] / row["textbook"] if row["textbook"] else None
        assert row["ratio"] == expected
        assert row["ours"] > 0 or row["name"] == "iteration: the rest"
    assert sum(row["ours"] for (name, unit), row in rows.items()
               if name.startswith("iteration: ") and unit == "%") == pytest.approx(100)  # fmt: skip


@pytest.mark.slow
def test_parts_are_timed_against_the_baseline():
    given = speed.set_up(SMALL)
    config = runs.run_config(SMALL, COUNT)
    _, update = textbook.make_learner(SMALL.channels, SMALL.blocks)
    (network,) = speed._time_network(given)
    (learner,) = speed._time_learner(given, config, jax.jit(update))
    assert (network.unit, learner.unit) == ("evaluations/s", "samples/s")
    for row in (network, learner):
        assert row.ours > 0 and row.textbook and row.ratio == row.ours / row.textbook


@pytest.mark.slow
def test_the_parts_of_an_iteration_are_timed():
    given = speed.set_up(SMALL)
    config = runs.run_config(SMALL, COUNT)
    play, state = runs.make_playing(config, given.mesh)
    iterate = (
        train.make_iteration(config, given.mesh).lower(state).compile(train.compiler_options())
    )
    rows = iteration.time_iteration(given, config, play, iterate, state)
    found = {row.name: row.ours for row in rows if row.unit == "ms"}
    parts = [ms for name, ms in found.items() if name.startswith("iteration: ")]
    assert len(parts) == 4 and sum(parts) == pytest.approx(found["one training iteration"])
    assert all(ms > 0 for name, ms in found.items() if name != "iteration: the rest")


def test_measurements_asked_for_are_made_alone():
    assert Options().measures == ("speed",)
    assert Options(batch=True, verification=True).measures == ("batch", "verification")


def test_an_iteration_is_split_into_its_parts_and_the_rest():
    seconds = {"whole": 0.2, "selfplay": 0.1, "targets": 0.02, "learning": 0.05}
    rows = {(row.name, row.unit): row.ours for row in iteration._breakdown(seconds)}
    assert rows["iteration: learning", "ms"] == pytest.approx(50)
    assert rows["iteration: learning", "%"] == pytest.approx(25)
    assert rows["iteration: the rest", "ms"] == pytest.approx(30)
    assert rows["iteration: the rest", "%"] == pytest.approx(15)
    assert rows["iteration over its self-play", "times"] == pytest.approx(2)


def test_useful_operations_are_those_of_the_taps_on_the_board():
    """Counted one by one, for one channel in and out of each convolution."""
    taps = sum(
        0 <= row + down < 3 and 0 <= column + right < 3
        for row in range(3) for column in range(3)
        for down in (-1, 0, 1) for right in (-1, 0, 1)
    )  # fmt: skip
    assert taps == 49
    more, less = (speed._useful_operations(Options(channels=1, blocks=n)) for n in (2, 1))
    assert more - less == 2 * 2 * taps


def test_our_side_runs_on_all_devices(tic_tac_toe):
    network = make_network(NetworkConfig(channels=4, blocks=1), tic_tac_toe)
    folded = jax.jit(lambda key: network.fold(network.init(key)))(jax.random.key(0))
    planes = jax.random.bernoulli(jax.random.key(1), 0.4, (8, 3, 3, 2))
    specs = (runs.COPIED, runs.SPREAD)
    run = runs.on_mesh(train.make_mesh(), network.infer, specs, runs.SPREAD, folded, planes)
    logits, _ = run()
    assert len(logits.sharding.device_set) == COUNT
    expected, _ = jax.jit(network.infer)(folded, planes)
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_medians_are_of_runs_in_turn_after_one_of_each():
    order = []
    found = timing.median_seconds(2, a=lambda: order.append("a"), b=lambda: order.append("b"))
    assert order == ["a", "b"] * 3 and set(found) == {"a", "b"} and min(found.values()) >= 0


def test_cold_compilation_keeps_nothing_and_leaves_the_cache_as_it_was():
    seen = []

    def function(x):
        seen.append(jax.config.jax_enable_compilation_cache)
        return x + 1

    jitted = jax.jit(function)
    for _ in range(2):
        compiled, times = timing.compile_cold(jitted, jnp.zeros(3))
        np.testing.assert_array_equal(compiled(jnp.zeros(3)), 1)
        assert min(times) > 0
    assert seen == [False, False] and jax.config.jax_enable_compilation_cache


@pytest.mark.parametrize(
    ("cores", "given", "wanted"),
    [
        (6, Options(games=1024), 4),
        (6, Options(games=1024, speed=True, batch=True, batch_sizes=(3, 96)), 1),
        (6, Options(batch=True, batch_sizes=(3, 96)), 3),
        (6, Options(verification=True, preset="mlp"), 2),
        (6, Options(arena=True), 6),
    ],
)
def test_the_devices_are_the_cores_that_divide_the_games(cores, given, wanted, monkeypatch):
    monkeypatch.setattr(launch, "cores", lambda: cores)
    assert devices._fitting(given) == wanted


def test_the_cpu_is_split_into_devices():
    code = (
        "import jax; from experiments.benchmark import devices, options; "
        "devices.split_cpu(options.Options(arena=True, cpu_devices=3)); print(jax.device_count())"
    )
    environment = dict(os.environ)
    environment.pop("XLA_FLAGS")  # Of conftest.
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3"]


def test_two_numbers_of_devices_are_refused():
    with pytest.raises(ValueError, match="leave one of them out"):  # XLA_FLAGS: conftest.
        devices.split_cpu(Options(cpu_devices=3))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--games", "9"],
            f"--games is 9, which {COUNT} devices do not divide: use a multiple of {COUNT}",
        ),
        (["--batch", "--batch-sizes", "8", "9"], f"9 of --batch-sizes is 9, which {COUNT} devices"),
        (["--batch", "--batch-sizes", "4", "4"], "each larger than the one before"),
        (["--games", "0"], "--games is 0: use 1 or more"),
        (["--cpu-devices", "-1"], "--cpu-devices is -1: use 0 to 256"),
        (["--scale", "--scale-games", "1000"], "--scale-games is 1000, which 1,024 devices"),
        (["--scale", "--bandwidth", "0"], "--bandwidth is 0.0: use above 0"),
        (["--scale", "--plot", "x.txt"], "use a name that ends in .png, .svg or .pdf"),
        (["--scale", "--plot", "nowhere/x.png"], "there is no folder nowhere"),
        (["--arena", "--out", "."], "--out is ., which is a folder"),
        (["--first-iteration", "--games", "12"], "use a multiple of 8"),
        (["--stability"], "add --time-to-perfect"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(flags, said, capsys):
    assert benchmark.main(flags) == 2
    message = capsys.readouterr().err
    assert said in message and len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("flag", "package"),
    [("--speed", "pgx"), ("--scale", "azjax[plots]"), ("--explorer", "playwright")],
)
def test_what_is_missing_is_named_before_the_work(flag, package, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert benchmark.main([flag]) == 2
    said = capsys.readouterr().err.replace("'azjax[benchmark]'", "pgx").replace("'", "")
    assert f"pip install {package}" in said


def test_a_result_without_a_folder_is_refused_before_the_work(tmp_path, capsys):
    assert benchmark.main(["--arena", "--out", str(tmp_path / "nowhere" / "x.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_profile_without_a_place_is_refused_before_the_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    unusable = {
        "file": "which is a file",
        "a/b": "there is no folder",
        ".": "not empty",
        "x" * 300: "name too long",
    }
    for folder, said in unusable.items():
        assert benchmark.main(["--profile", str(tmp_path / folder)]) == 2
        message = capsys.readouterr().err
        assert said in message and len(message.splitlines()) == 1


@pytest.mark.slow
def test_the_profile_holds_both_sides(tmp_path, capsys):
    folder, out = tmp_path / "profile", tmp_path / "x.json"
    assert benchmark.main([*FLAGS, "--profile", str(folder), "--out", str(out)]) == 0
    assert list(folder.rglob("perfetto_trace.json.gz")) and list(folder.rglob("*.xplane.pb"))
    assert "ui.perfetto.dev" in capsys.readouterr().out
    assert json.loads(out.read_text())["profile"] == str(folder)


def test_every_number_of_games_is_measured(tmp_path, capsys):
    out = tmp_path / "x.json"
    flags = [*FLAGS, "--batch", "--batch-sizes", "8", "16", "--out", str(out)]
    assert benchmark.main(flags) == 0
    found = json.loads(out.read_text())["batch"]
    assert [row["games"] for row in found] == [8, 16]
    for row in found:
        assert row["microseconds"] * row["moves_per_second"] == pytest.approx(1e6)
        assert 500 < row["tree_bytes"] < 2000
    shown = capsys.readouterr().out
    assert "microseconds/move" in shown and "a move cost" in shown


def test_a_rise_is_one_of_over_5_percent_against_the_best_smaller_batch():
    costs = (10.0, 8.0, 8.3, 8.5, 7.0, 7.4)
    batches = [batch.Batch(2**i, 1e6 / cost, cost, 100.0) for i, cost in enumerate(costs)]
    found = [(one.games, best.games) for one, best in batch.rises(batches)]
    assert found == [(8, 2), (32, 16)]


def test_the_training_process_gets_the_sizes_asked_for(tmp_path):
    given = dataclasses.replace(SMALL, games=256)
    parsed = training_options.parse(starting.arguments(given, 8, tmp_path / "run"))
    config, plan = parsed.config, parsed.plan
    train.check(config, COUNT)
    assert (config.network.kind, config.network.channels, config.network.blocks) == ("tower", 4, 1)
    assert (config.search.algorithm, config.search.num_simulations) == ("gumbel", 4)
    assert (config.selfplay.games, config.selfplay.plies) == (256, 8)
    assert (config.learner.batch_size, config.learner.steps) == (1024, 8)
    assert (plan.until, plan.max_iterations, plan.report) == ("never", 1, False)


@pytest.mark.slow
def test_the_first_iteration_starts_cold_then_warm():
    start = starting.time_start(SMALL, 1, repeats=1)
    assert len(start.cold) == len(start.warm) == 1 and start.moves == 1
    assert 0 < start.warm[0] < start.cold[0] < 600


COSTS = model.Costs(
    play=model.Line(0.5, 0.01),
    learn=model.Line(0.002, 0.0001),
    plies=8,
    moves_per_game=8.0,
    reduced_bytes=4000,
    reductions=3,
)
LINK = model.Link(bandwidth=1e6, latency=0.001)


def test_reductions_cost_what_is_counted_by_hand():
    assert model.ring(COSTS, LINK, 1) == model.tree(COSTS, LINK, 1) == 0
    # Bytes: 2 * 3/4 * 4000 / 1e6 = 0.006. Messages: 3 reductions of 6 hops, or of 2 * 2.
    assert model.ring(COSTS, LINK, 4) == pytest.approx(0.006 + 0.018)
    assert model.tree(COSTS, LINK, 4) == pytest.approx(0.006 + 0.012)


def test_an_iteration_costs_what_is_counted_by_hand():
    """100 games of 8 moves are 800 positions: 4 steps of 2 devices with 200 samples each."""
    alone = model.iteration_seconds(COSTS, LINK, model.ring, 1, 100, 200)
    assert alone == pytest.approx(0.5 + 100 * 0.01 + 4 * (0.002 + 200 * 0.0001))
    reduced = 0.004 + 0.006  # Bytes: 2 * 1/2 * 4000 / 1e6; messages: 3 * 2.
    both = model.iteration_seconds(COSTS, LINK, model.ring, 2, 100, 200)
    assert both == pytest.approx(alone + 4 * reduced)


def test_weak_scaling_keeps_the_games_of_a_device():
    one, two = model.weak(COSTS, LINK, model.ring, (1, 2), 100, 200)
    assert (two.games, two.batch) == (100, 200)
    assert one.games_per_second == pytest.approx(100 / 1.588)
    assert two.games_per_second == pytest.approx(200 / 1.628)
    assert one.efficiency == 1 and two.efficiency == pytest.approx(1.588 / 1.628)


def test_strong_scaling_keeps_the_games_of_all():
    one, two = model.strong(COSTS, LINK, model.tree, (1, 2), 100, 200)
    assert (two.games, two.batch) == (50, 100)
    seconds = 0.5 + 50 * 0.01 + 4 * (0.002 + 100 * 0.0001 + 0.004 + 0.006)
    assert two.games_per_second == pytest.approx(100 / seconds)
    assert two.efficiency == pytest.approx(one.seconds / seconds / 2)


def test_a_line_is_fitted_without_negative_numbers():
    line = model.fit([1, 10, 100], [0.3 + 0.02 * n for n in (1, 10, 100)])
    assert line == pytest.approx((0.3, 0.02))
    assert line.seconds(1000) == pytest.approx(20.3)
    falling = model.fit([1, 10], [1.0, 0.5])
    assert falling.per_item == 0 and 0.5 < falling.fixed < 1.0


def test_what_is_reduced_is_counted_from_the_shapes():
    """With 4 channels and one block: five BatchNorm layers, of 4 + 4 + 4 + 2 + 1 channels."""
    kernels = 9 * 2 * 4 + 2 * 9 * 4 * 4 + 4 * 2 + 4 * 1
    dense = 18 * 9 + 9 + 9 * 64 + 64 + 64 + 1
    gradient, statistics = kernels + 2 * 15 + dense, 2 * 15
    found = scale.count_reduced(runs.run_config(SMALL, 1))
    assert found == (4 * (gradient + 2 * statistics), 1 + 2 * 5)


@pytest.mark.slow
def test_the_model_is_made_of_measurements_drawn_and_checked(tmp_path, capsys):
    given = dataclasses.replace(SMALL, games=1, plot=tmp_path / "scale.svg")
    costs = scale.measure_costs(given)
    assert costs.play.seconds(1) > 0 and costs.learn.seconds(8) > 0
    assert 5 <= costs.moves_per_game <= 16  # Of 16 moves, with at least one game to its end.
    lines = scale.model_lines(given, costs, LINK)
    assert set(lines) == {"weak, ring", "weak, tree", "strong, ring", "strong, tree"}
    assert [point.devices for point in lines["weak, ring"]] == [2**i for i in range(11)]
    for line in lines.values():
        shares = [point.efficiency for point in line]
        assert shares[0] == 1 and all(b <= a for a, b in itertools.pairwise(shares))
    scale._show(lines)
    plot.draw_scale(given.plot, lines, scale.assumptions(given, costs))
    assert given.plot.read_text().startswith("<?xml")
    check = scale.check_model(given, costs, LINK, train.make_mesh())
    assert check and check["devices"] == COUNT and check["measured"] > 0 and check["predicted"] > 0
    shown = capsys.readouterr().out
    assert "1,024" in shown and f"check: {COUNT} devices, {COUNT} games" in shown


@pytest.mark.slow
def test_scale_measures_one_core_in_a_process_of_its_own(tmp_path, capsys):
    picture, out = tmp_path / "scale.png", tmp_path / "x.json"
    flags = ["--scale", "--plot", str(picture), "--out", str(out), *FLAGS, "--games", "2"]
    assert benchmark.main(flags) == 0
    shown, found = capsys.readouterr().out, json.loads(out.read_text())["scale"]
    assert "Assumed, not measured: 50 GB/s" in shown and f"picture: {picture}" in shown
    assert found["costs"]["reductions"] == 11 and picture.stat().st_size > 1000


def test_results_are_left_out_of_the_repository():
    ignored = (pathlib.Path(__file__).parents[2] / ".gitignore").read_text().split()
    assert f"/{Options().out}" in ignored and f"/{Options().plot}" in ignored
