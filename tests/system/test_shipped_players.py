"""The players that come with azjax: their proofs, equal bits, and how their files are made."""

import sys

import jax
import numpy as np
import pytest

import azjax
from azjax._commands import command
from azjax.cli import verify
from azjax.networks.integers import make_quantized
from azjax.proof import seat_proof
from azjax.proof.exhaustive import explore
from azjax.proof.repair import OverrideTable, load_table, save_table
from azjax.runs import pretrained
from experiments import add_overrides
from integers import add_untrained, evaluate, forget, observe, positions


@pytest.mark.parametrize("name", pretrained.names())
def test_they_give_equal_bits_in_thousands_of_positions(name):
    player = azjax.load(name)
    network, game = player.parts.network, pretrained.read(name).about["game"]
    variables, symmetric = network.init(jax.random.key(0)), network.symmetric
    encoding, states = network.encoding, positions(game, 100, seed=5)
    planes = observe(player.game, states, encoding)
    expected = evaluate(player.game, symmetric, variables, planes)
    for dtype in ("float32", "bfloat16"):
        network = make_quantized(player.game, variables, encoding, symmetric, dtype)
        outputs = jax.jit(network.infer)(network.fold(variables), planes)
        jax.tree.map(np.testing.assert_array_equal, outputs, expected)


def test_moves_of_exact_networks_need_no_comparison_and_pass_it(tmp_path):
    player = azjax.load("connect_four:5x4")
    proof = seat_proof.prove_seat(player, "second", tmp_path / "proof")
    ends = proof.exploration.ends
    assert proof.is_proof and proof.symmetric
    act = seat_proof.make_act(player.game, seat_proof.make_agent(player, 0), proof.table)
    settings = {"symmetric": True, "compare": True}
    *_, last = explore(player.game, act, 1, tmp_path / "compared", **settings)
    assert not last.breaks_symmetry
    assert (last.ends.decisions, [*last.ends.moves]) == (ends.decisions, [*ends.moves])


def test_the_independent_program_confirms_a_proof(program, monkeypatch, capsys):
    path = pretrained.path_of("connect_four:5x4")
    monkeypatch.setattr(sys, "argv", ["connect_four.py", "--file", str(path)])
    assert program.main() == 0
    printed = capsys.readouterr().out
    assert "4,185 decisions; ends: 1,540 won, 292 drawn, 0 lost" in printed


def test_the_certificate_of_a_shipped_player_is_perfect():
    assert azjax.verify(azjax.load("othello:4"), ()).perfect


def test_needed_overrides_are_added_once_no_game_is_lost(folder, tmp_path, monkeypatch, capsys):
    name, path = "tic_tac_toe", add_untrained("tic_tac_toe")
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert add_overrides.main([name]) == 2
    make = command("azjax", "verify", name, "--lines", "first", "--repair", "12")
    assert capsys.readouterr().err.endswith(f"make it with {make}\n")
    assert verify.main([name, "--lines", "first", "--repair", "12"]) == 0

    [found] = tmp_path.glob("runs/verified/tic_tac_toe/lines/*.overrides.npz")
    table = load_table(found, azjax.make(name))
    one = OverrideTable(*jax.tree.map(lambda leaf: leaf[:1], table[:3]), table.rounds)
    save_table(tmp_path / "one.npz", one)
    assert add_overrides.main([name, "--table", str(tmp_path / "one.npz")]) == 1
    assert path.read_bytes() == before

    capsys.readouterr()
    assert add_overrides.main([name]) == 0
    assert " 0 lost\n" in capsys.readouterr().out
    forget()
    assert 0 < len(azjax.load(name).overrides.actions) <= len(table.actions) + 1
