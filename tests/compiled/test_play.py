"""Games at the terminal: whole games, all inputs, and all ways to end."""

import dataclasses
import io
import os
import re
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import guard
import misere_pile
from azjax.cli import board, play, table
from azjax.cli.parsing import parse
from azjax.games import tic_tac_toe as rules
from azjax.games.square import cell_names
from azjax.players import Decision, perfect_agent, random_agent
from azjax.runs import presets
from refusals import check_program
from run_directories import make_run
from trained import compiling_once

CONFIG = presets.smoke(presets.get("default"))
RULE = "----+----+----\n"
EMPTY = f"""
 a1 | b1 | c1
{RULE} a2 | b2 | c2
{RULE} a3 | b3 | c3
"""

FREE = "b1, c1, a2, c2, a3, b3, c3"  # After two moves, in b2 and a1.


class Keyboard(io.StringIO):
    """Lines from a terminal or a pipe."""

    def __init__(self, lines, terminal):
        super().__init__("".join(f"{line}\n" for line in lines))
        self.isatty = lambda: terminal


AGENTS = {}


def keep(make):
    """Returns the same player for a game every time, so that its program is compiled once."""

    def find(game, *solution):
        if (make, game) not in AGENTS:
            AGENTS[make, game] = make(game, *solution)
        return AGENTS[make, game]

    return find


@pytest.fixture
def program(monkeypatch, capfd, tmp_path):
    """Runs the program in an empty folder; returns its exit status and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("azjax.cli.players.random_agent", keep(random_agent))
    monkeypatch.setattr("azjax.cli.players.perfect_agent", keep(perfect_agent))

    def run(arguments, typed=(), terminal=False):
        monkeypatch.setattr(sys, "stdin", Keyboard(typed, terminal))
        with guard.sharing(), compiling_once():
            status = play.main(arguments.split())
        out, err = capfd.readouterr()
        assert "\x1b" not in out + err
        return status, out, err

    return run


def moves_of_a_person(solution, seat, best):
    """The names of one person's moves against the perfect player, at its best or its worst."""
    row, moves = 0, []
    while not solution.over[row]:
        action = int(np.argmax(solution.optimal[row]))
        if solution.player[row] == seat:
            values = np.where(solution.legal[row], solution.action_values[row], np.nan)
            action = int((np.nanargmax if best else np.nanargmin)(values))
            moves.append(cell_names(3, 3)[action])
        row = solution.children[row, action]
    return moves


# Whole games.


def test_a_person_loses_at_its_worst_and_draws_at_its_best(solution, program):
    for seat, best in ((0, True), (1, False)):
        moves = moves_of_a_person(solution, seat, best)
        mine, other = "XO"[seat], "XO"[1 - seat]
        status, out, err = program(f"--{other.lower()} perfect", [*moves, "y"])
        assert (status, err) == (0, "") and "again" not in out and "your move" not in out
        assert out.startswith(["X: you, O: perfect\n", "X: perfect, O: you\n"][seat])
        assert out.splitlines()[-1] == ("A draw." if best else f"{other} (perfect) wins.")
        announced = re.findall(
            rf"^{other} \(perfect\) plays ([abc]\d), expects an? .* for {other} \(.*\)$", out, re.M
        )
        assert len(announced) in (len(moves) - 1, len(moves), len(moves) + 1)
        last = out.rstrip().rsplit("\n\n", 2)[1]
        assert last.count(mine) == len(moves) and last.count(other) == len(announced)
        assert not best or not re.search(r"[abc]\d", last)


def test_seats_are_exchanged_when_playing_again(solution, program):
    first, second = (moves_of_a_person(solution, seat, True) for seat in (0, 1))
    typed = [*first, "perhaps", "Y", *second, "n"]
    status, out, _ = program("--o perfect", typed, terminal=True)
    assert status == 0
    assert out.count("A draw.") == 2
    assert out.index("X: you, O: perfect") < out.index("X: perfect, O: you")
    assert "X, your move: " in out and "O, your move: " in out
    question = "Play again, with the seats exchanged? (y/n): "
    assert out.count(question) == 3
    assert f"{question}Type y to play again, or n to leave.\n{question}" in out


def test_connect_four_has_columns_from_1(program):
    status, out, _ = program("--game connect_four --o random", ["hint", "9", *range(1, 8)] * 12)
    assert status == 0
    assert ". . . . . . .\n. . . . . . .\n1 2 3 4 5 6 7\n" in out
    assert "'9' is not a legal move: type one of 1, 2, 3, 4, 5, 6, 7, or help.\n" in out
    assert re.search(r"(wins|A draw)\.\n$", out)


def test_the_same_seed_plays_the_same_game(program):
    players = "--x random --o random --seed"
    games = [program(f"{players} {seed}", terminal=True)[1] for seed in (1, 1, 2)]
    assert all("again" not in out for out in games)
    moves = [re.findall(r"plays (..)", out) for out in games]
    assert moves[0] == moves[1] != moves[2]


