"""A custom game from the library's components: Chomp, with `--game examples/chomp.py:make`.

A move eats a square of chocolate and all squares below and right of it. The upper left square is
poisoned: who eats it loses. The first player wins on every board of two or more squares, by an
argument that names no move (Gale 1974). Action `i` eats square `i`.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax.games import Game, base, square


@base.one_per_size
def make(rows: int = 4, columns: int = 5) -> Game:
    """Returns the game of the given size; repeated calls return the same object."""
    shape, squares = (rows, columns), np.arange(rows * columns)
    row, column = np.divmod(squares, columns)
    eaten = (row >= row[:, None]) & (column >= column[:, None])  # By each action.

    def legal_actions(state: square.State) -> jax.Array:
        return state.board == 1

    def move(state: square.State, action: jax.Array) -> tuple[square.State, jax.Array]:
        board = jnp.where(jnp.asarray(eaten)[action], jnp.int8(0), state.board)
        over = board[0] == 0
        return square.State(board, 1 - state.player, over), jnp.where(over, jnp.float32(-1), 0.0)

    def observe(state: square.State, encoding: str) -> jax.Array:
        del encoding  # Both players see the same.
        return (state.board == 1).reshape(rows, columns, 1)

    copies = np.stack([squares, squares.reshape(shape).T.ravel()]).astype(np.int32)
    return square.make_game(
        shape,
        len(squares),
        legal_actions,
        move,
        name="chomp" if shape == (4, 5) else f"chomp:{rows}x{columns}",
        max_plies=len(squares),
        encodings=("relative",),
        init=lambda: square.start(np.ones(len(squares))),
        observe=observe,
        symmetries=base.Symmetries(copies, copies) if rows == columns else None,
        # The edge of what is left is a path from corner to corner.
        most_positions=math.comb(rows + columns, rows) * len(squares),
        display=square.make_display(shape, square.cell_names(rows, columns)),
    )


if __name__ == "__main__":
    chomp = make(3, 4)
    azjax.check_game(chomp, 4)
    solution = azjax.solve(chomp)
    names, winning = np.array(square.cell_names(3, 4)), solution.optimal[0]
    print("on 3x4 the first player wins with", *names[winning])
