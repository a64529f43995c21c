"""Tic-tac-toe: three in a row on a 3x3 board; action `i` marks cell `i`, row by row."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax import drawing
from azjax.game import ENCODINGS, Game, Symmetries, observation_planes

LINES = np.array(  # The eight ways to win.
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]]
)


class State(NamedTuple):
    """A position.

    Attributes:
      board: `int8 [9]`, row-major: 1 = X, -1 = O, 0 = empty.
      player: `int8 []`, who is to move: 0 = X, 1 = O.
      over: `bool []`, whether somebody has won or the board is full.
    """

    board: jax.Array
    player: jax.Array
    over: jax.Array

    def draw(self, values=None, labels=None, last=None, size=120) -> drawing.Drawing:
        """Draws the board.

        Args:
          values: `[9]`, in [0, 1], one an action: a heat map.
          labels: `[9]`, text for empty cells.
          last: the last action, which is marked.
          size: width in pixels.
        """
        look = {"values": values, "labels": labels, "last": last, "size": size}
        return drawing.board(np.asarray(self.board), (3, 3), LINES, **look)

    def _repr_html_(self) -> str | None:
        return drawing.draw_states(State.draw, self, np.ndim(self.player))


def init() -> State:
    """Returns the empty board, X to move."""
    return State(jnp.zeros(9, jnp.int8), jnp.zeros((), jnp.int8), jnp.zeros((), bool))


def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
    """Marks a cell. Returns the new state and the mover's reward (+1 win, otherwise 0).

    On a finished game, or on a taken cell, returns the same state and 0.
    """
    mark = 1 - 2 * state.player
    board = state.board.at[action].set(mark)
    won = jnp.any(jnp.all(board[LINES] == mark, axis=1))
    moved = State(board, 1 - state.player, won | jnp.all(board != 0))
    valid = legal_actions(state)[action] & (action >= 0) & (action < 9)
    next_state = jax.tree.map(lambda new, old: jnp.where(valid, new, old), moved, state)
    return next_state, jnp.where(valid & won, 1.0, 0.0)


def legal_actions(state: State) -> jax.Array:
    """Returns `bool [9]`: the empty cells, or none once the game is over."""
    return (state.board == 0) & ~state.over


def observe(state: State, encoding: str) -> jax.Array:
    """Returns the planes `bool [3, 3, C]`; see `game.observation_planes`."""
    return observation_planes(state.board, state.player, (3, 3), encoding)


def board_text(states: State) -> str:
    """Writes the boards of states `[..., 9]`, one after the other, as characters of `.XO`."""
    return "".join(".XO"[mark] for mark in np.ravel(states.board))


def render(state: State) -> str:
    """Draws the board; empty cells show their action's number."""
    cells = ["XO"[int(mark == -1)] if mark else str(i) for i, mark in enumerate(state.board)]
    return "\n---+---+---\n".join(" " + " | ".join(cells[i : i + 3]) for i in (0, 3, 6))


def symmetries() -> Symmetries:
    """Returns the eight rotations and reflections of the square; cells are actions."""
    grid = np.arange(9).reshape(3, 3)
    turns = [np.rot90(grid, k) for k in range(4)]
    cells = np.array([g.ravel() for g in turns + [turn.T for turn in turns]], np.int32)
    return Symmetries(cells=cells, actions=cells)


def from_board(board: Sequence[int] | np.ndarray) -> State:
    """Returns the state of a position given as nine numbers; their counts tell who is to move.

    Args:
      board: nine values, row-major: 1 = X, -1 = O, 0 = empty.

    Raises:
      ValueError: if no game leads to this position, or while tracing.
    """
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(board)):
        raise ValueError(
            "from_board checks a position on the host, so it cannot be traced: call it outside of "
            "jit and vmap and hand the states in, or move inside by jax.vmap over game.step"
        )
    cells = np.asarray(board)
    if cells.shape != (9,):
        raise ValueError(
            f"a board is 9 numbers, row by row, and this one has shape {cells.shape}: "
            "pass a flat list such as [1, 0, 0, 0, -1, 0, 0, 0, 0]"
        )
    if not np.isin(cells, (-1, 0, 1)).all():
        bad = sorted({str(x) for x in cells[~np.isin(cells, (-1, 0, 1))]})
        raise ValueError(f"cell value {bad[0]} is not allowed: use 1 = X, -1 = O, 0 = empty")
    count_x, count_o = int((cells == 1).sum()), int((cells == -1).sum())
    to_move = count_x - count_o
    if to_move not in (0, 1):
        raise ValueError(
            f"{count_x} X and {count_o} O cannot occur: X moves first, so there are "
            "as many X as O, or one X more"
        )
    wins = [bool((cells[LINES] == mark).all(axis=1).any()) for mark in (1, -1)]
    if all(wins):
        raise ValueError("both X and O have three in a row: a game ends at the first")
    if wins[to_move]:
        winner, loser = "XO"[to_move], "OX"[to_move]
        raise ValueError(
            f"{winner} has three in a row but {loser} moved after that: "
            f"remove one {loser} from the board"
        )
    over = any(wins) or count_x + count_o == 9
    return State(jnp.asarray(cells, jnp.int8), jnp.int8(to_move), jnp.asarray(over))


def make() -> Game:
    """Returns the game's record."""
    return Game(
        name="tic_tac_toe",
        num_actions=9,
        board_shape=(3, 3),
        max_plies=9,
        enumerable=True,
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
    )
