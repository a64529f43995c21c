"""The players that come with azjax: their proofs, equal bits, and their files."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import azjax as az
import damages
from azjax._commands import command
from azjax.cli import verify
from azjax.networks.integers import make_quantized
from azjax.proof.repair import OverrideTable, load_table, save_table
from azjax.runs import pretrained
from azjax.runs.export import name_leaves
from experiments import add_overrides
from integers import add_untrained, evaluate, forget, observe, positions


@pytest.mark.parametrize("name", pretrained.names())
def test_they_give_equal_bits_in_thousands_of_positions(name):
    player = az.load(name)
    network, game = player.parts.network, pretrained.read(name).about["game"]
    variables, symmetric = network.init(jax.random.key(0)), network.symmetric
    encoding, states = network.encoding, positions(game, 100, seed=5)
    planes = observe(player.game, states, encoding)
    expected = evaluate(player.game, symmetric, variables, planes)
    for dtype in ("float32", "bfloat16"):
        network = make_quantized(player.game, variables, encoding, symmetric, dtype)
        outputs = jax.jit(network.infer)(network.fold(variables), planes)
        jax.tree.map(np.testing.assert_array_equal, outputs, expected)


def test_the_independent_program_confirms_a_proof(program, monkeypatch, capsys):
    path = pretrained.path_of("connect_four:5x4")
    monkeypatch.setattr(sys, "argv", ["connect_four.py", "--file", str(path)])
    assert program.main() == 0
    printed = capsys.readouterr().out
    assert "4,185 decisions; ends: 1,540 won, 292 drawn, 0 lost" in printed


def test_the_certificate_of_a_shipped_player_is_perfect():
    assert az.verify(az.load("othello:4"), ()).perfect


def test_needed_overrides_are_added_once_no_game_is_lost(folder, tmp_path, monkeypatch, capsys):
    name, path = "tic_tac_toe", add_untrained("tic_tac_toe")
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert add_overrides.main([name]) == 2
    make = command("azjax", "verify", name, "--lines", "first", "--repair", "12")
    assert capsys.readouterr().err.endswith(f"make it with {make}\n")
    assert verify.main([name, "--lines", "first", "--repair", "12"]) == 0

    [found] = tmp_path.glob("runs/verified/tic_tac_toe/lines/*.overrides.npz")
    table = load_table(found, az.make(name))
    one = OverrideTable(*jax.tree.map(lambda leaf: leaf[:1], table[:3]), table.rounds)
    save_table(tmp_path / "one.npz", one)
    assert add_overrides.main([name, "--table", str(tmp_path / "one.npz")]) == 1
    assert path.read_bytes() == before

    capsys.readouterr()
    assert add_overrides.main([name]) == 0
    assert " 0 lost\n" in capsys.readouterr().out
    forget()
    assert 0 < len(az.load(name).overrides.actions) <= len(table.actions) + 1


# Damaged files of proofs.


def test_of_400_damages_none_is_silent_or_a_traceback():
    refused, faults = damages.find_faults(400)
    assert not faults, "\n".join(faults)
    assert refused > 200


# Exported files.


FRESH = """
import pathlib, sys
sys.modules["azjax"] = None  # Imports of azjax fail.
import jax, numpy as np
exported = jax.export.deserialize(pathlib.Path("player.stablehlo").read_bytes())
assert exported.platforms == ("cpu", "cuda", "tpu") and exported.nr_devices == 1
logits, value = exported.call(dict(np.load("states.npz")))
np.savez("outputs.npz", logits=logits, value=value)
"""


def test_another_process_reads_a_file_without_azjax(tmp_path):
    player, states = az.load("hex:4"), positions("hex:4")
    az.export(player, tmp_path / "player.stablehlo")
    np.savez(tmp_path / "states.npz", **name_leaves(states))
    environment = {name: x for name, x in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", FRESH], cwd=tmp_path, env=environment, check=True)
    logits, value = player.evaluate(states)
    with np.load(tmp_path / "outputs.npz") as outputs:
        np.testing.assert_array_equal(outputs["logits"], logits)
        np.testing.assert_array_equal(outputs["value"], value)
