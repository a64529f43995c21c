"""Tic-tac-toe: the 3,3,3 game of `mnk.py`, where `place_stone` has the rules.

Action `i` marks cell `i`. `examples/alphazero.py` has the whole game on one screen.
"""

import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from azjax.games import mnk
from azjax.games.base import Game
from azjax.games.mnk import find_lines
from azjax.games.square import State

LINES = find_lines(3, 3, 3)  # The eight ways to win.


def from_board(board: Sequence[int] | np.ndarray) -> State:
    """Returns the state of a board of nine numbers: 1 = X, -1 = O, 0 = empty."""
    cells = np.asarray(board)
    if cells.shape != (9,) or not np.isin(cells, (-1, 0, 1)).all():
        raise ValueError(
            f"a board is 9 numbers, row by row, 1 = X, -1 = O and 0 = empty, not {board}: pass a "
            "flat list such as [1, 0, 0, 0, -1, 0, 0, 0, 0]"
        )
    count_x, count_o = int((cells == 1).sum()), int((cells == -1).sum())
    to_move = count_x - count_o
    wins = [bool((cells[LINES] == mark).all(axis=1).any()) for mark in (1, -1)]
    if to_move not in (0, 1) or wins[to_move]:
        raise ValueError(
            f"the board {cells.tolist()} cannot occur: X moves first, the players take turns, and "
            "three in a row end a game"
        )
    over = any(wins) or count_x + count_o == 9
    return State(jnp.asarray(cells, jnp.int8), jnp.int8(to_move), jnp.asarray(over))


@functools.cache
def make() -> Game:
    """Returns the game; repeated calls return the same object."""
    return mnk.make(3, 3, 3)._replace(name="tic_tac_toe")
