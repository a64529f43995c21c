"""Breakthrough of any size; action `3 * cell + d` moves the piece on a cell forward.

Pieces step straight or diagonally forward and capture only diagonally. A player wins by reaching
the last row or by capturing all pieces. A legal move always exists, and draws are impossible.

`d` is 0 for left, 1 for straight and 2 for right; `cell` counts row by row from the upper left
corner. Both are from the mover's perspective: the mover's pieces move up.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import square
from azjax.games.base import Display, Game, Symmetries, one_per_size


@one_per_size
def make(rows: int = 8, columns: int = 8) -> Game:
    """Returns the game of the given size; repeated calls return the same object."""
    square.check_board("breakthrough", rows, columns, least=(4, 2))
    cells, shape = rows * columns, (rows, columns)
    origin, target = _moves(rows, columns)
    turn = np.tile([-1, 0, 1], cells)
    on_board = target != origin

    def seen(board: jax.Array, player: jax.Array) -> jax.Array:
        """Turns the board to a player's perspective, own pieces as 1; turning twice restores it."""
        return jnp.where(player == 0, board, -board[::-1])

    def legal_actions(state: square.State) -> jax.Array:
        board = seen(state.board, state.player)
        free = jnp.where(turn == 0, board[target] == 0, board[target] != 1)
        return jnp.asarray(on_board) & (board[origin] == 1) & free & ~state.over

    def move(state: square.State, action: jax.Array) -> tuple[square.State, jax.Array]:
        board = seen(state.board, state.player)
        board = board.at[jnp.asarray(origin)[action]].set(0)
        board = board.at[jnp.asarray(target)[action]].set(1)
        won = jnp.any(board[:columns] == 1) | ~jnp.any(board == -1)
        moved = square.State(seen(board, state.player), 1 - state.player, won)
        return moved, won.astype(jnp.float32)

    def observe(state: square.State, encoding: str) -> jax.Array:
        """Encodes the board; `relative` shows it from the mover's perspective."""
        if encoding == "relative":
            board = seen(state.board, state.player)
            return square.observation_planes(board, jnp.zeros_like(state.player), shape, encoding)
        return square.observation_planes(state.board, state.player, shape, encoding)

    mirrored = np.arange(cells).reshape(shape)[:, ::-1].ravel()
    moves = np.stack([3 * origin + 1 + turn, 3 * mirrored[origin] + 1 - turn]).astype(np.int32)
    return square.make_game(
        shape,
        3 * cells,
        legal_actions,
        move,
        name="breakthrough" if shape == (8, 8) else f"breakthrough:{rows}x{columns}",
        max_plies=2 * columns * (2 * rows - 3),
        init=lambda: square.start(
            np.repeat([-1, 0, 1], [2 * columns, cells - 4 * columns, 2 * columns])
        ),
        observe=observe,
        symmetries=Symmetries(np.stack([np.arange(cells), mirrored]).astype(np.int32), moves),
        most_positions=_bound_positions(cells, 2 * columns),
        display=_display(rows, columns),
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


def _display(rows: int, columns: int) -> Display:
    origin, target = _moves(rows, columns)
    names, last = square.cell_names(rows, columns), rows * columns - 1

    def cells(moves: np.ndarray, player: int) -> np.ndarray:
        return last - moves if player else moves

    def name_actions(state: square.State) -> list[str]:
        both = (cells(moves, int(state.player)) for moves in (origin, target))
        return [names[a] + names[b] for a, b in zip(*both, strict=True)]

    return square.make_display(
        (rows, columns), name_actions, lambda state, is_made: cells(target, state.player ^ is_made)
    )
