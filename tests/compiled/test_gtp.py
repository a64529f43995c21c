"""`azjax gtp`: conversations in the Go Text Protocol."""

import io
import shlex
import sys

import jax
import numpy as np
import pytest

from azjax import games
from azjax.cli import gtp, play
from azjax.players import ProgramError, random_agent
from azjax.players.gtp import gtp_agent, kind_of
from guard import sharing
from refusals import assert_refused, check_program


def engine(name):
    game = games.make(name)
    return gtp.Engine(game, play.Machine(random_agent(game), jax.random.key(0)))


def test_a_game_is_played(monkeypatch, capsys):
    """In Othello, the upper left is a1."""
    lines = ["protocol_version", "7 boardsize 4 # a comment", "", "clear_board"]
    lines += ["play black A2", "showboard", "genmove w", "undo", "play w C3", "quit", "x"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    with sharing():
        assert gtp.main(["random", "--game", "othello:4"]) == 0
    replies = capsys.readouterr().out.split("\n\n")
    assert replies[:4] == ["= 2", "=7 ", "= ", "= "]
    assert replies[4] == "= \n  a b c d\n1 . . . .\n2 X X X .\n3 . X O .\n4 . . . ."
    assert replies[5] in ("= a1", "= c1", "= a3")  # Those that outflank the stone at b2.
    assert replies[6:] == ["= ", "? illegal move", "= ", ""]


@pytest.mark.compiles(1)
@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("boardsize 5", "? unacceptable size\n"),
        ("3 undo", "?3 cannot undo\n"),
        ("genmove w", "? illegal move: it is the other color's turn\n"),
        ("genmove green", "? invalid color or coordinate\n"),
        ("play b", "? syntax error\n"),
        ("play b z9", "? illegal move\n"),
        ("known_command genmove", "= true\n"),
        ("known_command loadsgf", "= false\n"),
        ("loadsgf x", "? unknown command\n"),
        ("  # nothing", ""),
    ],
)
def test_replies(line, reply):
    assert engine("hex:3").answer(line) == reply


@pytest.mark.compiles(2)
def test_a_finished_game_of_hex_is_resigned_and_can_start_again():
    hex3 = engine("hex:3")
    for line in ("b a1", "w b1", "b a2", "w b2", "b a3"):
        assert hex3.answer(f"play {line}") == "= \n"
    assert hex3.answer("genmove w") == "= resign\n"
    assert [hex3.answer(line) for line in ("boardsize 3", "play b a1")] == ["= \n", "= \n"]


def test_any_number_of_passes_ends_a_game_of_go():
    with sharing():
        go = engine("pgx:go_3x3")
        for line in ("play b pass", "play w pass", "play b pass", "play b pass"):
            assert go.answer(line) == "= \n"
        assert go.answer("genmove b") == "= pass\n"
        assert go.answer("play b a1").startswith("? illegal move")


@pytest.mark.compiles(3)
def test_a_game_has_the_komi_of_its_rules():
    go = engine("pgx:go_3x3")
    replies = [go.answer(f"komi {number}") for number in ("7.5", "7.50", "6.5", "abc")]
    refused = "? unacceptable komi: the game is played with 7.5\n"
    assert replies == ["= \n", "= \n", refused, refused]
    assert engine("hex:3").answer("komi 0") == "? unknown command\n"


def test_the_seed_determines_the_game(monkeypatch, capsys):
    games_played = []
    for seed in (1, 1, 2):
        monkeypatch.setattr(sys, "stdin", io.StringIO("genmove b\ngenmove w\n" * 4))
        with sharing():
            assert gtp.main(["random", "--game", "hex:3", "--seed", str(seed)]) == 0
        games_played.append(capsys.readouterr().out)
    assert games_played[0] == games_played[1] != games_played[2]


def test_other_games_are_refused(capfd):
    rows = [
        ("", "no player is named: write, for example, azjax gtp hex:6"),
        ("random --game connect_four:4x4", "Protocol has no connect_four:4x4: use one such as"),
    ]
    check_program(gtp.main, rows, capfd)


SERVER = """
import sys
for line in sys.stdin:
    with open(sys.argv[1], "a") as file:
        print(line.strip(), file=file)
    print(f"= {'a2' if 'genmove' in line else ''}\\n", flush=True)
"""


@pytest.mark.compiles(3)
def test_a_program_is_told_positions_and_plays(tmp_path):
    """Colors take turns, and an illegal answer becomes the last legal action."""
    heard, game = tmp_path / "heard", games.make("hex:3")
    agent = gtp_agent(game, shlex.join([sys.executable, "-c", SERVER, str(heard)]))
    states = [game.init()]
    for action in (3, 5):  # At a2 and b3: White sees the board mirrored.
        states.append(game.step(states[-1], action)[0])
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    assert agent.act(None, None, batch).action.tolist() == [3, 8, 8]
    lines = heard.read_text().split("\n")
    assert lines[:3] == ["boardsize 3", "clear_board", "genmove b"]
    assert lines[3:6] == ["clear_board", "play b a2", "genmove w"]
    assert lines[6:10] == ["clear_board", "play b a2", "play w b3", "genmove b"]


def test_a_program_for_go_is_told_the_komi_and_the_stones_of_each_color(tmp_path):
    """The planes of Go begin with the stones of the player to move."""
    heard = tmp_path / "heard"
    with sharing():
        game = games.make("pgx:go_5x5")
        agent = gtp_agent(game, shlex.join([sys.executable, "-c", SERVER, str(heard)]))
        states = jax.tree.map(lambda leaf: leaf[None], game.step(game.init(), 0)[0])
        agent.act(None, None, states)
    lines = ["boardsize 5", "komi 7.5", "clear_board", "play b a5", "genmove w"]
    assert heard.read_text().splitlines() == lines


def test_a_program_that_stops_plays_no_action():
    """An error in a callback would be printed with its traceback."""
    script = "for line in iter(input, 'genmove b'): print('= \\n', flush=True)"
    agent = gtp_agent(game := games.make("hex:3"), shlex.join([sys.executable, "-c", script]))
    batch = jax.tree.map(lambda leaf: np.stack([leaf] * 2), game.init())
    agent.check()
    for _ in range(2):
        assert agent.act(None, None, batch).action.tolist() == [-1, -1]
        assert_refused((agent.check, "does not answer 'genmove b' (it ended)"), error=ProgramError)


def test_programs_that_cannot_play_are_refused():
    silent = shlex.join([sys.executable, "-c", "pass"])
    assert_refused(
        (lambda: gtp_agent(games.make("hex:3"), "no-such-program"), "cannot be started"),
        (
            lambda: gtp_agent(games.make("hex:3"), ""),
            "gtp: cannot be started (it names no",
        ),
        (lambda: gtp_agent(games.make("othello:4"), silent), "use Go or Hex"),
        (lambda: gtp_agent(games.make("hex_swap:3"), silent), "hex_swap:3 cannot be given a"),
        (lambda: gtp_agent(games.make("tic_tac_toe"), silent), "Protocol has no tic_tac_toe"),
        (lambda: kind_of(games.make("hex:3")._replace(name="pgx:hex")), "has no pgx:hex"),
    )
