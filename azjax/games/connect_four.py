"""Connect Four of any size; action `i` drops a stone in column `i`."""

import functools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import square
from azjax.games.base import Display, Game, Positions, Symmetries, one_per_size
from azjax.games.mnk import check_size, find_lines, place_stone

POSITIONS = pathlib.Path(__file__).with_name("connect_four_positions.npz")


@one_per_size
def make(rows: int = 6, columns: int = 7, in_a_row: int = 4) -> Game:
    """Returns the game of the given size; repeated calls return the same object.

    The first player with `in_a_row` stones in a row wins.
    """
    check_size("connect_four", rows, columns, in_a_row)
    size, lines = (rows, columns, in_a_row), find_lines(rows, columns, in_a_row)
    name = "connect_four"
    if size != (6, 7, 4):
        name += f":{rows}x{columns}" + (f"x{in_a_row}" if in_a_row != 4 else "")

    def legal_actions(state: square.State) -> jax.Array:
        return (state.board[:columns] == 0) & ~state.over

    def move(state: square.State, action: jax.Array) -> tuple[square.State, jax.Array]:
        height = jnp.sum(state.board.reshape(rows, columns)[:, action] != 0)
        return place_stone(state, (rows - 1 - height) * columns + action, lines)

    return square.make_game(
        (rows, columns),
        columns,
        legal_actions,
        move,
        name=name,
        max_plies=rows * columns,
        init=lambda: square.start(np.zeros(rows * columns)),
        symmetries=_symmetries(rows, columns),
        most_positions=square.bound_positions(_fillings(rows, columns)),
        positions=positions if size == (6, 7, 4) else None,
        display=display(rows, columns),
    )


def _fillings(rows: int, columns: int) -> list[int]:
    """Counts fillings by number of stones: coefficients of `(1 + x + ... + x^rows)^columns`."""
    ways = [1]
    for _ in range(columns):
        ways = np.convolve(np.array(ways, object), np.ones(rows + 1, int)).tolist()
    return ways


def _symmetries(rows: int, columns: int) -> Symmetries:
    across = np.arange(columns, dtype=np.int32)
    cells = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    count = min(columns, 2)  # A single column is its own reflection.
    return Symmetries(
        cells=np.stack([cells.ravel(), cells[:, ::-1].ravel()])[:count],
        actions=np.stack([across, across[::-1]])[:count],
    )


@functools.cache
def positions() -> Positions:
    """Returns 7,000 positions from games of mixed strength, with the outcome of each column.

    There are 1,000 positions in each class; `experiments.label` wrote their file. Six classes are
    named after stage and difficulty, such as begin-hard. The stage is begin (up to 14 plies
    played), middle (up to 28) or end. The difficulty is easy (the game ends within 14 more plies
    under perfect play), medium (28) or hard. In the class decisive, exactly one column keeps the
    outcome. No two positions are equal up to reflection.
    """
    with np.load(POSITIONS, allow_pickle=False) as file:
        boards, outcomes, class_of = (file[name] for name in ("boards", "outcomes", "class_of"))
        classes = tuple(file["classes"].tolist())
    players = (np.count_nonzero(boards, axis=1) % 2).astype(np.int8)
    states: Any = boards, players, np.zeros(len(boards), bool)
    return Positions(square.State(*states), outcomes, classes, class_of, apart=("decisive",))


def display(rows: int, columns: int) -> Display:
    """Returns the display; its text has the names of the columns below the board."""
    names, width = [str(column + 1) for column in range(columns)], len(str(columns))

    def find_cells(state: square.State, is_made: bool) -> np.ndarray:
        """Finds the free cell of each column where a stone would land, or the one below it."""
        heights = (np.reshape(state.board, (rows, columns)) != 0).sum(axis=0)
        return (rows - 1 - heights + is_made) * columns + np.arange(columns)

    def render(state: square.State) -> str:
        marks = np.array([".", "X", "O"])[np.asarray(state.board).reshape(rows, columns)]
        texts = [*marks.tolist(), names]
        return "\n".join(" ".join(f"{cell:>{width}}" for cell in row) for row in texts)

    look = {"cell_size": 24, "discs": True}
    return square.make_display((rows, columns), names, find_cells, render, **look)
