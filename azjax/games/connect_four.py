"""Connect Four of any size; action `i` drops a stone in column `i`."""

import functools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax.games.base import Game, Positions, Symmetries
from azjax.games.display import Display
from azjax.games.mnk import check_size, empty_board, find_lines, set_stone
from azjax.games.square import ENCODINGS, State, bound_positions, observation_planes

_SIZE = 6, 7, 4
POSITIONS = pathlib.Path(__file__).with_name("connect_four_positions.npz")


def make(rows: int = _SIZE[0], columns: int = _SIZE[1], in_a_row: int = _SIZE[2]) -> Game:
    """Returns the game of the given size; repeated calls return the same object.

    The first player with `in_a_row` stones in a row wins.
    """
    check_size("connect_four", rows, columns, in_a_row)
    return _make(rows, columns, in_a_row)


@functools.cache
def _make(rows: int, columns: int, in_a_row: int) -> Game:
    size, lines = (rows, columns, in_a_row), find_lines(rows, columns, in_a_row)
    name = "connect_four"
    if size != _SIZE:
        name += f":{rows}x{columns}" + (f"x{in_a_row}" if in_a_row != _SIZE[2] else "")

    def legal_actions(state: State) -> jax.Array:
        return (state.board[:columns] == 0) & ~state.over

    def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        height = jnp.sum(state.board.reshape(rows, columns)[:, action] != 0)
        cell = (rows - 1 - height) * columns + action
        is_legal = legal_actions(state)[action] & (action >= 0) & (action < columns)
        return set_stone(state, cell, is_legal, lines)

    return Game(
        name=name,
        num_actions=columns,
        max_plies=rows * columns,
        encodings=ENCODINGS,
        init=lambda: empty_board(rows * columns),
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=lambda state, encoding: observation_planes(
            state.board, state.player, (rows, columns), encoding
        ),
        symmetries=_symmetries(rows, columns),
        most_positions=bound_positions(_fillings(rows, columns)),
        positions=positions if size == _SIZE else None,
        display=make_display(*size),
    )


def _fillings(rows: int, columns: int) -> list[int]:
    """Counts fillings by number of stones: coefficients of `(1 + x + ... + x^rows)^columns`."""
    ways = [1]
    for _ in range(columns):
        ways = np.convolve(np.array(ways, object), np.ones(rows + 1, int)).tolist()
    return ways


def _symmetries(rows: int, columns: int) -> Symmetries:
    """Returns the identity and the left-right reflection."""
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

    Each class has 1,000 positions. Six classes are named after stage and difficulty: begin-easy,
    begin-medium, begin-hard, middle-easy, middle-medium and end-easy. The stage is begin (up to 14
    plies played), middle (up to 28) or end. The difficulty is easy (the game ends within 14 more
    plies under perfect play), medium (28) or hard. In the seventh class, decisive, exactly one
    column keeps the outcome. No two positions are equal up to reflection.

    They are read from a file that `experiments.label` wrote. The file also contains the number of
    plies to the end after each column.
    """
    with np.load(POSITIONS, allow_pickle=False) as file:
        boards, outcomes, class_of = (file[name] for name in ("boards", "outcomes", "class_of"))
        classes = tuple(file["classes"].tolist())
    players = (np.count_nonzero(boards, axis=1) % 2).astype(np.int8)
    states: Any = boards, players, np.zeros(len(boards), bool)
    return Positions(State(*states), outcomes, classes, class_of, apart=("decisive",))


def make_display(rows: int, columns: int, in_a_row: int) -> Display:
    """Returns the display: text and pictures."""
    lines, width = find_lines(rows, columns, in_a_row), len(str(columns))
    names = [str(column + 1) for column in range(columns)]

    def render(state: State) -> str:
        """Returns the board as text, with the names of the columns below."""
        marks = np.array([".", "X", "O"])[np.asarray(state.board).reshape(rows, columns)]
        texts = [*marks.tolist(), names]
        return "\n".join(" ".join(f"{cell:>{width}}" for cell in row) for row in texts)

    def draw(state, values=None, labels=None, last=None, size=24 * columns) -> drawing.Drawing:
        """Draws the board, with values and labels in the cells where stones would land."""
        cells = np.asarray(state.board)
        stones = (cells.reshape(rows, columns) != 0).sum(axis=0)
        landing = (rows - 1 - stones) * columns + np.arange(columns)
        room = stones < rows
        options = {"size": size, "last": None if last is None else int(landing[last]) + columns}
        if values is not None:
            options["values"] = np.zeros(cells.shape)
            options["values"][landing[room]] = np.asarray(values)[room]
        if labels is not None:
            options["labels"] = np.full(cells.shape, "", dtype=object)
            options["labels"][landing[room]] = np.asarray(labels, dtype=object)[room]
        return drawing.board(cells, (rows, columns), lines, discs=True, **options)

    return Display(render, draw, name_actions=lambda state: names)
