"""The games of pgx satisfy the contract and have the rules of the same games in azjax.

`tests/system/test_games.py` has the larger games.
"""

import base64
import sys

import pytest

import guard
from azjax import games
from azjax.games import from_pgx
from refusals import assert_refused
from side_by_side import assert_same_rules

pytest.importorskip("pgx")


@pytest.fixture(autouse=True)
def _shared():
    """The games of pgx are jitted functions of their own."""
    with guard.sharing():
        yield


def test_tic_tac_toe_has_the_same_rules():
    assert_same_rules("tic_tac_toe", "tic_tac_toe")


def test_chess_has_the_picture_of_pgx():
    game = games.make("pgx:gardner_chess")
    (image,) = game.display.draw(game.init(), size=90).element
    content = base64.b64decode(image.get("href").partition("base64,")[2])
    assert content.decode() == game.init().to_svg() and image.get("width") == "90"


def test_refusals(monkeypatch):
    """Also, pgx is imported only when one of its games is named."""
    assert_refused(
        (lambda: games.make("pgx:backgammon"), "pgx:backgammon is not a two-player game of perf"),
        (lambda: games.make("pgx:go_5x6"), "pgx:go_5x6"),
    )
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ValueError, match=r"needs the package pgx: .*pip install pgx"):
        from_pgx.make.__wrapped__("tic_tac_toe")
