"""Components of games with stones in a row: first position, moves, winning lines, sizes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import where
from azjax.games.square import State

_WIDEST = 32  # Maximum number of rows, and of columns.


def empty_board(cells: int) -> State:
    """Returns the empty board, X to move."""
    return State(jnp.zeros(cells, jnp.int8), jnp.zeros((), jnp.int8), jnp.zeros((), bool))


def set_stone(
    state: State, cell: jax.Array, is_legal: jax.Array, lines: np.ndarray
) -> tuple[State, jax.Array]:
    """Places the mover's stone; returns the new state and the mover's reward.

    Args:
      state: a position.
      cell: the cell of the stone; any number if the move is illegal.
      is_legal: `bool []`; if False, the state is returned unchanged.
      lines: `[L, length]`, the cells of each line that wins if one player fills it.
    """
    mark = 1 - 2 * state.player
    board = state.board.at[cell].set(mark)
    won = jnp.any(jnp.all(board[lines] == mark, axis=1))
    moved = state._replace(board=board, player=1 - state.player, over=won | jnp.all(board != 0))
    after = where(is_legal, moved, state)
    return after, (is_legal & won).astype(jnp.float32)


@functools.cache
def find_lines(rows: int, columns: int, length: int) -> np.ndarray:
    """Returns the cells of all lines, `[L, length]`: horizontal, vertical and diagonal."""
    steps = np.arange(length)[:, None]
    lines = []
    for direction in ((0, 1), (1, 0), (1, 1), (1, -1)):
        for start in np.ndindex(rows, columns):
            row, column = (np.asarray(start) + steps * direction).T
            if row[-1] < rows and 0 <= column[-1] < columns:
                lines.append(row * columns + column)
    return np.array(lines if length > 1 else lines[: rows * columns])


def check_size(name: str, rows: int, columns: int, in_a_row: int) -> None:
    """Checks the size of a board and the length of its lines.

    Raises:
      ValueError: if the board is too small or too large, or the line does not fit on it.
    """
    longest = max(rows, columns)
    if not 1 <= min(rows, columns) <= longest <= _WIDEST:
        raise ValueError(
            f"{name} has no board of {rows} by {columns}: use 1 to {_WIDEST} rows and columns"
        )
    if not 1 <= in_a_row <= longest:
        raise ValueError(
            f"{in_a_row} in a row do not fit on {rows} by {columns} in {name}: use 1 to {longest}"
        )
