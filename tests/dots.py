"""A game for tests, Dots and Boxes on 2x2 boxes, as a beginner writes it: one encoding, no picture.

Twelve edges, drawn in turn; who closes a box owns it and draws again, and who owns more has won.
Action `i` draws edge `i`: 0 to 5 are flat, row by row, and 6 to 11 are upright.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game

# The four edges of each box, and where each edge is on a grid of 5 by 5.
BOXES = np.array([[0, 2, 6, 7], [1, 3, 7, 8], [2, 4, 9, 10], [3, 5, 10, 11]])
PLACES = np.array([1, 3, 11, 13, 21, 23, 5, 7, 9, 15, 17, 19])


class State(NamedTuple):
    edges: jax.Array  # bool [12]
    lead: jax.Array  # int8 [], boxes of player 0 less those of player 1.
    player: jax.Array  # int8 []


def init():
    return State(jnp.zeros(12, bool), jnp.int8(0), jnp.int8(0))


def step(state, action):
    valid = (action >= 0) & (action < 12) & ~state.edges[action]
    edges = state.edges.at[action].set(True)
    closed = jnp.sum(edges[BOXES].all(1), dtype=jnp.int8)
    closed = closed - jnp.sum(state.edges[BOXES].all(1), dtype=jnp.int8)
    sign = jnp.int8(1) - 2 * state.player
    lead = state.lead + sign * closed
    player = jnp.where(closed > 0, state.player, 1 - state.player)
    moved = State(edges, lead, player)
    state = jax.tree.map(lambda new, old: jnp.where(valid, new, old), moved, state)
    return state, jnp.where(valid & edges.all(), jnp.sign(sign * lead).astype(jnp.float32), 0.0)


def observe(state, encoding):
    del encoding
    mine = jnp.where(state.player == 0, state.lead, -state.lead)
    grid = jnp.zeros(25, bool).at[PLACES].set(state.edges)
    leads = mine == jnp.arange(-3, 4)
    planes = jnp.concatenate([grid[:, None], jnp.broadcast_to(leads, (25, 7))], axis=1)
    return planes.reshape(5, 5, 8)


def make() -> Game:
    return Game(
        name="dots",
        num_actions=12,
        max_plies=12,
        encodings=("edges",),
        init=init,
        step=step,
        legal_actions=lambda state: ~state.edges,
        is_over=lambda state: state.edges.all(),
        player=lambda state: state.player,
        observe=observe,
        most_positions=5349,
    )
