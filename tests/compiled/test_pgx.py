"""The games of pgx satisfy the contract and have the rules of the same games in azjax.

`tests/system/test_games.py` has the larger games.
"""

import sys

import numpy as np
import pytest

import guard
from azjax import games
from azjax.games import from_pgx
from azjax.games.square import State as Stones
from refusals import assert_refused
from side_by_side import assert_same_rules


@pytest.fixture(autouse=True)
def _shared():
    """The games of pgx are jitted functions of their own."""
    with guard.sharing():
        yield


def test_tic_tac_toe_has_the_same_rules():
    assert_same_rules("tic_tac_toe", "tic_tac_toe")


def test_chess_has_the_same_names_of_moves_for_both_players():
    """The board is from the perspective of the second player, whose pieces are lowercase."""
    game = games.make("pgx:gardner_chess")
    first = game.init()
    second = first.replace(current_player=1 - first.current_player)
    assert [int(game.player(state)) for state in (first, second)] == [0, 1]
    board = "5 r n b q k\n4 p p p p p\n3 . . . . .\n2 P P P P P\n1 R N B Q K\n  a b c d e"
    assert game.display.render(first) == game.display.render(second) == board
    names, seen = game.display.name_actions(first), game.display.name_actions(second)
    legal = np.flatnonzero(game.legal_actions(first))
    white = "a2a3", "b1a3", "b1c3", "b2b3", "c2c3", "d2d3", "e2e3"
    black = "a4a3", "b5a3", "b5c3", "b4b3", "c4c3", "d4d3", "e4e3"
    assert {names[a] for a in legal} == set(white)
    assert {seen[a] for a in legal} == set(black)
    for called, way in ((names, "a4a5"), (seen, "a2a1")):
        promotions = [name for name in called if name.startswith(way)]
        assert sorted(promotions) == [way, f"{way}b", f"{way}n", f"{way}r"]


def test_go_has_its_own_coordinates():
    """The lower left is a1, and the letter i is skipped."""
    display, board = from_pgx._go_display(9), np.zeros(81, np.int8)
    board[80] = 1
    state = Stones(board, np.int8(0), np.bool_(False))
    names = display.name_actions(state)
    assert (names[0], names[8], *names[-2:]) == ("a9", "j9", "j1", "pass")
    first, *_, last = display.render(state).splitlines()
    assert (first, last) == ("  a b c d e f g h j", "1 . . . . . . . . X")


def test_refusals(monkeypatch):
    """Also, pgx is imported only when one of its games is named."""
    assert_refused(
        (
            lambda: games.make("pgx:backgammon"),
            "not one of the games of pgx for two players without",
        ),
        (lambda: games.make("pgx:go_5x6"), "pgx:go_5x6"),
    )
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ValueError, match=r"needs the package pgx: .*pip install pgx"):
        from_pgx.make.__wrapped__("tic_tac_toe")
