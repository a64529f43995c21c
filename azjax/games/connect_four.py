"""Connect Four: four in a row on 6 rows of 7; action `i` drops a stone in column `i`."""

import functools
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax.game import ENCODINGS, Game, Positions, Symmetries, observation_planes

_ROWS, _COLUMNS = 6, 7
POSITIONS = pathlib.Path(__file__).with_name("connect_four_positions.npz")


def _lines() -> np.ndarray:
    """Returns the cells of the 69 possible lines of four, `[69, 4]`."""
    steps = np.arange(4)[:, None]
    lines = []
    for direction in ((0, 1), (1, 0), (1, 1), (1, -1)):
        for start in np.ndindex(_ROWS, _COLUMNS):
            row, column = (np.asarray(start) + steps * direction).T
            if row[-1] < _ROWS and 0 <= column[-1] < _COLUMNS:
                lines.append(row * _COLUMNS + column)
    return np.array(lines)


LINES = _lines()


class State(NamedTuple):
    """A position.

    Attributes:
      board: `int8 [42]`, row-major, row 0 on top: 1 and -1 for players 0 and 1, 0 = empty.
      player: `int8 []`, who is to move.
      over: `bool []`, whether somebody has won or the board is full.
    """

    board: jax.Array
    player: jax.Array
    over: jax.Array

    def draw(self, values=None, labels=None, last=None, size=168) -> drawing.Drawing:
        """Draws the board; what belongs to a column stands where its next stone would fall.

        Args:
          values: `[7]`, in [0, 1], one an action: a heat map.
          labels: `[7]`, text.
          last: the last action; its stone is marked.
          size: width in pixels.
        """
        cells = np.asarray(self.board)
        stones = (cells.reshape(_ROWS, _COLUMNS) != 0).sum(axis=0)
        landing = (_ROWS - 1 - stones) * _COLUMNS + np.arange(_COLUMNS)
        room = stones < _ROWS
        look = {"size": size, "last": None if last is None else int(landing[last]) + _COLUMNS}
        if values is not None:
            look["values"] = np.zeros(cells.shape)
            look["values"][landing[room]] = np.asarray(values)[room]
        if labels is not None:
            look["labels"] = np.full(cells.shape, "", dtype=object)
            look["labels"][landing[room]] = np.asarray(labels, dtype=object)[room]
        return drawing.board(cells, (_ROWS, _COLUMNS), LINES, **look)

    def _repr_html_(self) -> str | None:
        return drawing.draw_states(State.draw, self, np.ndim(self.player))


def init() -> State:
    """Returns the empty board, player 0 to move."""
    return State(
        jnp.zeros(_ROWS * _COLUMNS, jnp.int8), jnp.zeros((), jnp.int8), jnp.zeros((), bool)
    )


def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
    """Drops a stone. Returns the new state and the mover's reward (+1 win, otherwise 0).

    On a finished game, or on a full column, returns the same state and 0.
    """
    mark = 1 - 2 * state.player
    height = jnp.sum(state.board.reshape(_ROWS, _COLUMNS)[:, action] != 0)
    cell = (_ROWS - 1 - height) * _COLUMNS + action
    board = state.board.at[cell].set(mark)
    won = jnp.any(jnp.all(board[LINES] == mark, axis=1))
    moved = State(board, 1 - state.player, won | jnp.all(board != 0))
    valid = legal_actions(state)[action] & (action >= 0) & (action < _COLUMNS)
    next_state = jax.tree.map(lambda new, old: jnp.where(valid, new, old), moved, state)
    return next_state, jnp.where(valid & won, 1.0, 0.0)


def legal_actions(state: State) -> jax.Array:
    """Returns `bool [7]`: the columns with room, or none once the game is over."""
    return (state.board[:_COLUMNS] == 0) & ~state.over


def observe(state: State, encoding: str) -> jax.Array:
    """Returns the planes `bool [6, 7, C]`; see `game.observation_planes`."""
    return observation_planes(state.board, state.player, (_ROWS, _COLUMNS), encoding)


def render(state: State) -> str:
    """Draws the board with the columns' numbers below."""
    marks = np.asarray(state.board).reshape(_ROWS, _COLUMNS)
    rows = [" ".join({1: "X", -1: "O", 0: "."}[int(m)] for m in row) for row in marks]
    return "\n".join([*rows, " ".join(str(i) for i in range(_COLUMNS))])


def symmetries() -> Symmetries:
    """Returns the identity and the left-right reflection."""
    columns = np.arange(_COLUMNS, dtype=np.int32)
    cells = np.arange(_ROWS * _COLUMNS, dtype=np.int32).reshape(_ROWS, _COLUMNS)
    return Symmetries(
        cells=np.stack([cells.ravel(), cells[:, ::-1].ravel()]),
        actions=np.stack([columns, columns[::-1]]),
    )


@functools.cache
def positions() -> Positions:
    """Returns 7,000 positions from games of mixed strength, and what each column is worth.

    1,000 are of each of six classes: begin (up to 14 plies played), middle (up to 28) or end, and
    easy (under perfect play the game ends within 14 more plies), medium (28) or hard. 1,000 more
    are decisive: exactly one column keeps the outcome. No two are the same, or mirror images.

    `experiments.label` made the file, which holds the plies to the end by each column, too.
    """
    with np.load(POSITIONS, allow_pickle=False) as file:
        boards, outcomes, class_of = (file[name] for name in ("boards", "outcomes", "class_of"))
        classes = tuple(file["classes"].tolist())
    players = (np.count_nonzero(boards, axis=1) % 2).astype(np.int8)
    states: Any = boards, players, np.zeros(len(boards), bool)
    return Positions(State(*states), outcomes, classes, class_of, apart=("decisive",))


def make() -> Game:
    """Returns the game's record."""
    return Game(
        name="connect_four",
        num_actions=_COLUMNS,
        board_shape=(_ROWS, _COLUMNS),
        max_plies=_ROWS * _COLUMNS,
        enumerable=False,
        encodings=ENCODINGS,
        init=init,
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=observe,
        render=render,
        symmetries=symmetries(),
        draw=State.draw,
        positions=positions,
    )
