"""Exported files of all networks and searches; a process reads one without azjax."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import azjax as az
from azjax.cli import export as program
from azjax.runs.export import name_leaves
from azjax.search import PUCT
from exported import NETWORKS, assert_close, assert_onnx, make_player, read
from refusals import check_program
from small import make_run

pytest.importorskip("flatbuffers")


@pytest.mark.parametrize("name", ["dense_BatchNorm", "symmetric", "symmetric_LayerNorm"])
def test_an_onnx_file_computes_the_network(name, some_states, tmp_path):
    assert_onnx(name, some_states, tmp_path)


def test_a_file_searches_as_the_player_does(some_states, tmp_path):
    player = make_player(search=PUCT(engine="mctx"))
    exported = read(az.export(player, tmp_path / "player.stablehlo", num_simulations=6))
    assert exported.platforms == ("cpu", "cuda", "tpu") and exported.nr_devices == 1
    action, weights, value = exported.call(name_leaves(some_states), 7)
    result = player.search(jax.random.key(7), some_states, num_simulations=6)
    np.testing.assert_array_equal(action, result.action)
    assert_close((weights, value), (result.action_weights, result.value))


FRESH = """
import pathlib, sys
sys.modules["azjax"] = None  # Imports of azjax fail.
import jax, numpy as np
exported = jax.export.deserialize(pathlib.Path("player.stablehlo").read_bytes())
logits, value = exported.call(dict(np.load("states.npz")))
np.savez("outputs.npz", logits=logits, value=value)
"""


def test_another_process_reads_a_file_without_azjax(some_states, tmp_path):
    player = make_player("quantized")
    az.export(player, tmp_path / "player.stablehlo")
    np.savez(tmp_path / "states.npz", **name_leaves(some_states))
    environment = {name: x for name, x in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", FRESH], cwd=tmp_path, env=environment, check=True)
    logits, value = player.evaluate(some_states)
    with np.load(tmp_path / "outputs.npz") as outputs:
        np.testing.assert_array_equal(outputs["logits"], logits)
        np.testing.assert_array_equal(outputs["value"], value)


def test_the_program_writes_a_run_or_a_player_that_comes_with_azjax(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run_dir = make_run(tmp_path / "run", az.Config(network=NETWORKS["mlp"]))
    assert program.main(["--run-dir", str(run_dir), "--out", "run.stablehlo"]) == 0
    assert capfd.readouterr().out.endswith(
        "input: {board: int8[b, 9], over: bool[b], player: int8[b]}\n"
    )
    assert program.main(["hex:4", "--simulations", "0", "--batch-size", "2"]) == 0
    assert read(tmp_path / "player.stablehlo").out_avals[0].shape == (2,)
    assert read(tmp_path / "run.stablehlo").out_avals[0].shape[1:] == (9,)
    rows = [
        ("--out player.pt", "player.pt has no known extension"),
        ("hex:7", "no player 'hex:7' comes with azjax: use "),
        ("hex:4 --run-dir run", "hex:4 and --run-dir run name two players: leave"),
        ("--batch-size 0", "--batch-size is 0: use 1 or more"),
    ]
    check_program(program.main, rows, capfd)
