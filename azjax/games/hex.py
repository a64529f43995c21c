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

from azjax.games import square
from azjax.games.base import Display, Game, Symmetries, one_per_size

_USUAL, _LARGEST = 11, 19  # Hex is played on boards of up to 19 rows.


class State(NamedTuple):
    """A position."""

    # `int8 [n * n]`, `int16` if n is above 11; row 0 on top. Connected stones have one number: 1
    # plus their first cell, negative for O. 0 = empty.
    groups: jax.Array
    player: jax.Array  # `int8 []`, who is to move: 0 = X, 1 = O.
    over: jax.Array  # `bool []`, whether a player has connected both sides.
    swaps: jax.Array  # `bool []`, whether the player to move may swap.

    @property
    def board(self) -> jax.Array:
        """The stones, `int8 [n * n]`: 1 = X, -1 = O, 0 = empty."""
        return (self.groups > 0).astype(np.int8) - (self.groups < 0).astype(np.int8)


@one_per_size
def make(n: int = _USUAL, swap: bool = False) -> Game:
    """Returns the game of the given size; repeated calls return the same object."""
    if not 2 <= n <= _LARGEST:
        raise ValueError(f"hex has no board of {n} by {n}: use 2 to {_LARGEST}")
    cells, dtype = n * n, np.dtype(np.int8 if n <= 11 else np.int16)
    mirror = np.arange(cells).reshape(n, n).T.ravel()  # Across the long diagonal.
    neighbors, numbers = _neighbors(n), np.arange(1, cells + 1, dtype=dtype)

    def seen(board: jax.Array, player: jax.Array) -> jax.Array:
        """Turns the board to a player's perspective, own stones as positive numbers."""
        return jnp.where(player == 0, board, -board[mirror])

    def legal_actions(state: State) -> jax.Array:
        free = (seen(state.groups, state.player) == 0) & ~state.over
        return jnp.append(free, state.swaps) if swap else free

    def move(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        is_x = state.player == 0
        cell = jnp.where(is_x, action, jnp.asarray(mirror)[action])
        own, number = jnp.where(is_x, state.groups, -state.groups), (cell + 1).astype(dtype)
        near = own[jnp.asarray(neighbors)[cell]]  # Positive for the groups that the stone joins.
        group = jnp.min(jnp.where(near > 0, near, number))
        joins = (own[:, None] == near) & (near > 0)
        own = jnp.where(jnp.any(joins, axis=1) | (numbers == number), group, own)
        groups = jnp.where(is_x, own, -own)
        swapped = jnp.where(state.groups[mirror] > 0, -numbers, 0)
        groups = jnp.where(action == cells, swapped, groups)
        whole = (own == group).reshape(n, n)
        whole = jnp.where(is_x, whole, whole.T)
        over = jnp.any(whole[0]) & jnp.any(whole[-1]) & (action != cells)
        is_first = jnp.all(state.groups == 0)
        return State(groups, 1 - state.player, over, is_first & swap), over.astype(jnp.float32)

    def start() -> State:
        no = jnp.bool_(False)
        return State(jnp.zeros(cells, dtype), jnp.int8(0), no, no)

    def observe(state: State, encoding: str) -> jax.Array:
        """Encodes the board; `relative` shows it from the mover's perspective."""
        board, player = state.board, state.player
        if encoding == "relative":
            board, player = seen(board, player), jnp.zeros_like(player)
        planes = square.observation_planes(board, player, (n, n), encoding)
        if not swap:
            return planes
        return jnp.append(planes, jnp.broadcast_to(state.swaps, (n, n, 1)), axis=-1)

    half_turn = square.diagonals(n)[:2]
    return square.make_game(
        (n, n),
        cells + swap,
        legal_actions,
        move,
        name=("hex_swap" if swap else "hex") + (f":{n}" if n != _USUAL else ""),
        max_plies=cells + swap,
        init=start,
        observe=observe,
        symmetries=square.with_pass(half_turn) if swap else Symmetries(half_turn, half_turn),
        most_positions=square.bound_positions([math.comb(cells, k) for k in range(cells + 1)])
        * (1 + swap),
        display=_display(n, swap, mirror),
    )


def _neighbors(n: int) -> np.ndarray:
    """Returns the neighbors of each cell, `int [n * n, 6]`; beyond the board, the cell itself."""
    rows, columns = np.divmod(np.arange(n * n)[:, None], n)
    down, right = np.array([[-1, -1, 0, 0, 1, 1], [0, 1, -1, 1, -1, 0]])
    rows, columns = rows + down, columns + right
    is_on_board = (np.minimum(rows, columns) >= 0) & (np.maximum(rows, columns) < n)
    return np.where(is_on_board, rows * n + columns, np.arange(n * n)[:, None])


def _display(n: int, swap: bool, mirror: np.ndarray) -> Display:
    """Returns the display; an action is named and drawn where its stone appears."""
    none = np.full(int(swap), n * n)
    cells = [np.append(order, none) for order in (np.arange(n * n), mirror)]
    names = (*square.cell_names(n, n), "swap")
    return square.make_display(
        (n, n),
        lambda state: [names[cell] for cell in cells[state.player]],
        find_cells=lambda state, is_made: cells[state.player ^ is_made],
        render=lambda state: square.render_board(state.board, (n, n), slant=1),
        cell_size=45,
        hexagons=True,
    )
