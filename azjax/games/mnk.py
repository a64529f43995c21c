"""m,n,k games: k in a row on a board of m rows and n columns; action `i` marks cell `i`."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import square
from azjax.games.base import Display, Game, Symmetries, one_per_size


def place_stone(
    state: square.State, cell: jax.Array, lines: np.ndarray
) -> tuple[square.State, jax.Array]:
    """Places the mover's stone, which wins if it fills one of the lines `[L, length]`."""
    mark = 1 - 2 * state.player
    board = state.board.at[cell].set(mark)
    won = jnp.any(jnp.all(board[lines] == mark, axis=1))
    return square.State(board, 1 - state.player, won | jnp.all(board != 0)), won.astype(jnp.float32)


@one_per_size
def make(rows: int = 3, columns: int = 3, in_a_row: int = 3) -> Game:
    """Returns the game of the given size; repeated calls return the same object.

    The first player with `in_a_row` marks in a row wins.
    """
    check_size("mnk", rows, columns, in_a_row)
    size, cells = (rows, columns, in_a_row), rows * columns
    lines = find_lines(*size)
    return square.make_game(
        (rows, columns),
        num_actions=cells,
        legal_actions=lambda state: (state.board == 0) & ~state.over,
        move=lambda state, action: place_stone(state, action, lines),
        name="mnk" if size == (3, 3, 3) else f"mnk:{rows}x{columns}x{in_a_row}",
        max_plies=cells,
        init=lambda: square.start(np.zeros(cells)),
        symmetries=symmetries(rows, columns),
        most_positions=square.bound_positions([math.comb(cells, n) for n in range(cells + 1)]),
        display=display(rows, columns),
    )


def find_lines(rows: int, columns: int, length: int) -> np.ndarray:
    """Returns the cells of all lines, `[L, length]`: horizontal, vertical and diagonal."""
    steps = np.arange(length)[:, None]
    lines = []
    for direction in ((0, 1), (1, 0), (1, 1), (1, -1)):
        for first in np.ndindex(rows, columns):
            row, column = (np.asarray(first) + steps * direction).T
            if row[-1] < rows and 0 <= column[-1] < columns:
                lines.append(row * columns + column)
    return np.array(lines if length > 1 else lines[: rows * columns])  # One direction is enough.


def symmetries(rows: int, columns: int) -> Symmetries:
    """Returns the rotations and reflections of the board."""
    grid = np.arange(rows * columns).reshape(rows, columns)
    turns = [np.rot90(grid, k) for k in range(4)]
    copies = [copy for copy in (*turns, *(turn.T for turn in turns)) if copy.shape == grid.shape]
    different = dict.fromkeys(tuple(copy.ravel().tolist()) for copy in copies)
    cells = np.array([*different], np.int32)  # Some copies of a single row are equal.
    return Symmetries(cells=cells, actions=cells)


def display(rows: int, columns: int) -> Display:
    """Returns the display; in its text, empty cells show their names."""
    names = square.cell_names(rows, columns)
    width = max(map(len, names))

    def render(state: square.State) -> str:
        marks = np.asarray(state.board).tolist()
        cells = [
            f"{'XO'[mark == -1] if mark else name:>{width}}"
            for mark, name in zip(marks, names, strict=True)
        ]
        texts = [" " + " | ".join(row) for row in np.reshape(cells, (rows, columns))]
        return ("\n" + "+".join(["-" * (width + 2)] * columns) + "\n").join(texts)

    return square.make_display((rows, columns), names, render=render, cell_size=40)


def check_size(name: str, rows: int, columns: int, in_a_row: int) -> None:
    """Raises ValueError if a board is too small or too large, or a line does not fit on it."""
    square.check_board(name, rows, columns)
    longest = max(rows, columns)
    if not 1 <= in_a_row <= longest:
        raise ValueError(
            f"{in_a_row} in a row do not fit on {rows} by {columns} in {name}: use 1 to {longest}"
        )
