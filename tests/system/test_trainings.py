"""Whole trainings: every kind of run, both engines, a perfect player, and what stops them."""

import json
import os
import re
import signal

import jax
import numpy as np

import azjax
from azjax import runs
from azjax.cli import train, verify
from azjax.proof import certificate
from azjax.runs.checkpoint import read_summary
from terminal import Terminal
from trained import RUN, network_alone, process_environment


def train_in(run_dir, *arguments):
    return train.main([*map(str, arguments), "--run-dir", str(run_dir)])


def records(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def read(run_dir, name="certificate.json"):
    return json.loads((run_dir / name).read_text())


def test_a_training_on_labelled_positions(tmp_path):
    run_dir = tmp_path / "run"
    assert train_in(run_dir, "--smoke", "--game", "connect_four") == 0
    assert [record["iteration"] for record in records(run_dir)] == [1, 2, 3]
    evaluated = [record["iteration"] for record in records(run_dir) if "error" in record]
    assert evaluated == [1, 3] and not (run_dir / "certificate.json").exists()


def test_both_engines_train_the_same_network_bit_for_bit(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(certificate, "search_policy", network_alone)
    run_dir = tmp_path / "mctx"
    assert train_in(run_dir, *RUN, "--no-report", "--search.engine", "mctx") == 0
    assert runs.read_config(run_dir).search.engine == "mctx"
    folders = [each / "checkpoints" / "8" for each in (trained.run_dir, run_dir)]
    ours, theirs = (read_summary(folder)["files"] for folder in folders)
    assert ours == theirs  # Digests of the whole state, including the buffer.
    assert ours.keys() == {"player/arrays.npz", "state/arrays.npz"}


def test_verify_finds_the_certificate_of_a_player_that_can_be_beaten(tmp_path, capfd):
    run_dir = tmp_path / "run"
    assert train_in(run_dir, "--smoke", "--no-report", "--max-iterations", "1") == 0
    said = read(run_dir)
    assert len({search["blunders"] for search in said["searches"]} | {said["blunders"]}) == 3
    capfd.readouterr()
    assert verify.main(["--run-dir", str(run_dir), "--json"]) == 1
    assert json.loads(capfd.readouterr().out) | {"seconds": 0} == said | {"seconds": 0}
    assert verify.main(["--run-dir", str(run_dir), "--limit", "2", "--simulations", "0"]) == 1
    out, err = capfd.readouterr()
    assert "NOT PROVED" in out and "network +" not in out and "\x1b" not in out and err == ""
    assert out.count("instead of") == 2
    assert f"and {said['blunders'] - 2:,} more: add --limit {said['blunders']} to see them" in out
    for seat in ("first", "second"):  # Exhaustive play counts the same losing lines.
        losing = said[f"losing_lines_{seat}"]
        status = verify.main(["--run-dir", str(run_dir), "--lines", seat, "--json"])
        found = json.loads(capfd.readouterr().out)
        assert found["games"]["lost"] == losing and status == (losing > 0)
        assert (found["seat"], found["simulations"], found["sampled"]) == (seat, 0, False)


def test_training_stops_at_nan(tmp_path, capfd):
    run_dir = tmp_path / "run"
    wild = ["--learner.learning-rate", "1e9", "--learner.clip-norm", "0", "--learner.steps", "1"]
    wild += ["--learner.optimizer", "sgd", "--max-iterations", "9", "--game", "hex:3"]
    wild += ["--until", "never", "--checkpoint-every", "1"]
    assert train_in(run_dir, "--smoke", *wild) == 2
    err = capfd.readouterr().err.splitlines()[-1]
    assert err.startswith("error: ") and "lower learner.learning_" in err
    name, iteration = re.search(r"(\w+) became nan in iteration (\d+)", err).groups()
    assert name in records(run_dir)[-1]
    assert [record["iteration"] for record in records(run_dir)] == list(range(1, int(iteration)))
    player = azjax.load(run_dir)
    assert player.iteration == int(iteration) - 1
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(player.params))


def test_a_closed_terminal_loses_nothing(tmp_path):
    endless = ["--game", "hex:6", "--smoke", "--until", "never", "--max-iterations", "100000"]
    endless += ["--checkpoint-every", "100000", "--run-dir"]
    command = ["-m", "azjax", "train", *endless, str(tmp_path / "run")]
    with Terminal(command, os.environ | process_environment()) as terminal:
        terminal.wait_for("to iteration 100000")
        os.close(terminal.terminal)
        os.close(terminal.master)
        terminal.terminal = terminal.master = None
        assert terminal.process.wait(timeout=100) == 128 + signal.SIGHUP
    run_dir = tmp_path / "run"
    assert runs.iterations(run_dir) == [len(records(run_dir))]
