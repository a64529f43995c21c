"""m,n,k games: k in a row on a board of m rows and n columns; action `i` marks cell `i`."""

import functools
import math

import jax
import numpy as np

from azjax import drawing
from azjax.games.base import ENCODINGS, Game, Symmetries, observation_planes
from azjax.games.in_a_row import begin, check_size, find_lines, set_stone
from azjax.games.square import Stones, bound_positions, make_state_type

_SIZE = 3, 3, 3


@functools.cache
def state_type(rows: int, columns: int, in_a_row: int) -> type[Stones]:
    """Returns the type of a game's positions, every time the same."""
    lines = find_lines(rows, columns, in_a_row)

    def draw(state, values=None, labels=None, last=None, size=40 * columns) -> drawing.Drawing:
        look = {"values": values, "labels": labels, "last": last, "size": size}
        return drawing.board(np.asarray(state.board), (rows, columns), lines, **look)

    return make_state_type(draw)


def make(rows: int = _SIZE[0], columns: int = _SIZE[1], in_a_row: int = _SIZE[2]) -> Game:
    """Returns the record of a game, every time the same.

    Args:
      rows: of the board.
      columns: of the board.
      in_a_row: marks of one player in a line that win.

    Raises:
      ValueError: if there is no such board, or no such line on it.
    """
    check_size("mnk", rows, columns, in_a_row)
    return _make(rows, columns, in_a_row)


@functools.cache
def _make(rows: int, columns: int, in_a_row: int) -> Game:
    size, cells = (rows, columns, in_a_row), rows * columns
    lines = find_lines(*size)
    position = state_type(rows, columns, in_a_row)

    def legal_actions(state: Stones) -> jax.Array:
        return (state.board == 0) & ~state.over

    def step(state: Stones, action: jax.Array) -> tuple[Stones, jax.Array]:
        is_legal = legal_actions(state)[action] & (action >= 0) & (action < cells)
        return set_stone(state, action, is_legal, lines)

    def observe(state: Stones, encoding: str) -> jax.Array:
        return observation_planes(state.board, state.player, (rows, columns), encoding)

    def render(state: Stones) -> str:
        return _render(np.asarray(state.board).reshape(rows, columns))

    return Game(
        name="mnk" if size == _SIZE else f"mnk:{rows}x{columns}x{in_a_row}",
        num_actions=cells,
        board_shape=(rows, columns),
        max_plies=cells,
        most_positions=bound_positions([math.comb(cells, n) for n in range(cells + 1)]),
        encodings=ENCODINGS,
        init=lambda: begin(position, cells),
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=observe,
        render=render,
        symmetries=symmetries(rows, columns),
        draw=position.draw,
    )


def _render(board: np.ndarray) -> str:
    """Draws the board; empty cells show their action's number."""
    width = len(str(board.size - 1))
    cells = np.array(
        [
            f"{'XO'[mark == -1] if mark else i:>{width}}"
            for i, mark in enumerate(board.ravel().tolist())
        ]
    )
    rows = [" " + " | ".join(row) for row in cells.reshape(board.shape)]
    return ("\n" + "+".join(["-" * (width + 2)] * board.shape[1]) + "\n").join(rows)


def symmetries(rows: int, columns: int) -> Symmetries:
    """Returns the rotations and reflections of the board; cells are actions."""
    grid = np.arange(rows * columns).reshape(rows, columns)
    turns = [np.rot90(grid, k) for k in range(4)]
    images = [image for image in (*turns, *(turn.T for turn in turns)) if image.shape == grid.shape]
    different = dict.fromkeys(tuple(image.ravel().tolist()) for image in images)
    cells = np.array([*different], np.int32)  # Of a single row, some images are the same.
    return Symmetries(cells=cells, actions=cells)
