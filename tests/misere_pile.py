"""A game for tests in which a player can move twice, and a move can lose.

Five stones. Action 0 takes one, and the same player moves again; action 1 takes two, and
the turn passes. Who takes the last stone loses. With 1, 2, 3, 4, 5 stones left, the player
to move gets -1, -1, 1, 1, 1: with 3, only taking two wins; with 5, only taking one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Display, Game
from azjax.games.square import ENCODINGS, observation_planes


class State(NamedTuple):
    board: jax.Array  # int8 [5], the player who took each stone: 1, -1, or 0 for none.
    player: jax.Array  # int8 []
    over: jax.Array  # bool []


def init():
    return State(jnp.zeros(5, jnp.int8), jnp.zeros((), jnp.int8), jnp.zeros((), bool))


def step(state, action):
    taken = jnp.sum(state.board != 0)
    stones = (jnp.arange(5) >= taken) & (jnp.arange(5) <= taken + action)
    board = jnp.where(stones, 1 - 2 * state.player, state.board)
    player = jnp.where(action == 0, state.player, 1 - state.player)
    moved = State(board, player, jnp.all(board != 0))
    valid = (action >= 0) & (action < 2) & legal_actions(state)[action]
    next_state = jax.tree.map(lambda new, old: jnp.where(valid, new, old), moved, state)
    return next_state, jnp.where(valid & moved.over, -1.0, 0.0)


def legal_actions(state):
    return jnp.sum(state.board == 0) > jnp.arange(2)


def make() -> Game:
    return Game(
        name="misere_pile",
        num_actions=2,
        max_plies=5,
        encodings=ENCODINGS,
        init=init,
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=lambda state, encoding: observation_planes(
            state.board, state.player, (1, 5), encoding
        ),
        most_positions=100,
        display=Display(lambda state: "".join(".XO"[mark] for mark in np.asarray(state.board))),
    )


# Nim, which shares only the record with other games: seven stones; a move takes one, two or three,
# and who takes the last one wins. A state is one array, and the encodings have names of their own.

STONES = 7


def nim_step(state, action):
    left, moves = state
    valid = (action >= 0) & (action < 3) & (action < left)
    moved = jnp.stack([left - action - 1, moves + 1]).astype(jnp.int8)
    return jnp.where(valid, moved, state), jnp.where(valid & (moved[0] == 0), 1.0, 0.0)


def observe_nim(state, encoding):
    if encoding == "unary":
        return (jnp.arange(STONES) < state[0])[None, :, None]
    bits = (state[0] >> jnp.arange(3)) & 1 == 1
    return jnp.broadcast_to(bits, (1, STONES, 3))


NIM = Game(
    name="nim",
    num_actions=3,
    max_plies=STONES,
    encodings=("unary", "binary"),
    init=lambda: jnp.array([STONES, 0], jnp.int8),
    step=nim_step,
    legal_actions=lambda state: jnp.arange(3) < state[0],
    is_over=lambda state: state[0] == 0,
    player=lambda state: state[1] % 2,
    observe=observe_nim,
    most_positions=100,
    display=Display(render=lambda state: "|" * int(state[0]) or "-"),
)
