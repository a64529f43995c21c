"""What games of stones on a square grid share: the state, and how cells are called and drawn."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from azjax import drawing


class Stones(NamedTuple):
    """A position.

    Attributes:
      board: `int8 [rows * columns]`, row-major, row 0 on top: 1 = X, -1 = O, 0 = empty.
      player: `int8 []`, who is to move: 0 = X, 1 = O.
      over: `bool []`, whether somebody has won or the board is full.
    """

    board: jax.Array
    player: jax.Array
    over: jax.Array

    def draw(self, values=None, labels=None, last=None, size: float = 0) -> drawing.Drawing:
        """Draws the position, each game in its own way.

        Args:
          values: `[A]`, in [0, 1], one an action: a heat map.
          labels: `[A]`, text.
          last: the last action, which is marked.
          size: width in pixels; a game has its own if left out.
        """
        raise NotImplementedError("a game's positions are of a type from make_state_type")

    def _repr_html_(self) -> str | None:
        return drawing.draw_states(type(self).draw, self, np.ndim(self.player))


def make_state_type(draw: Callable[..., drawing.Drawing]) -> type[Stones]:
    """Makes the type of a game's positions, which are drawn so."""
    return type("State", (Stones,), {"__slots__": (), "__doc__": Stones.__doc__, "draw": draw})


def cell_names(rows: int, columns: int) -> tuple[str, ...]:
    """Returns what players call the cells, row by row: `a1` is the upper left one."""
    return tuple(f"{column_name(c)}{r + 1}" for r in range(rows) for c in range(columns))


def column_name(column: int) -> str:
    """Returns a letter, and after `z` two of them: `aa`."""
    first, last = divmod(column, 26)
    return (chr(ord("a") + first - 1) if first else "") + chr(ord("a") + last)


def render_board(board: np.ndarray, shape: tuple[int, int]) -> str:
    """Draws a board of stones for a terminal, with its coordinates."""
    names = [column_name(column) for column in range(shape[1])]
    marks = np.array([".", "X", "O"])[np.asarray(board).reshape(shape)]
    width = len(str(shape[0]))
    rows = [f"{r + 1:>{width}} " + " ".join(row) for r, row in enumerate(marks.tolist())]
    return "\n".join([" " * (width + 1) + " ".join(names), *rows])


def diagonals(rows: int, columns: int) -> np.ndarray:
    """Returns `int32 [G, cells]`: the identity, half a turn, and of a square both diagonals."""
    grid = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    images = [grid, grid[::-1, ::-1]]
    images += [grid.T, grid[::-1, ::-1].T] if rows == columns else []
    return np.stack([image.ravel() for image in images])
