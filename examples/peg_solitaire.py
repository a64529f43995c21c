"""Peg solitaire on a triangle of fifteen holes, a game of one player.

    azjax train --game examples/peg_solitaire.py:make

A peg jumps over its neighbor into a hole, and the neighbor is removed. The player wins with a
single peg left, and loses with no jump left. A puzzle is a game whose player is always 0: every
value is the player's own, and a proof covers every position that any jumps can reach.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import azjax as az

ROWS = 5
CELLS = [(row, column) for row in range(ROWS) for column in range(row + 1)]
DIRECTIONS = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1)]
JUMPS = np.array(
    [
        [CELLS.index((r, c)), CELLS.index((r + y, c + x)), CELLS.index((r + 2 * y, c + 2 * x))]
        for r, c in CELLS
        for y, x in DIRECTIONS
        if (r + 2 * y, c + 2 * x) in CELLS
    ]
)
START, OVER, END = JUMPS.T  # Of each action.


class State(NamedTuple):  # noqa: D101
    pegs: jax.Array  # bool [15]


def init():
    """Returns the triangle with a hole at its top."""
    return State(jnp.ones(len(CELLS), bool).at[0].set(False))


def legal_actions(state):
    """Returns `bool [36]`, the possible jumps."""
    return state.pegs[START] & state.pegs[OVER] & ~state.pegs[END]


def step(state, action):
    """Jumps; other actions change nothing."""
    is_legal = legal_actions(state)[action] & (action >= 0) & (action < len(JUMPS))
    start, over, end = jnp.asarray(JUMPS)[action]
    pegs = state.pegs.at[jnp.stack([start, over])].set(False).at[end].set(True)
    moved = State(jnp.where(is_legal, pegs, state.pegs))
    stuck = is_legal & ~jnp.any(legal_actions(moved))
    return moved, jnp.where(stuck, jnp.where(jnp.sum(pegs) == 1, 1.0, -1.0), 0.0)


def observe(state, encoding):
    """Returns the pegs on a square grid, `bool [5, 5, 1]`."""
    del encoding
    grid = jnp.zeros((ROWS, ROWS), bool)
    return grid.at[*np.transpose(CELLS)].set(state.pegs)[..., None]


def render(state):
    """Returns the triangle as text."""
    pegs = iter(np.where(state.pegs, "o", ".").tolist())
    rows = [" ".join(next(pegs) for _ in range(row + 1)) for row in range(ROWS)]
    return "\n".join(" " * (ROWS - 1 - row) + text for row, text in enumerate(rows))


def name_actions(state):
    """Returns names such as `4-1`; holes are numbered from the top."""
    del state
    return [f"{start + 1}-{end + 1}" for start, _, end in JUMPS]


def make():
    """Returns the game."""
    return az.Game(
        name="peg_solitaire",
        num_actions=len(JUMPS),
        max_plies=len(CELLS) - 2,
        encodings=("pegs",),
        init=init,
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: ~jnp.any(legal_actions(state)),
        player=lambda state: jnp.int8(0),
        observe=observe,
        most_positions=3016,
        display=az.games.Display(render, name_actions=name_actions),
    )


if __name__ == "__main__":
    game = make()
    az.check_game(game)
    solution = az.solve(game)
    print(f"{solution.num_states:,} positions; a single peg can be left: {solution.values[0] == 1}")
