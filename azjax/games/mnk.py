"""m,n,k games: k in a row on a board of m rows and n columns; action `i` marks cell `i`."""

import functools
import math

import jax
import numpy as np

from azjax import drawing
from azjax.games.base import Game, Symmetries
from azjax.games.display import Display
from azjax.games.in_a_row import check_size, empty_board, find_lines, set_stone
from azjax.games.square import ENCODINGS, State, bound_positions, cell_names, observation_planes

_SIZE = 3, 3, 3


def make(rows: int = _SIZE[0], columns: int = _SIZE[1], in_a_row: int = _SIZE[2]) -> Game:
    """Returns the game of the given size; repeated calls return the same object.

    Args:
      rows: rows of the board.
      columns: columns of the board.
      in_a_row: the number of marks in a row that wins.

    Raises:
      ValueError: if the board is too small or too large, or the line does not fit on it.
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