@pytest.mark.compiles(1)
def test_a_game_in_which_the_mover_loses(capfd, monkeypatch):
    game = misere_pile.make()  # Taking 1, 2, 2 from five stones: the second player loses.
    monkeypatch.setattr(sys, "stdin", Keyboard([0, 1, 1], terminal=False))
    hint = table.Machine(game, random_agent(game), jax.random.key(0))
    table.Table(game, (None, None), hint).play_game()
    assert capfd.readouterr().out.endswith("XXXOO\n\nX (a person) wins.\n")


# Input.


def test_wrong_input_gets_one_sentence(program):
    texts = ("b2", "4", "", "x", "-1", "1.0", "1 2", "²", "٣", "[red]")
    wrong = {
        **{text: repr(text) for text in texts},
        **{"9" * 5000: "'9999999999999999999…'", "z" * 5000: "'zzzzzzzzzzzzzzzzzzz…'"},
        "\x1b[A": r"'\x1b[A'",
    }
    status, out, err = program("--o perfect", [" B2 ", *wrong, "undo", "QUIT"])
    assert (status, err) == (0, "")
    boards = out.split(EMPTY)
    assert len(boards) == 3  # At the start and after an undo.
    answers = boards[1].split("\n\n")[-1].splitlines()
    is_not = f"is not a legal move: type one of {FREE}, or help."
    assert answers == [f"{shown} {is_not}" for shown in wrong.values()]
    assert out.endswith("Goodbye.\n")


def test_undo_takes_back_both_moves_but_not_the_first_of_the_machine(program):
    _, out, _ = program("--o perfect", ["undo", "b2", "undo", "undo", "c3", "quit"])
    parts = out.split("You have no move to take back.\n")
    assert len(parts) == 3
    assert parts[1].count(EMPTY) == 1 and parts[1].count("plays a1") == 1
    assert "O (perfect) plays b2" in parts[2]
    assert parts[2].count("X") == 1
    _, out, _ = program("--x perfect", ["undo", "b1", "undo", "quit"])
    boards = [part for part in out.split("\n\n") if RULE in part]
    marks = [sorted(re.sub("[^XO]", "", drawn)) for drawn in boards]
    assert marks == [["X"], ["O", "X", "X"], ["X"]]
    assert out.count("You have no move") == 1
    status, out, err = program("--o perfect", ["b2", "x"])
    assert (status, err) == (0, "")
    assert out.endswith("\nThe input has ended. Goodbye.\n")


def test_help_and_hint(program):
    status, out, _ = program("--o perfect", ["help", "b2", "?", "hint", "q"])
    assert status == 0 and out.endswith("Goodbye.\n") and "input has ended" not in out
    for command in ("hint, ?", "undo", "help", "q, quit"):
        assert re.search(rf"^{re.escape(command)} +\w", out, re.M)
    assert out.count("perfect would play b1, expects an even game for X (+0.00)\n") == 2
    assert re.search(r"^move +Q +policy *$", out, re.M)
    assert re.search(r"^ +b1 +\+0\.00 +14\.3% +best *$", out, re.M)
    assert re.search(r"^ +c3 +\+0\.00 +14\.3% *$", out, re.M)
    assert not re.search(r"^ +(a1|b2) +\+", out, re.M) and out.count("best") == 2


def test_hint_of_a_search(capsys):
    rng = np.random.default_rng(0)
    visits, weights = np.array([0, 3, 6, 0]), np.array([0.0, 0.3, 0.7, 0.0])
    decision = Decision(np.int32(2), weights, 0.1, rng.uniform(-1, 1, 4), rng.random(4), visits)
    legal = np.array([True, True, True, False])
    board.show_hint(0, "puct(9)", decision, legal, ("a", "b", "c", "d"))
    first, head, *rows = [line.split() for line in capsys.readouterr().out.strip().splitlines()]
    assert first[:4] == ["puct(9)", "would", "play", "c,"]
    assert head == ["move", "visits", "Q", "prior", "policy"]
    q, prior = (f"{decision.q_values[1]:+.2f}", f"{decision.prior[1]:.1%}")
    assert [row for row in rows if len(row) > 1] == [
        ["a", "0", f"{decision.prior[0]:.1%}", "0.0%"],  # No Q without a visit.
        ["b", "3", q, prior, "30.0%"],
        ["c", "6", f"{decision.q_values[2]:+.2f}", f"{decision.prior[2]:.1%}", "70.0%", "best"],
    ]


def test_an_illegal_move_of_a_machine_is_named(program, monkeypatch):
    def cheat(game):
        def act(params, key, states):
            return Decision(jnp.array([4]), jnp.ones((1, 9)) / 9)

        return random_agent(game)._replace(name="cheat", act=act)

    monkeypatch.setattr("azjax.cli.players.random_agent", cheat)
    status, _, err = program("--o random", ["b2"])
    assert status == 2
    assert err == f"error: cheat cannot play b2 here: the legal moves are a1, {FREE}\n"


