"""A game for tests that shares only the record with the other games.

Seven stones; a move takes one, two or three, and who takes the last one wins. A state is a
single array, with no fields at all. There are no symmetries and no pictures, and the
encodings have names and numbers of planes of their own.
"""

import jax.numpy as jnp

from azjax.games.base import Display, Game

STONES = 7


def step(state, action):
    left, moves = state
    valid = (action >= 0) & (action < 3) & (action < left)
    moved = jnp.stack([left - action - 1, moves + 1]).astype(jnp.int8)
    return jnp.where(valid, moved, state), jnp.where(valid & (moved[0] == 0), 1.0, 0.0)


def observe(state, encoding):
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
    step=step,
    legal_actions=lambda state: jnp.arange(3) < state[0],
    is_over=lambda state: state[0] == 0,
    player=lambda state: state[1] % 2,
    observe=observe,
    most_positions=100,
    display=Display(render=lambda state: "|" * int(state[0]) or "-"),
)
