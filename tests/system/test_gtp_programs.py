"""Whole games against real programs, GNU Go and GRhino, from both seats."""

import os
import re
import shutil
import subprocess
import sys

import jax
import pytest

from azjax import games
from azjax.players import random_agent
from azjax.players.arena import play_match
from azjax.players.gtp import gtp_agent

GNU_GO = "--mode gtp --level 1 --seed 1 --chinese-rules --play-out-aftermath --capture-all-dead"
PROGRAMS = {"othello": ("gtp-rhino", ""), "pgx:go_5x5": ("gnugo", GNU_GO)}


@pytest.fixture
def find(lacking):
    """`find(game) -> words`, the command of the program that plays a game."""

    def find(game):
        name, options = PROGRAMS[game]
        folders = f"{os.environ['PATH']}:/usr/games"  # Of Debian, not on every path.
        return [shutil.which(name, path=folders) or lacking(f"no {name}"), *options.split()]

    return find


class Player:
    """A program that answers commands of the Go Text Protocol."""

    def __init__(self, *words):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(words, stderr=subprocess.DEVNULL, text=True, **pipes)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._process.kill()
        self._process.communicate()

    def ask(self, line):
        print(line, file=self._process.stdin, flush=True)
        answer = "".join(iter(self._process.stdout.readline, "\n"))
        assert answer.startswith("="), (line, answer)
        return answer[1:].strip()


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("game", PROGRAMS)
def test_each_program_accepts_the_moves_of_the_other(game, seat, find):
    """Random moves have a seat. Othello's passes are forced: GRhino makes both players' itself."""
    size = games.make(game).board_shape[0]
    ours = Player(sys.executable, "-m", "azjax", "gtp", "random", "--game", game)
    with ours, Player(*find(game)) as theirs:
        for program in (ours, theirs):
            program.ask(f"boardsize {size}")
            program.ask("clear_board")
        moves = []
        while moves[-2:] != ["pass", "pass"]:
            color = "bw"[len(moves) % 2]
            mover, other = (ours, theirs) if len(moves) % 2 == seat else (theirs, ours)
            moves.append(mover.ask(f"genmove {color}").lower())
            is_made = moves[-1] == "pass" and (other is theirs and game == "othello")
            if moves[-2:] != ["pass", "pass"] and not is_made:
                other.ask(f"play {color} {moves[-1]}")
        boards = [program.ask("showboard").replace("+", ".") for program in (ours, theirs)]
    row = rf"^ *\d+ ({' '.join(['[.XO]'] * size)})"
    ours, theirs = (re.findall(row, board, re.MULTILINE) for board in boards)
    assert len(moves) > 9 and len(ours) == size and ours == theirs


def test_gnu_go_plays_a_match(find):
    game = games.make("pgx:go_5x5")
    opponent = gtp_agent(game, " ".join(find(game.name)))
    match = play_match(game, random_agent(game), opponent, 2, jax.random.key(0))
    assert match.moving_first[:3] == match.moving_second[:3] == (0, 0, 1)
