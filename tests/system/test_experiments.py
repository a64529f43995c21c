"""The lecture, the benchmark and the ladder, as whole programs with small settings."""

import json
import shutil
import time
from types import SimpleNamespace

import jax
import pytest

from azjax import training
from experiments import ladder, learned_model
from experiments.benchmark import __main__ as benchmark
from experiments.benchmark import iterations, speed
from experiments.benchmark.options import median_seconds
from experiments.lecture import __main__ as lecture
from refusals import check_program
from trained import chosen

# The lecture.


def test_the_lecture_writes_one_page_with_its_pictures(tmp_path, monkeypatch, capfd):
    """Without its games, which take a minute; `.ci/run` compares them with the lecture's."""

    def fail(setup):
        raise RuntimeError("broken")

    few = [e for e in lecture.EXPERIMENTS if e.title == "All games"]
    monkeypatch.setattr(lecture, "EXPERIMENTS", few)
    out = tmp_path / "new" / "lecture"
    assert lecture.main(["--out", str(out), "--quick"]) == 0
    assert str(out / "index.html") in capfd.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == ["index.html", "results.json"]
    page = (out / "index.html").read_text()
    assert page.count("<h2 ") == 2 and "quick" in page
    assert "<img" not in page and "src=" not in page[: page.index("<script")]
    results = json.loads((out / "results.json").read_text())
    assert sum(results["All games"]["all"]) == 255_168
    monkeypatch.setattr(lecture, "EXPERIMENTS", [lecture.Experiment("x", fail, print)])
    with pytest.raises(RuntimeError, match="broken"):
        lecture.main(["--out", str(tmp_path / "out")])
    assert not list((tmp_path / "out").iterdir())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    rows = [
        ("--out file/below", "file"),
        ("--out no --seed -1", "--seed is -1: use 0 to"),
    ]
    check_program(lecture.main, rows, capfd)
    assert not (tmp_path / "no").exists()


# The benchmark.

FLAGS = ["--games=8", "--simulations=4", "--channels=4", "--blocks=1", "--repeats=1"]


def trace(repeats, **runs):
    """Traces what is measured; compiling it would take most of the time of this file."""
    assert [jax.eval_shape(run) for run in runs.values()]
    return dict.fromkeys(runs, 2.0)


def test_speeds_are_printed_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(training, "compiled", lambda function, *_: function)
    for module in (speed, iterations):
        monkeypatch.setattr(module, "median_seconds", trace)
    path = tmp_path / "found.json"
    flags = [*FLAGS, "--speed", "--batch", "--batch-sizes", "8", f"--out={path}"]
    assert benchmark.main(flags) == 0
    shown, found = capsys.readouterr().out, json.loads(path.read_text())
    assert f"{jax.device_count()} devices" in shown and f"results: {path}" in shown
    searches = ["search, puct", "search, puct without loops", "search, mctx_muzero"]
    network = "network alone, as plain convolutions"
    rows = {row["what"].split(":")[0]: row for row in found["speed"]}
    assert [*rows] == [network, *searches, "self-play, gumbel", "iteration over its self-play"]
    assert [row["azjax / textbook"] for row in rows.values()] == [1, 1, 1, 1, 1, None]
    # Multiplications of 8 positions: two 3x3 and one 1x1 convolutions of 9 cells, and two heads.
    products = 9 * (9 * 2 * 4 + 2 * 9 * 4 * 4 + 4 * 3) + 2 * 9 * 9 + 9 * 64 + 64
    assert rows[network]["azjax"] == pytest.approx(2e-12 * 8 * products / 2)
    (row,) = found["batch"]
    assert (row["games"], row["moves/s"]) == (8, 8) and 500 < row["search, bytes/game"] < 2000
    seconds = median_seconds(2, slow=lambda: time.sleep(0.01), fast=lambda: None)
    assert seconds["slow"] > 0.01 > seconds["fast"]


# The ladder.


def test_a_ladder_trains_draws_and_continues(trained, tmp_path, monkeypatch, capfd):
    """Each training is a copy of that of other tests."""
    commands = []

    def run(command, env):
        assert env["JAX_ENABLE_COMPILATION_CACHE"] == "0"
        commands.append(command)
        shutil.copytree(trained.run_dir, command[command.index("--run-dir") + 1])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(ladder, "subprocess", SimpleNamespace(run=run))
    arguments = ["--smoke", "--games", "tic_tac_toe", "--widths", "8"]
    arguments += ["--out", str(tmp_path / "ladder")]
    assert ladder.main(arguments) == 0
    (command,) = commands
    assert command[1:3] == ["-m", "experiments.train"]
    config = chosen(*command[3:]).config
    assert config.game == "tic_tac_toe" and config.network.width == 8
    (rung,) = json.loads((tmp_path / "ladder" / "ladder.json").read_text())["rungs"]
    assert (rung["game"], rung["width"], rung["decisions"]) == ("tic_tac_toe", 8, 4520)
    assert len(rung["moves"]) > 1 and all(0 < error < 100 for error in rung["errors"])
    picture = (tmp_path / "ladder" / "tic_tac_toe.svg").read_text()
    assert "blunders in 4,520 positions" in picture
    assert ladder.main(arguments) == 0 and len(commands) == 1  # Everything is trained already.


# The learned model.


def test_a_learned_model_is_trained_audited_and_drawn(tmp_path, monkeypatch, capsys):
    def make(*given):
        parts = load(*given)
        config = training.SelfPlayConfig(games=16, unroll_length=8)
        replay = training.make_replay(training.ReplayConfig(capacity=128), batch_size=16)
        return parts._replace(selfplay=config, replay=replay)

    load = learned_model.custom.load_code
    monkeypatch.setattr(learned_model.custom, "load_code", make)
    monkeypatch.setattr(learned_model, "SIMULATIONS", (2,))
    out = tmp_path / "audit.json"
    assert learned_model.main(["--seeds", "0", "--iterations", "1", "--out", str(out)]) == 0
    results = json.loads(out.read_text())
    (row,) = results["rows"]
    assert row["MuZero, evaluations"] == 16 * 8 * 17 and 0 < row["MuZero, 2 simulations"] < 4520
    assert results["curves"] == [[row["MuZero"]], [row["AlphaZero"]]]
    (legal,), (optimal,) = results["legal"], results["optimal"]
    assert all(len(shares) == 10 for shares in legal.values())
    assert legal["value"][0] == optimal["value"][0] and legal != optimal
    assert all(0 <= share <= 100 for share in legal["reward of others"][1:])
    assert "reward of others, % after legal moves: nan" in capsys.readouterr().out
    assert "Right predictions after legal moves" in out.with_suffix(".svg").read_text()
