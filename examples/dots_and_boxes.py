"""A custom game: Dots and Boxes on 2x2 boxes, where a player who closes a box moves again.

Action `i` draws edge `i`: 0 to 5 are horizontal, row by row, and 6 to 11 are vertical.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax.drawing import COLOR_HEAT, GRID, canvas, node
from azjax.games import Display, Game

BOXES = np.array([[0, 2, 6, 7], [1, 3, 7, 8], [2, 4, 9, 10], [3, 5, 10, 11]])  # Edges by box.
PLACES = np.array([1, 3, 11, 13, 21, 23, 5, 7, 9, 15, 17, 19])  # Cells of the edges on a 5x5 grid.


class State(NamedTuple):  # noqa: D101
    edges: jax.Array  # bool [12]
    lead: jax.Array  # int8 [], boxes of player 0 minus boxes of player 1
    player: jax.Array  # int8 []


def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
    """Draws an edge; a player who closes a box moves again. Illegal actions change nothing."""
    is_legal = (action >= 0) & (action < 12) & ~state.edges[action]
    edges = state.edges.at[action].set(True)
    closed = jnp.sum(edges[BOXES].all(1), dtype=jnp.int8)
    closed -= jnp.sum(state.edges[BOXES].all(1), dtype=jnp.int8)
    sign = 1 - 2 * state.player  # int8: a Python number does not change the type.
    lead = state.lead + sign * closed
    moved = State(edges, lead, jnp.where(closed > 0, state.player, 1 - state.player))
    state = jax.tree.map(lambda new, old: jnp.where(is_legal, new, old), moved, state)
    reward = jnp.sign(sign * lead).astype(jnp.float32)
    return state, jnp.where(is_legal & edges.all(), reward, 0.0)


def observe(state: State, encoding: str) -> jax.Array:
    """Returns planes `bool [5, 5, 8]`: the edges, and the mover's lead as one of 7 planes."""
    del encoding
    mine = jnp.where(state.player == 0, state.lead, -state.lead)
    grid = jnp.zeros(25, bool).at[PLACES].set(state.edges)
    leads = jnp.broadcast_to(mine == jnp.arange(-3, 4), (25, 7))
    return jnp.concatenate([grid[:, None], leads], axis=1).reshape(5, 5, 8)


def draw(state: State, values=None, labels=None, last=None, size=120):
    """Draws dots and edges; values are a heat map on the edges that can be drawn."""
    parts = [node("rect", {"width": 104, "height": 104, "fill": "#ffffff", "class": "az-paper"})]
    for edge, (row, column) in enumerate(zip(*np.divmod(PLACES, 5), strict=True)):
        flat = edge < 6
        x, y = 12 + 20 * (column - flat), 12 + 20 * (row - (not flat))
        ends = {"x1": x, "y1": y, "x2": x + 40 * flat, "y2": y + 40 * (not flat)}
        color = "#d55e00" if edge == last else "#0072b2" if state.edges[edge] else GRID
        parts.append(node("line", ends | {"stroke": color, "stroke-width": 3}))
        if values is not None and not state.edges[edge]:
            heat = {"stroke": COLOR_HEAT, "stroke-width": 8, "stroke-opacity": float(values[edge])}
            parts.append(node("line", ends | heat | {"class": "az-heat"}))
    return canvas(104, 104, *parts, scale=size / 104, label="dots and boxes")


def make() -> Game:
    """Returns the game."""
    return Game(
        name="dots_and_boxes",
        num_actions=12,
        max_plies=12,
        encodings=("edges",),
        init=lambda: State(jnp.zeros(12, bool), jnp.int8(0), jnp.int8(0)),
        step=step,
        legal_actions=lambda state: ~state.edges,
        is_over=lambda state: state.edges.all(),
        player=lambda state: state.player,
        observe=observe,
        most_positions=5349,  # An upper bound, for `solve`.
        display=Display(render=lambda state: f"{np.array(state.edges) * 1}", draw=draw),
    )


if __name__ == "__main__":
    azjax.check_game(make())
    print("Dots and Boxes passes check_game.")
