"""m,n,k games: k in a row on a board of m rows and n columns; action `i` marks cell `i`."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax.games.base import Game, Symmetries, where
from azjax.games.display import Display
from azjax.games.square import ENCODINGS, State, bound_positions, cell_names, observation_planes

_SIZE = 3, 3, 3
_WIDEST = 32  # Maximum number of rows, and of columns.


def make(rows: int = _SIZE[0], columns: int = _SIZE[1], in_a_row: int = _SIZE[2]) -> Game:
    """Returns the game of the given size; repeated calls return the same object.

    The first player with `in_a_row` marks in a row wins.
    """
    check_size("mnk", rows, columns, in_a_row)
    return _make(rows, columns, in_a_row)


@functools.cache
def _make(rows: int, columns: int, in_a_row: int) -> Game:
    size, cells = (rows, columns, in_a_row), rows * columns
    lines = find_lines(*size)

    def legal_actions(state: State) -> jax.Array:
        return (state.board == 0) & ~state.over

    def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        is_legal = legal_actions(state)[action] & (action >= 0) & (action < cells)
        return set_stone(state, action, is_legal, lines)

    def observe(state: State, encoding: str) -> jax.Array:
        return observation_planes(state.board, state.player, (rows, columns), encoding)

    return Game(
        name="mnk" if size == _SIZE else f"mnk:{rows}x{columns}x{in_a_row}",
        num_actions=cells,
        max_plies=cells,
        encodings=ENCODINGS,
        init=lambda: empty_board(cells),
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=observe,
        symmetries=symmetries(rows, columns),
        most_positions=bound_positions([math.comb(cells, n) for n in range(cells + 1)]),
        display=make_display(*size),
    )


def symmetries(rows: int, columns: int) -> Symmetries:
    """Returns the rotations and reflections of the board."""
    grid = np.arange(rows * columns).reshape(rows, columns)
    turns = [np.rot90(grid, k) for k in range(4)]
    copies = [copy for copy in (*turns, *(turn.T for turn in turns)) if copy.shape == grid.shape]
    different = dict.fromkeys(tuple(copy.ravel().tolist()) for copy in copies)
    cells = np.array([*different], np.int32)  # Some copies of a single row are equal.
    return Symmetries(cells=cells, actions=cells)


def make_display(rows: int, columns: int, in_a_row: int) -> Display:
    """Returns the display: text and pictures."""
    lines, names = find_lines(rows, columns, in_a_row), cell_names(rows, columns)
    width = max(map(len, names))

    def render(state: State) -> str:
        """Returns the board as text; empty cells show their names."""
        marks = np.asarray(state.board).tolist()
        cells = [
            f"{'XO'[mark == -1] if mark else name:>{width}}"
            for mark, name in zip(marks, names, strict=True)
        ]
        texts = [" " + " | ".join(row) for row in np.reshape(cells, (rows, columns))]
        return ("\n" + "+".join(["-" * (width + 2)] * columns) + "\n").join(texts)

    def draw(state, values=None, labels=None, last=None, size=40 * columns) -> drawing.Drawing:
        options = {"values": values, "labels": labels, "last": last, "size": size}
        return drawing.board(np.asarray(state.board), (rows, columns), lines, **options)

    return Display(render, draw, name_actions=lambda state: names)


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
    """Raises ValueError if a board is too small or too large, or a line does not fit on it."""
    longest = max(rows, columns)
    if not 1 <= min(rows, columns) <= longest <= _WIDEST:
        raise ValueError(
            f"{name} has no board of {rows} by {columns}: use 1 to {_WIDEST} rows and columns"
        )
    if not 1 <= in_a_row <= longest:
        raise ValueError(
            f"{in_a_row} in a row do not fit on {rows} by {columns} in {name}: use 1 to {longest}"
        )
