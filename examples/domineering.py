"""A custom game: Domineering on 5x5, trained with `--game examples/domineering.py:make`.

X places vertical dominoes and O horizontal ones, in turn; a player who cannot place one loses.
Action `i` places one on cell `i` and the cell below it or, for O, the cell to its right.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax.games import Display, Game, square

N = 5
CELLS = np.arange(N * N)
FITS = np.stack([CELLS < N * (N - 1), CELLS % N < N - 1])  # For X and for O.
OTHER_HALF = np.where(FITS, CELLS + np.array([[N], [1]]), CELLS)


class State(NamedTuple):  # noqa: D101
    board: jax.Array  # int8 [25]: 1 = half a domino of X, -1 = of O, 0 = empty
    player: jax.Array  # int8 []
    over: jax.Array  # bool []


def _placings(board, player):
    free = (board == 0) & (board[jnp.asarray(OTHER_HALF)[player]] == 0)
    return free & jnp.asarray(FITS)[player]


def legal_actions(state: State) -> jax.Array:
    """Returns `bool [25]`; all False once the game is over."""
    return _placings(state.board, state.player) & ~state.over


def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
    """Places a domino; the reward is 1 if the opponent has no move. Ignores illegal actions."""
    is_valid = legal_actions(state)[action] & (action >= 0) & (action < N * N)
    halves = jnp.stack([action, jnp.asarray(OTHER_HALF)[state.player, action]])
    board = state.board.at[halves].set(1 - 2 * state.player)
    won = ~jnp.any(_placings(board, 1 - state.player))
    moved = State(board, 1 - state.player, won)
    state = jax.tree.map(lambda new, old: jnp.where(is_valid, new, old), moved, state)
    return state, jnp.where(is_valid & won, 1.0, 0.0)


def render(state: State) -> str:
    """Returns the board as text."""
    return "\n".join(" ".join(".XO"[x] for x in row) for row in np.reshape(state.board, (N, N)))


def make() -> Game:
    """Returns the game."""
    return Game(
        name="domineering",
        num_actions=N * N,
        max_plies=N * N // 2,
        encodings=square.ENCODINGS,
        init=lambda: State(jnp.zeros(N * N, jnp.int8), jnp.int8(0), jnp.bool_(False)),
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=lambda state, encoding: square.observation_planes(
            state.board, state.player, (N, N), encoding
        ),
        display=Display(render=render),
    )


if __name__ == "__main__":
    azjax.check_game(make())
    print(f"Domineering passes check_game; train: azjax train --game {__file__}:make")
