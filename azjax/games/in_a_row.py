"""What games of stones in a row share: the state, the lines that win, and sizes."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing

_WIDEST = 32  # Rows or columns.


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


def begin(state_type: type[Stones], cells: int) -> Stones:
    """Returns the empty board, X to move."""
    board = jnp.zeros(cells, jnp.int8)
    return state_type(board, jnp.zeros((), jnp.int8), jnp.zeros((), bool))


def set_stone(
    state: Stones, cell: jax.Array, is_legal: jax.Array, lines: np.ndarray
) -> tuple[Stones, jax.Array]:
    """Sets the mover's stone. Returns the new state and the mover's reward.

    Args:
      state: a position.
      cell: where; any number if the move is illegal.
      is_legal: `bool []`; if False, the state stays as it is.
      lines: `[L, length]`, of which a full one wins.
    """
    mark = 1 - 2 * state.player
    board = state.board.at[cell].set(mark)
    won = jnp.any(jnp.all(board[lines] == mark, axis=1))
    moved = state._replace(board=board, player=1 - state.player, over=won | jnp.all(board != 0))
    after = jax.tree.map(lambda new, old: jnp.where(is_legal, new, old), moved, state)
    return after, jnp.where(is_legal & won, 1.0, 0.0)


@functools.cache
def find_lines(rows: int, columns: int, length: int) -> np.ndarray:
    """Returns the cells of all lines of a length, `[L, length]`: across, down and diagonal."""
    steps = np.arange(length)[:, None]
    lines = []
    for direction in ((0, 1), (1, 0), (1, 1), (1, -1)):
        for start in np.ndindex(rows, columns):
            row, column = (np.asarray(start) + steps * direction).T
            if row[-1] < rows and 0 <= column[-1] < columns:
                lines.append(row * columns + column)
    return np.array(lines if length > 1 else lines[: rows * columns])


def bound_positions(fillings: Sequence[int]) -> int:
    """Returns an upper bound of the positions of a game.

    Args:
      fillings: for each number of stones, the sets of cells that they may stand on. A half of
        the stones, rounded down, are O's.
    """
    return sum(ways * math.comb(n, n // 2) for n, ways in enumerate(fillings))


def check_size(name: str, rows: int, columns: int, in_a_row: int) -> None:
    """Refuses boards that no game is played on.

    Raises:
      ValueError: naming the size.
    """
    longest = max(rows, columns)
    if not 1 <= min(rows, columns) <= longest <= _WIDEST:
        raise ValueError(
            f"{name} has no board of {rows} by {columns}: use 1 to {_WIDEST} rows and columns"
        )
    if not 1 <= in_a_row <= longest:
        raise ValueError(
            f"no {in_a_row} in a row fit on {rows} by {columns} in {name}: use 1 to {longest}"
        )


def make_state_type(draw: Callable[..., drawing.Drawing]) -> type[Stones]:
    """Makes the type of a game's positions, which are drawn so."""
    return type("State", (Stones,), {"__slots__": (), "__doc__": Stones.__doc__, "draw": draw})
