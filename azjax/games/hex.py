"""Hex of any size, with or without swap; action `i` places a stone on the mover's cell `i`.

X connects top and bottom, O left and right. For O, cells are numbered after a reflection across the
long diagonal: from the mover's perspective, both players connect top and bottom. With swap, the
second player's first move may be action `n * n`. It replaces X's stone with a stone of O on the
reflected cell.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Display, Game, Symmetries, one_per_size
from azjax.games.square import (
    bound_positions,
    cell_names,
    diagonals,
    make_display,
    make_game,
    observation_planes,
    render_board,
    with_pass,
)

_USUAL, _LARGEST = 11, 19


class State(NamedTuple):
    """A position.

    Attributes:
      board: `int8 [n * n]`, row-major, row 0 on top: 1 = X, -1 = O, 0 = empty.
      player: `int8 []`, who is to move: 0 = X, 1 = O.
      over: `bool []`, whether a player has connected both sides.
      swaps: `bool []`, whether the player to move may swap.
    """

    board: jax.Array
    player: jax.Array
    over: jax.Array
    swaps: jax.Array


@one_per_size
def make(n: int = _USUAL, swap: bool = False) -> Game:
    """Returns the game of the given size; repeated calls return the same object.

    Args:
      n: rows and columns.
      swap: whether the second player may swap.
    """
    if not 2 <= n <= _LARGEST:
        raise ValueError(f"hex has no board of {n} by {n}: use 2 to {_LARGEST}")
    cells, mirror = n * n, _mirror(n)

    def seen(board: jax.Array, player: jax.Array) -> jax.Array:
        """Turns the board to a player's perspective, own stones as 1; turning twice restores it."""
        return jnp.where(player == 0, board, -board[mirror])

    def legal_actions(state: State) -> jax.Array:
        free = (seen(state.board, state.player) == 0) & ~state.over
        return jnp.append(free, state.swaps) if swap else free

    def move(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        board = seen(state.board, state.player)
        board = jnp.where(jnp.arange(cells) == action, 1, board)
        board = jnp.where(action == cells, state.board, board)
        over, is_first = _joins(board, n), jnp.all(state.board == 0)
        moved = State(seen(board, state.player), 1 - state.player, over, is_first & swap)
        return moved, over.astype(jnp.float32)

    def start() -> State:
        no = jnp.bool_(False)
        return State(jnp.zeros(cells, jnp.int8), jnp.int8(0), no, no)

    def observe(state: State, encoding: str) -> jax.Array:
        """Encodes the board; `relative` shows it from the mover's perspective."""
        board, player = state.board, state.player
        if encoding == "relative":
            board, player = seen(board, player), jnp.zeros_like(player)
        planes = observation_planes(board, player, (n, n), encoding)
        if not swap:
            return planes
        return jnp.append(planes, jnp.broadcast_to(state.swaps, (n, n, 1)), axis=-1)

    half_turn = diagonals(n)[:2]
    return make_game(
        (n, n),
        cells + swap,
        legal_actions,
        move,
        name=("hex_swap" if swap else "hex") + (f":{n}" if n != _USUAL else ""),
        max_plies=cells + swap,
        init=start,
        observe=observe,
        symmetries=with_pass(half_turn) if swap else Symmetries(half_turn, half_turn),
        most_positions=bound_positions([math.comb(cells, k) for k in range(cells + 1)])
        * (1 + swap),
        display=_display(n, swap),
    )


def _mirror(n: int) -> np.ndarray:
    """Returns the mirror image of each cell across the long diagonal, `int [n * n]`."""
    return np.arange(n * n).reshape(n, n).T.ravel()


def _joins(board: jax.Array, n: int) -> jax.Array:
    """Returns whether stones of value 1 connect top and bottom, by a flood fill from the top."""
    bits = jnp.uint32(1) << jnp.arange(n, dtype=jnp.uint32)
    # Each row is a word: a bit operation acts on all of its cells.
    rows = jnp.sum(jnp.where((board == 1).reshape(n, n), bits[None], 0), axis=1, dtype=jnp.uint32)

    def spread(carry):
        reached, _ = carry
        above, below = jnp.pad(reached[:-1], (1, 0)), jnp.pad(reached[1:], (0, 1))
        near = reached << 1 | reached >> 1 | above | above >> 1 | below | below << 1
        more = (reached | near) & rows
        return more, jnp.any(more != reached)

    top = jnp.where(jnp.arange(n) == 0, rows, 0)
    reached, _ = jax.lax.while_loop(lambda carry: carry[1], spread, (top, top[0] != 0))
    return reached[-1] != 0


def _display(n: int, swap: bool) -> Display:
    """Returns the display; an action is named and drawn where its stone appears."""
    none = np.full(int(swap), n * n)
    cells = [np.append(order, none) for order in (np.arange(n * n), _mirror(n))]
    names = (*cell_names(n, n), "swap")
    return make_display(
        (n, n),
        name_actions=lambda state: [names[cell] for cell in cells[state.player]],
        find_cells=lambda state, is_made: cells[state.player ^ is_made],
        render=lambda state: render_board(state.board, (n, n), slant=1),
        cell_size=45,
        hexagons=True,
    )
