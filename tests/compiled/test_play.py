"""Games at the terminal: whole games, all inputs, and all ways to end."""

import dataclasses
import io
import os
import re
import shutil
import sys

import jax
import numpy as np
import pytest

import guard
import misere_pile
from azjax.cli import play
from azjax.cli.parsing import parse
from azjax.players import Agent, Decision, random_agent
from azjax.runs import presets
from bad_players import first_legal
from small import make_run
from trained import compiling_once

CONFIG = presets.smoke(presets.get("default"))


class Keyboard(io.StringIO):
    """Lines from a terminal or a pipe."""

    def __init__(self, lines, terminal):
        super().__init__("".join(f"{line}\n" for line in lines))
        self.isatty = lambda: terminal


@pytest.fixture
def program(monkeypatch, capfd, tmp_path):
    """Runs the program in an empty folder; returns its exit status and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(arguments, typed=(), terminal=False):
        monkeypatch.setattr(sys, "stdin", Keyboard(typed, terminal))
        with guard.sharing(), compiling_once():
            status = play.main(arguments.split())
        out, err = capfd.readouterr()
        assert "\x1b" not in out + err
        return status, out, err

    return run


def test_the_same_seed_plays_the_same_game(program):
    players = "--x random --o random --seed"
    games = [program(f"{players} {seed}", terminal=True)[1] for seed in (1, 1, 2)]
    moves = [re.findall(r"plays (..)", out) for out in games]
    assert moves[0] == moves[1] != moves[2]
    draws = Agent("draws", lambda params, key, states: jax.random.bits(key, (1,)))
    machine = play.Machine(draws, jax.random.key(0))
    with jax.disable_jit():  # Each move is drawn with a new key.
        assert len({int(machine.decide(())) for _ in range(3)}) == 3


@pytest.mark.compiles(1)
def test_a_game_in_which_the_mover_loses(capfd, monkeypatch):
    game = misere_pile.make()  # Taking 1, 2, 2 from five stones: the second player loses.
    game = game._replace(display=game.display._replace(name_actions=lambda state: ("One", "Two")))
    monkeypatch.setattr(sys, "stdin", Keyboard(["one", "Two", "TWO"], terminal=False))
    hint = play.Machine(random_agent(game), jax.random.key(0))
    play.play_game(game, (None, None), hint, jax.random.key(0))
    assert capfd.readouterr().out.endswith("XXXOO\n\nX (you) wins.\n")


# Input.


def test_input_gets_one_sentence_or_an_effect(program, tic_tac_toe, monkeypatch):
    monkeypatch.setattr(play, "make_agent", lambda *_: first_legal(tic_tac_toe))
    wrong = {"b2": "'b2'", "": "''", "[red]": "'[red]'", "z" * 5000: f"'{'z' * 19}…'"}
    status, out, err = program("--o random", [" B2 ", *wrong, "hint", "QUIT"])
    assert (status, err) == (0, "")
    boards = out.split("\n a1 | b1 | c1\n")
    assert len(boards) == 2  # The first row is empty at the start.
    free = "b1, c1, a2, c2, a3, b3, c3"  # After two moves, in b2 and a1.
    answers = boards[1].split("\n\n")[-1].splitlines()
    is_not = f"is not a legal move: type one of {free}, or help."
    assert answers[: len(wrong)] == [f"{shown} {is_not}" for shown in wrong.values()]
    assert answers[len(wrong)].startswith("lowest would play ") and out.endswith("Goodbye.\n")


def test_hint_of_a_search(capsys):
    rng = np.random.default_rng(0)
    visits, weights = np.array([0, 3, 6, 0]), np.array([0.0, 0.3, 0.7, 0.0])
    decision = Decision(np.int32(2), weights, 0.1, rng.uniform(-1, 1, 4), rng.random(4), visits)
    legal = np.array([True, True, True, False])
    play.show_hint(0, "puct(9)", decision, legal, ("a", "b", "c", "d"))
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[0] == "puct(9) would play c, value -0.92 for X"
    head, *rows = [line.split() for line in lines[1:]]
    assert head == ["move", "visits", "Q", "prior", "policy"]
    q, prior = (f"{decision.q_values[1]:+.2f}", f"{decision.prior[1]:.1%}")
    assert [row for row in rows if len(row) > 1] == [
        ["a", "0", f"{decision.prior[0]:.1%}", "0.0%"],  # No Q without a visit.
        ["b", "3", q, prior, "30.0%"],
        ["c", "6", "-0.92", f"{decision.prior[2]:.1%}", "70.0%", "best"],
    ]


def test_the_default_opponent(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    made = []
    monkeypatch.setattr(
        play, "make_agent", lambda *arguments: made.append(arguments) or random_agent(arguments[1])
    )
    with guard.sharing(), compiling_once():
        make_run(tmp_path / "b", CONFIG, (5,))
        make_run(tmp_path / "four", dataclasses.replace(CONFIG, game="connect_four"), (3,))

    def choose(arguments):
        made.clear()
        seats = play.set_table(parse(play.Options, arguments.split(), "play"))[1]
        ((spec, game, typed),) = made
        return seats.index(None), spec, game.name, typed.run_dir and str(typed.run_dir)

    assert choose("") == (0, "tic_tac_toe", "tic_tac_toe", "tic_tac_toe")
    for arguments in ("--game connect_four", "connect_four"):  # It was repaired in this seat.
        assert choose(arguments) == (1, "connect_four", "connect_four", "connect_four")
    assert choose("--game connect_four:4x4") == (0, "uct:100", "connect_four:4x4", None)
    for age, name in enumerate(["four", "b", "a"]):
        source = tmp_path / ("four" if name == "four" else "b")
        folder = shutil.copytree(source, tmp_path / "runs" / name)
        os.utime(folder / "config.json", (10**9 - age, 10**9 - age))
    capfd.readouterr()
    assert choose("--game tic_tac_toe") == (0, "alphazero", "tic_tac_toe", "runs/b")
    assert capfd.readouterr().err == "run: runs/b, the newest (--run-dir names another)\n"
    assert choose("--run-dir runs/a --x puct:3") == (1, "puct:3", "tic_tac_toe", "runs/a")
    assert choose("") == (0, "alphazero", "connect_four", "runs/four")


def test_the_value_is_that_of_the_chosen_move():
    rows = [
        ([0.9, -0.001], [0, 9], "+0.00"),
        (None, None, "-0.67"),
        ([0.9, 0.0], [9, 0], "-0.67"),  # Not visited.
    ]
    for q_values, visits, value in rows:
        q_values, visits = (known and np.array(known) for known in (q_values, visits))
        decision = Decision(np.int32(1), np.ones(2) / 2, np.float32(-0.67), q_values, None, visits)
        assert play.expects(decision, 1) == f", value {value} for O"
