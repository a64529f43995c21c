"""A game of your own: Breakthrough on 5x5, trained by `--game examples/breakthrough.py:make`.

A piece steps forward, straight or diagonally, and captures diagonally only. Who reaches the last
row, or captures everything, wins. Action `3 * cell + direction` moves the piece of a cell.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.game import Game, Symmetries
from azjax.testing import check_game

N = 5
ROW, COLUMN = np.divmod(np.arange(N * N), N)
FROM, TURN = np.repeat(np.arange(N * N), 3), np.tile([-1, 0, 1], N * N)
ON_BOARD = (ROW[FROM] > 0) & (COLUMN[FROM] + TURN >= 0) & (COLUMN[FROM] + TURN < N)
TO = np.where(ON_BOARD, FROM - N + TURN, FROM)
START = np.repeat(np.array([-1, -1, 0, 1, 1], np.int8), N)


class State(NamedTuple):  # noqa: D101
    board: jax.Array  # int8 [25]: 1 = first player, -1 = second player, 0 = empty
    player: jax.Array  # int8 []
    over: jax.Array  # bool []


def _seen(board, player):  # The board as a player sees it; the same function turns it back.
    return jnp.where(player == 0, board, -board[::-1])


def legal_actions(state: State) -> jax.Array:
    """`bool [75]`; nothing is legal once the game is over."""
    board = _seen(state.board, state.player)
    free = jnp.where(TURN == 0, board[TO] == 0, board[TO] != 1)
    return jnp.asarray(ON_BOARD) & (board[FROM] == 1) & free & ~state.over


def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
    """Moves a piece; the reward is 1 for the move that wins. Illegal actions change nothing."""
    board = _seen(state.board, state.player)
    board = board.at[jnp.asarray(FROM)[action]].set(0).at[jnp.asarray(TO)[action]].set(1)
    won = jnp.any(board[:N] == 1) | ~jnp.any(board == -1)
    moved = State(_seen(board, state.player), 1 - state.player, won)
    valid = legal_actions(state)[action] & (action >= 0) & (action < len(FROM))
    state = jax.tree.map(lambda new, old: jnp.where(valid, new, old), moved, state)
    return state, jnp.where(valid & won, 1.0, 0.0)


def make() -> Game:
    """Returns the game."""
    cells = np.stack([np.arange(N * N), N * ROW + N - 1 - COLUMN])  # As it is, and mirrored.
    actions = np.stack([np.arange(len(FROM)), 3 * cells[1, FROM] + 1 - TURN])
    return Game(
        name="breakthrough",
        num_actions=len(FROM),
        board_shape=(N, N),
        max_plies=2 * N * (2 + 3 + 2),
        most_positions=None,
        encodings=("relative",),
        init=lambda: State(jnp.asarray(START), jnp.int8(0), jnp.bool_(False)),
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=lambda state, _: jnp.reshape(
            _seen(state.board, state.player)[:, None] == np.array([1, -1]), (N, N, 2)
        ),
        render=lambda state: "\n".join(
            " ".join(".XO"[x] for x in row) for row in np.reshape(state.board, (N, N))
        ),
        symmetries=Symmetries(cells.astype(np.int32), actions.astype(np.int32)),
    )


if __name__ == "__main__":
    check_game(make())
    print("Breakthrough obeys the laws: python -m experiments.train --game", f"{__file__}:make")
