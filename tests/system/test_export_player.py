"""Exported files: a process without azjax, and the program."""

import os
import subprocess
import sys

import jax
import numpy as np

import azjax as az
from azjax.cli import export as program
from azjax.networks import MLPConfig
from azjax.runs.export import name_leaves
from integers import positions
from refusals import check_program
from small import make_run

STATES = positions("hex:4")


def read(path):
    return jax.export.deserialize(path.read_bytes())


FRESH = """
import pathlib, sys
sys.modules["azjax"] = None  # Imports of azjax fail.
import jax, numpy as np
exported = jax.export.deserialize(pathlib.Path("player.stablehlo").read_bytes())
logits, value = exported.call(dict(np.load("states.npz")))
np.savez("outputs.npz", logits=logits, value=value)
"""


def test_another_process_reads_a_file_without_azjax(tmp_path):
    player = az.load("hex:4")
    exported = read(az.export(player, tmp_path / "player.stablehlo"))
    assert exported.platforms == ("cpu", "cuda", "tpu") and exported.nr_devices == 1
    np.savez(tmp_path / "states.npz", **name_leaves(STATES))
    environment = {name: x for name, x in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", FRESH], cwd=tmp_path, env=environment, check=True)
    logits, value = player.evaluate(STATES)
    with np.load(tmp_path / "outputs.npz") as outputs:
        np.testing.assert_array_equal(outputs["logits"], logits)
        np.testing.assert_array_equal(outputs["value"], value)


def test_the_program_writes_a_run_or_a_player_that_comes_with_azjax(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run_dir = make_run(tmp_path / "run", az.Config(network=MLPConfig(hidden=(8,))))
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
