"""Components of games with stones on a grid: state, planes, symmetries, cell names, text."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import did_you_mean

ENCODINGS = ("absolute", "relative")  # The encodings of `observation_planes`.


class State(NamedTuple):
    """A position.

    Attributes:
      board: `int8 [rows * columns]`, row-major, row 0 on top: 1 = X, -1 = O, 0 = empty.
      player: `int8 []`, who is to move: 0 = X, 1 = O.
      over: `bool []`, whether a player has won or no move is left.
    """

    board: jax.Array
    player: jax.Array
    over: jax.Array


def observation_planes(
    board: jax.Array, player: jax.Array, board_shape: tuple[int, int], encoding: str
) -> jax.Array:
    """Encodes a board of stones as planes `bool [H, W, C]`, in one of the `ENCODINGS`.

    Args:
      board: `int8 [H * W]`, 1 and -1 for the stones of players 0 and 1.
      player: `int8 []`, who is to move.
      board_shape: `(H, W)`.
      encoding: `"absolute"`: first player's stones, second player's stones, and whether the
        first player is to move. `"relative"`: the mover's stones, the opponent's.

    Raises:
      ValueError: if the encoding has another name.
    """
    if encoding not in ENCODINGS:
        names = " or ".join(map(repr, ENCODINGS))
        meant = did_you_mean(encoding, ENCODINGS)
        raise ValueError(f"unknown encoding {encoding!r}: use {names}{meant}")
    mover = 1 - 2 * player if encoding == "relative" else 1
    planes = [board == mover, board == -mover]
    if encoding == "absolute":
        planes.append(jnp.full(board.shape, player == 0))
    return jnp.stack(planes, axis=-1).reshape(*board_shape, len(planes))


def diagonals(n: int) -> np.ndarray:
    """Returns `int32 [4, n * n]`: identity, half turn, and reflections in both diagonals."""
    grid = np.arange(n * n, dtype=np.int32).reshape(n, n)
    turned = grid[::-1, ::-1]
    return np.stack([copy.ravel() for copy in (grid, turned, grid.T, turned.T)])


def bound_positions(fillings: Sequence[int]) -> int:
    """Returns an upper bound on the number of positions of a game.

    Args:
      fillings: for each number of stones, the number of sets of cells that they can occupy. Half
        of the stones, rounded down, belong to O.
    """
    return sum(ways * math.comb(n, n // 2) for n, ways in enumerate(fillings))


def cell_names(rows: int, columns: int) -> tuple[str, ...]:
    """Returns the names of the cells, row by row; `a1` is the upper left one."""
    return tuple(f"{column_name(c)}{r + 1}" for r in range(rows) for c in range(columns))


def column_name(column: int) -> str:
    """Returns the letter of a column, or two letters after `z`: `aa`."""
    first, last = divmod(column, 26)
    return (chr(ord("a") + first - 1) if first else "") + chr(ord("a") + last)


def render_board(board: np.ndarray, shape: tuple[int, int], slant: int = 0) -> str:
    """Returns a board of stones as text, with coordinates.

    Args:
      board: `[rows * columns]`, row by row.
      shape: rows and columns.
      slant: number of characters by which each row is shifted to the right of the one above.
    """
    names = [column_name(column) for column in range(shape[1])]
    marks = np.array([".", "X", "O"])[np.asarray(board).reshape(shape)]
    width = len(str(shape[0]))
    rows = [
        " " * (slant * r) + f"{r + 1:>{width}} " + " ".join(row)
        for r, row in enumerate(marks.tolist())
    ]
    return "\n".join([" " * (width + 1) + " ".join(names), *rows])


def on_cells(
    own: np.ndarray, other: np.ndarray, values: Any, labels: Any, last: Any
) -> dict[str, Any]:
    """Arranges values, labels and last action by cells; drops actions without a cell.

    Args:
      own: `int [cells]`, the mover's action on each cell; the mapping is its own inverse.
      other: `int [cells]`, the same for the opponent, who made the last move.
      values: `[A]`, or None.
      labels: `[A]`, or None.
      last: an action, or None.
    """
    return {
        "values": None if values is None else np.asarray(values)[own],
        "labels": None if labels is None else [labels[action] for action in own],
        "last": None if last is None or last >= len(other) else int(other[last]),
    }
