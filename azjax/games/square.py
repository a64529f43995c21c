"""What games of stones on a square grid share: the state, and how cells are called and drawn."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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


def render_board(board: np.ndarray, shape: tuple[int, int], slant: int = 0) -> str:
    """Draws a board of stones for a terminal, with its coordinates.

    Args:
      board: `[rows * columns]`, row by row.
      shape: rows and columns.
      slant: characters by which each row stands further to the right than the one above.
    """
    names = [column_name(column) for column in range(shape[1])]
    marks = np.array([".", "X", "O"])[np.asarray(board).reshape(shape)]
    width = len(str(shape[0]))
    rows = [
        " " * (slant * r) + f"{r + 1:>{width}} " + " ".join(row)
        for r, row in enumerate(marks.tolist())
    ]
    return "\n".join([" " * (width + 1) + " ".join(names), *rows])


def on_cells(cells: int, values=None, labels=None, last=None) -> dict[str, Any]:
    """Leaves out what belongs to an action after those of the cells, such as a pass."""
    return {
        "values": None if values is None else np.asarray(values)[:cells],
        "labels": None if labels is None else list(labels)[:cells],
        "last": None if last is None or last >= cells else last,
    }


def diagonals(n: int) -> np.ndarray:
    """Returns `int32 [4, n * n]`: the identity, half a turn, and both diagonals of a square."""
    grid = np.arange(n * n, dtype=np.int32).reshape(n, n)
    turned = grid[::-1, ::-1]
    return np.stack([image.ravel() for image in (grid, turned, grid.T, turned.T)])


def bound_positions(fillings: Sequence[int]) -> int:
    """Returns an upper bound of the positions of a game.

    Args:
      fillings: for each number of stones, the sets of cells that they may stand on. A half of
        the stones, rounded down, are O's.
    """
    return sum(ways * math.comb(n, n // 2) for n, ways in enumerate(fillings))
