"""`azjax gtp`: conversations in the Go Text Protocol."""

import io
import sys

import jax
import pytest

from azjax import games
from azjax.cli import gtp, play
from azjax.players import random_agent
from guard import sharing
from refusals import check_program


def engine(name):
    game = games.make(name)
    return gtp.Engine(game, play.Machine(random_agent(game), jax.random.key(0)))


def test_a_game_is_played(monkeypatch, capsys):
    """Black's vertices count from the lower left."""
    lines = ["protocol_version", "7 boardsize 4 # a comment", "", "clear_board", "komi 7.5"]
    lines += ["play black A3", "genmove w", "undo", "play w C3", "showboard", "quit", "x"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    with sharing():
        assert gtp.main(["random", "--game", "othello:4"]) == 0
    replies = capsys.readouterr().out.split("\n\n")
    assert replies[:5] == ["= 2", "=7 ", "= ", "= ", "= "]
    assert replies[5] in ("= A4", "= C4", "= A2")  # Those that outflank the stone at B3.
    assert replies[6:8] == ["= ", "? illegal move"]
    assert replies[8].startswith("= \n  a b c d") and replies[9:] == ["= ", ""]


def test_vertices_skip_the_letter_i_except_in_hex():
    vertices = engine("othello:10")._vertices()
    assert (vertices[0], vertices[8], vertices[-2:]) == ("A10", "J10", ["K1", "PASS"])
    assert engine("hex:9")._vertices()[8] == "i1"


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


def test_other_games_are_refused(capfd):
    rows = [
        ("", "no player is named: write, for example, azjax gtp hex:6"),
        ("random --game connect_four:4x4", "connect_four:4x4 has no protocol: use Go, Hex or"),
    ]
    check_program(gtp.main, rows, capfd)
