"""Games against published numbers, and with real programs, from both seats."""

import itertools
import os
import re
import runpy
import shlex
import shutil
import sys

import jax
import pytest

import azjax
from azjax import games
from azjax.games import solver
from azjax.games.check import check_game
from azjax.games.tic_tac_toe import from_board
from azjax.players import random_agent
from azjax.players.arena import play_match
from reference import Position, minimax
from reference import tic_tac_toe as tic_tac_toe_rules
from source import ROOT


def test_from_board_accepts_exactly_the_reachable_boards():
    reachable = {p.board: p for p in set().union(*minimax.reachable(tic_tac_toe_rules))}
    assert len(reachable) == 5478
    for board in itertools.product((-1, 0, 1), repeat=9):
        if board in reachable:
            state = jax.device_get(from_board(board))
            found = Position(tuple(state.board.tolist()), int(state.player), bool(state.over))
            assert found == reachable[board]
        else:
            with pytest.raises(ValueError):
                from_board(board)


@pytest.mark.parametrize(("name", "value"), [("hex:3", 1), ("othello:4", -1)])
def test_games_have_the_published_values(name, value):
    game = games.make(name)
    solution = solver.solve(game)
    assert solution.num_states <= game.most_positions
    assert solution.values[0] == value  # Of the start, for the first player.
    assert (solution.values[solution.decisions] != 0).all() == (name != "othello:4")


def test_games_satisfy_the_contract():
    ours = "connect_four:3x5", "hex:3", "breakthrough:5x3", "mnk:1x4x2", "othello:4", "backgammon"
    for name in (*ours, "pgx:go_3x3"):
        check_game(games.make(name), num_games=16)


# Programs that speak the Go Text Protocol, with `examples/gtp.py`.


EXAMPLE = ROOT / "examples/gtp.py"
GTP = runpy.run_path(str(EXAMPLE), run_name="gtp")
start, ask = GTP["start"], GTP["ask"]
GNU_GO = "--mode gtp --level 1 --seed 1 --chinese-rules --play-out-aftermath --capture-all-dead"
PROGRAMS = {"othello": ("gtp-rhino", ""), "go_5x5": ("gnugo", GNU_GO)}


@pytest.fixture
def find(lacking):
    """`find(game) -> command` of the program that plays a game."""

    def find(game):
        name, options = PROGRAMS[game]
        folders = f"{os.environ['PATH']}:/usr/games"  # Of Debian, not on every path.
        return f"{shutil.which(name, path=folders) or lacking(f'no {name}')} {options}"

    return find


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("game", PROGRAMS)
def test_each_program_accepts_the_moves_of_the_other(game, seat, find):
    """Othello's passes are forced: GRhino makes those of both players itself."""
    size = azjax.load(game).game.board_shape[0]
    command = shlex.join([sys.executable, str(EXAMPLE), game])
    with start(command) as ours, start(find(game)) as theirs:
        for program in (ours, theirs):
            ask(program, f"boardsize {size}")
            ask(program, "clear_board")
        moves = []
        while moves[-2:] != ["pass", "pass"]:
            color = "bw"[len(moves) % 2]
            mover, other = (ours, theirs) if len(moves) % 2 == seat else (theirs, ours)
            moves.append(ask(mover, f"genmove {color}").lower())
            is_made = moves[-1] == "pass" and (other is theirs and game == "othello")
            if moves[-2:] != ["pass", "pass"] and not is_made:
                ask(other, f"play {color} {moves[-1]}")
        boards = [ask(program, "showboard").replace("+", ".") for program in (ours, theirs)]
    row = rf"^ *\d+ ({' '.join(['[.XO]'] * size)})"
    ours, theirs = (re.findall(row, board, re.MULTILINE) for board in boards)
    assert len(moves) > 9 and len(ours) == size and ours == theirs


def test_gnu_go_plays_a_match(find):
    game = games.make("pgx:go_5x5")
    with start(find("go_5x5")) as program:
        opponent = GTP["program_agent"](game, program)
        match = play_match(game, random_agent(game), opponent, 2, jax.random.key(0))
    assert match.moving_first[:3] == match.moving_second[:3] == (0, 0, 1)
