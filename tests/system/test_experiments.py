"""The lecture, the benchmark and the ladder, as whole programs with small settings."""

import json
import shutil
from types import SimpleNamespace

import jax
import pytest

from azjax import training
from experiments import ladder, learned_model
from experiments.benchmark import __main__ as benchmark
from experiments.benchmark import iterations, speed
from experiments.lecture import __main__ as lecture
from trained import chosen


def test_the_lecture_writes_one_page_with_its_pictures(tmp_path, monkeypatch):
    """Without its games, which take a minute; `.ci/run` compares them with the lecture's."""
    few = [e for e in lecture.EXPERIMENTS if e.title == "All games"]
    monkeypatch.setattr(lecture, "EXPERIMENTS", few)
    out = tmp_path / "new" / "lecture"
    assert lecture.main(["--out", str(out), "--quick"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["index.html", "results.json"]
    page = (out / "index.html").read_text()
    assert page.count("<h2 ") == 2 and "quick" in page
    assert "<img" not in page and "src=" not in page[: page.index("<script")]
    assert sum(json.loads((out / "results.json").read_text())["All games"]["all"]) == 255_168


def trace(repeats, **runs):
    """Traces what is measured; compiling it would take most of the time of this file."""
    assert [jax.eval_shape(run) for run in runs.values()]
    return dict.fromkeys(runs, 2.0)


def test_speeds_are_printed_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(training, "compiled", lambda function, *_: function)
    for module in (speed, iterations):
        monkeypatch.setattr(module, "median_seconds", trace)
    path = tmp_path / "found.json"
    sizes = "--games=8 --simulations=4 --channels=4 --blocks=1 --repeats=1 --batch-sizes=8"
    assert benchmark.main([*sizes.split(), "--speed", "--batch", f"--out={path}"]) == 0
    shown, found = capsys.readouterr().out, json.loads(path.read_text())
    assert f"{jax.device_count()} devices" in shown
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


def test_a_ladder_trains_draws_and_continues(trained, tmp_path, monkeypatch):
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
    config = chosen(*command[3:]).config
    assert config.game == "tic_tac_toe" and config.network.width == 8
    (rung,) = json.loads((tmp_path / "ladder" / "ladder.json").read_text())["rungs"]
    assert (rung["game"], rung["width"], rung["decisions"]) == ("tic_tac_toe", 8, 4520)
    assert len(rung["moves"]) > 1 and all(0 < error < 100 for error in rung["errors"])
    assert "blunders in 4,520 positions" in (tmp_path / "ladder" / "tic_tac_toe.svg").read_text()
    assert ladder.main(arguments) == 0 and len(commands) == 1  # Everything is trained already.


def test_a_learned_model_is_trained_audited_and_drawn(tmp_path, monkeypatch):
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
    assert "Right predictions after legal moves" in out.with_suffix(".svg").read_text()
