"""Tic-tac-toe, the 3,3,3 game; action `i` marks cell `i`, row by row."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax.games import mnk
from azjax.games.base import Game
from azjax.games.mnk import find_lines
from azjax.games.square import State

LINES = find_lines(3, 3, 3)  # The eight ways to win.


def board_text(states: State) -> str:
    """Returns the boards of states `[..., 9]` as one string of the characters `.XO`."""
    return "".join(".XO"[mark] for mark in np.ravel(states.board))


def from_board(board: Sequence[int] | np.ndarray) -> State:
    """Returns the state of a board; the numbers of X and O determine the player to move.

    Args:
      board: nine values, row-major: 1 = X, -1 = O, 0 = empty.

    Raises:
      ValueError: if the position is unreachable, or while tracing.
    """
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(board)):
        raise ValueError(
            "from_board checks a position on the host, so it cannot be traced: call it outside of "
            "jit and vmap and pass the states, or play moves inside with game.step"
        )
    cells = np.asarray(board)
    if cells.shape != (9,):
        raise ValueError(
            f"a board is 9 numbers, row by row, but this one has shape {cells.shape}: "
            "pass a flat list such as [1, 0, 0, 0, -1, 0, 0, 0, 0]"
        )
    if not np.isin(cells, (-1, 0, 1)).all():
        bad = sorted({str(x) for x in cells[~np.isin(cells, (-1, 0, 1))]})
        raise ValueError(f"cell value {bad[0]} is not allowed: use 1 = X, -1 = O, 0 = empty")
    count_x, count_o = int((cells == 1).sum()), int((cells == -1).sum())
    to_move = count_x - count_o
    if to_move not in (0, 1):
        raise ValueError(
            f"{count_x} X and {count_o} O cannot occur: X moves first, so the counts are equal, or "
            "X has one more"
        )
    wins = [bool((cells[LINES] == mark).all(axis=1).any()) for mark in (1, -1)]
    if all(wins):
        raise ValueError("both X and O have three in a row: a game ends at the first")
    if wins[to_move]:
        winner, loser = "XO"[to_move], "OX"[to_move]
        raise ValueError(
            f"{winner} has three in a row but {loser} moved after that: "
            f"remove one {loser} from the board"
        )
    over = any(wins) or count_x + count_o == 9
    return State(jnp.asarray(cells, jnp.int8), jnp.int8(to_move), jnp.asarray(over))


def make() -> Game:
    """Returns the game."""
    return mnk.make(3, 3, 3)._replace(name="tic_tac_toe")