# Seats.


def test_seats():
    for x, o, seats in [
        (None, None, ("human", "default")),
        ("uct", None, ("uct", "human")),
        (None, "uct", ("human", "uct")),
        ("human", None, ("human", "default")),
        (None, "human", ("default", "human")),
        ("human", "uct", ("human", "uct")),
        ("human", "human", ("human", "human")),
    ]:
        assert play.choose_seats(play.Options(x=x, o=o), "default") == seats


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
        seats = play.set_table(parse(play.Options, arguments.split(), "play")).seats
        ((spec, game, typed),) = made
        return seats.index(None), spec, game.name, typed.run_dir and str(typed.run_dir)

    assert choose("") == (0, "tic_tac_toe", "tic_tac_toe", "tic_tac_toe")
    for arguments in ("--game connect_four", "connect_four"):  # It was repaired in this seat.
        assert choose(arguments) == (1, "connect_four", "connect_four", "connect_four")
    assert choose("--game connect_four:4x4") == (0, "uct:100", "connect_four:4x4", None)
    (tmp_path / "runs").mkdir()
    for age, name in enumerate(["untrained", "four", "b", "a"]):
        source = tmp_path / ("four" if name == "four" else "b")
        folder = shutil.copytree(source, tmp_path / "runs" / name)
        if name == "untrained":
            shutil.rmtree(folder / "checkpoints")
        os.utime(folder / "config.json", (10**9 - age, 10**9 - age))
    (tmp_path / "runs" / "spoiled" / "checkpoints" / "3").mkdir(parents=True)
    (tmp_path / "runs" / "spoiled" / "config.json").write_text("{")
    capfd.readouterr()
    assert choose("--game tic_tac_toe") == (0, "alphazero", "tic_tac_toe", "runs/b")
    assert capfd.readouterr().err == "run: runs/b, the newest (--run-dir names another)\n"
    assert choose("--run-dir runs/a --x puct:3") == (1, "puct:3", "tic_tac_toe", "runs/a")
    assert choose("") == (0, "alphazero", "connect_four", "runs/four")


def test_options_without_a_meaning_are_refused(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = [
        ("--o stockfish", "unknown player 'stockfish': use one of random, perfect"),
        ("--x uct:0", "'uct:0' needs a number of simulations"),
        ("--game hex:5 --o human --x network", "'network' needs the network of a training run"),
        ("--game chess", "unknown game 'chess': use one of tic_tac_toe, connect_four"),
        ("--game connect_four --o perfect", "too many positions to enumerate"),
        ("--game connect_four --o minimax", "such as minimax:4"),
        ("--run-dir nothing --game tic_tac_toe", "nothing is not a run directory"),
        (f"--seed {2**40}", f"--seed is {2**40}: use 0 to 2147483647"),
        ("--gaem perfect", "unknown option --gaem: ", "; did you mean --game?"),
        ("perfect", "no player 'perfect' comes with azjax: use connect_four"),
        ("hex:4 --run-dir x", "hex:4 and --run-dir x name two players: leave one out"),
        (
            "hex:4 hex:6",
            "'hex:6' follows no option that takes it: ",
            "--help lists what is allowed",
        ),
    ]
    check_program(play.main, rows, capfd)


# Words.


def test_values_in_words():
    for value, words in [
        (1.0, "a win (+1.00)"),
        (0.9, "an advantage (+0.90)"),
        (0.3, "an even game (+0.30)"),
        (-0.001, "an even game (+0.00)"),
        (-0.3, "a disadvantage (-0.30)"),
        (-0.89, "a disadvantage (-0.89)"),
        (-0.9, "a loss (-0.90)"),
    ]:
        assert board.in_words(np.float32(value), 1) == words.replace("(", "for O (")
    rows = [
        ([0.9, -0.02], [0, 9], "an even game for O (-0.02)"),  # The value of the chosen move.
        (None, None, "a disadvantage for O (-0.67)"),
        ([0.9, 0.0], [9, 0], "a disadvantage for O (-0.67)"),  # Not visited.
    ]
    for q_values, visits, message in rows:
        q_values, visits = (known and np.array(known) for known in (q_values, visits))
        decision = Decision(np.int32(1), np.ones(2) / 2, np.float32(-0.67), q_values, None, visits)
        said = f"O (name) plays 1, expects {message}"
        assert board.announce(1, "name", decision, "01") == said


def test_changes_are_highlighted(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    before = rules.from_board([1, 0, 0, 0, 0, 0, 0, 0, 0])
    after = rules.from_board([1, 0, 0, 0, -1, 0, 0, 0, 0])
    board.show(azjax.make("tic_tac_toe"), after, before)
    out = capsys.readouterr().out
    assert re.findall(r"\x1b\[([\d;]*)m([XO])", out) == [("1;36", "X"), ("1;7;35", "O")]
