"""Breakthrough of any size; action `3 * cell + d` moves the piece on a cell forward.

Pieces step straight or diagonally forward and capture only diagonally. A player wins by reaching
the last row or by capturing all pieces. A legal move always exists, and draws are impossible.

`d` is 0 for left, 1 for straight and 2 for right; `cell` counts row by row from the upper left
corner. Both are from the mover's perspective: the mover's pieces move up.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax.games.base import Game, Symmetries, where
from azjax.games.display import Display
from azjax.games.square import ENCODINGS, State, cell_names, observation_planes, render_board

_LARGEST = 16


def make(rows: int = 8, columns: int = 8) -> Game:
    """Returns the game of the given size; repeated calls return the same object."""
    if not (4 <= rows <= _LARGEST and 2 <= columns <= _LARGEST):
        raise ValueError(
            f"breakthrough has no board of {rows} by {columns}: use 4 to {_LARGEST} rows and 2 to "
            f"{_LARGEST} columns"
        )
    return _make(rows, columns)


@functools.cache
def _make(rows: int, columns: int) -> Game:
    cells, shape = rows * columns, (rows, columns)
    origin, target = _moves(rows, columns)
    turn = np.tile([-1, 0, 1], cells)
    on_board = target != origin

    def seen(board: jax.Array, player: jax.Array) -> jax.Array:
        """Turns the board to a player's perspective, own pieces as 1; turning twice restores it."""
        return jnp.where(player == 0, board, -board[::-1])

    def legal_actions(state: State) -> jax.Array:
        board = seen(state.board, state.player)
        free = jnp.where(turn == 0, board[target] == 0, board[target] != 1)
        return jnp.asarray(on_board) & (board[origin] == 1) & free & ~state.over

    def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        is_legal = legal_actions(state)[action] & (action >= 0) & (action < 3 * cells)
        board = seen(state.board, state.player)
        board = board.at[jnp.asarray(origin)[action]].set(0)
        board = board.at[jnp.asarray(target)[action]].set(1)
        won = jnp.any(board[:columns] == 1) | ~jnp.any(board == -1)
        moved = state._replace(board=seen(board, state.player), player=1 - state.player, over=won)
        after = where(is_legal, moved, state)
        return after, (is_legal & won).astype(jnp.float32)

    def start() -> State:
        board = np.zeros(shape, np.int8)
        board[:2], board[-2:] = -1, 1
        return State(jnp.asarray(board.ravel()), jnp.int8(0), jnp.bool_(False))

    def observe(state: State, encoding: str) -> jax.Array:
        """Encodes the board; `relative` shows it from the mover's perspective."""
        if encoding == "relative":
            board = seen(state.board, state.player)
            return observation_planes(board, jnp.zeros_like(state.player), shape, encoding)
        return observation_planes(state.board, state.player, shape, encoding)

    mirrored = np.arange(cells).reshape(shape)[:, ::-1].ravel()
    moves = np.stack([3 * origin + 1 + turn, 3 * mirrored[origin] + 1 - turn])
    return Game(
        name="breakthrough" if shape == (8, 8) else f"breakthrough:{rows}x{columns}",
        num_actions=3 * cells,
        max_plies=2 * columns * (2 * rows - 3),
        encodings=ENCODINGS,
        init=start,
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=observe,
        symmetries=Symmetries(
            cells=np.stack([np.arange(cells), mirrored]).astype(np.int32),
            actions=moves.astype(np.int32),
        ),
        most_positions=_bound_positions(cells, 2 * columns),
        display=_make_display(rows, columns),
    )


def _moves(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the origin and target cell of each action, from the mover's perspective.

    They are equal for actions that would leave the board.
    """
    origin = np.repeat(np.arange(rows * columns), 3)
    turn = np.tile([-1, 0, 1], rows * columns)
    row, column = np.divmod(origin, columns)
    inside = (row > 0) & (column + turn >= 0) & (column + turn < columns)
    return origin, np.where(inside, origin - columns + turn, origin)


def _bound_positions(cells: int, pieces: int) -> int:
    """Counts boards with up to `pieces` pieces of each player, times two for the player to move.

    The count includes unreachable boards, but ignores that a position can occur at several plies.
    A test confirms that it is an upper bound at 4x2.
    """
    counts = np.ndindex(pieces + 1, pieces + 1)
    return 2 * sum(math.comb(cells, i) * math.comb(cells - i, j) for i, j in counts)


def _make_display(rows: int, columns: int) -> Display:
    """Returns the display; pictures show the values of actions on their target cells."""
    cells = rows * columns
    origin, target = _moves(rows, columns)

    def draw(state, values=None, labels=None, last=None, size=30 * columns) -> drawing.Drawing:
        """Draws the board, X moving up."""
        to = target if int(state.player) == 0 else cells - 1 - target
        options = {"size": size, "last": None if last is None else cells - 1 - int(to[last])}
        if values is not None:
            options["values"] = np.bincount(to, np.asarray(values), cells)
        if labels is not None:
            options["labels"] = [
                " ".join(labels[action] for action in np.flatnonzero(to == cell) if labels[action])
                for cell in range(cells)
            ]
        return drawing.board(np.asarray(state.board), (rows, columns), **options)

    def name_actions(state: State) -> list[str]:
        names = cell_names(rows, columns)[:: 1 if int(state.player) == 0 else -1]
        return [names[a] + names[b] for a, b in zip(origin, target, strict=True)]

    return Display(
        render=lambda state: render_board(state.board, (rows, columns)),
        draw=draw,
        name_actions=name_actions,
    )
