"""Hex of any size, with or without swap; action `i` places a stone on the mover's cell `i`.

X connects top and bottom, O left and right. For O, cells are numbered after a reflection across the
long diagonal: from the mover's perspective, both players connect top and bottom. With swap, the
second player's first move may be action `n * n`. It replaces X's stone with a stone of O on the
reflected cell.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax.drawing import CELL, COLOR_HEAT, COLOR_O, COLOR_X, GRID, LAST, PAPER, node
from azjax.games.base import Game, Symmetries, where
from azjax.games.display import Display
from azjax.games.square import (
    ENCODINGS,
    bound_positions,
    cell_names,
    diagonals,
    observation_planes,
    on_cells,
    render_board,
)

_USUAL, _LARGEST = 11, 19
_HIGH = 2 * CELL / math.sqrt(3)  # Height of a hexagon in pictures; its width is `CELL`.


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


def make(n: int = _USUAL, swap: bool = False) -> Game:
    """Returns the game of the given size; repeated calls return the same object.

    Args:
      n: rows and columns.
      swap: whether the second player may swap.
    """
    if not 1 <= n <= _LARGEST:
        raise ValueError(f"hex has no board of {n} by {n}: use 1 to {_LARGEST}")
    if swap and n == 1:
        raise ValueError("hex of 1 by 1 is over before a swap is possible: use 2 or more")
    return _make(n, swap)


@functools.cache
def _make(n: int, swap: bool) -> Game:
    cells, mirror = n * n, _mirror(n)

    def seen(board: jax.Array, player: jax.Array) -> jax.Array:
        """Turns the board to a player's perspective, own stones as 1; turning twice restores it."""
        return jnp.where(player == 0, board, -board[mirror])

    def legal_actions(state: State) -> jax.Array:
        free = (seen(state.board, state.player) == 0) & ~state.over
        return jnp.append(free, state.swaps) if swap else free

    def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        is_legal = legal_actions(state)[action] & (action >= 0) & (action < cells + swap)
        board = seen(state.board, state.player)
        board = jnp.where(jnp.arange(cells) == action, 1, board)
        board = jnp.where(action == cells, state.board, board)
        over, is_first = _joins(board, n), jnp.all(state.board == 0)
        moved = State(seen(board, state.player), 1 - state.player, over, is_first & swap)
        after = where(is_legal, moved, state)
        return after, (is_legal & over).astype(jnp.float32)

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

    half_turn = diagonals(n)[: 2 if n > 1 else 1]
    swapping = np.full((len(half_turn), 1), cells, np.int32)
    return Game(
        name=("hex_swap" if swap else "hex") + (f":{n}" if n != _USUAL else ""),
        num_actions=cells + swap,
        max_plies=cells + swap,
        encodings=ENCODINGS,
        init=start,
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=observe,
        symmetries=Symmetries(
            half_turn, np.concatenate([half_turn, swapping], axis=1) if swap else half_turn
        ),
        most_positions=bound_positions([math.comb(cells, k) for k in range(cells + 1)])
        * (1 + swap),
        display=make_display(n, swap),
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


def make_display(n: int, swap: bool, mirrored: bool = True) -> Display:
    """Returns the display; an action is named and drawn where its stone appears.

    Args:
      n: rows and columns.
      swap: whether the last action is a swap.
      mirrored: whether the actions of O are numbered after a reflection.
    """
    own = np.arange(n * n)
    cells, names = (own, _mirror(n) if mirrored else own), cell_names(n, n)  # Cells of actions.

    def draw(state, values=None, labels=None, last=None, size=None) -> drawing.Drawing:
        mover, other = cells[state.player], cells[1 - state.player]
        options = on_cells(mover, other, values, labels, last)
        return _draw_board(np.asarray(state.board), n, size, **options)

    return Display(
        render=lambda state: render_board(state.board, (n, n), slant=1),
        draw=draw,
        name_actions=lambda state: [*(names[i] for i in cells[state.player]), *["swap"] * swap],
    )


def _draw_board(board: np.ndarray, n: int, size: Any, values: Any, labels: Any, last: Any):
    """Draws a rhombus: each row is half a cell to the right of the one above.

    The arguments are those of `drawing.board`. Sides have the color of the player who connects
    them: X top and bottom, O left and right.
    """
    centers = [
        ((c + r / 2 + 0.5) * CELL, (0.75 * r + 0.5) * _HIGH) for r in range(n) for c in range(n)
    ]

    def corner(center: tuple[float, float], k: int, scale: float = 1) -> str:
        angle, reach = math.radians(60 * (k % 6) - 30), scale * _HIGH / 2  # Clockwise.
        return (
            f"{center[0] + reach * math.cos(angle):.2f},{center[1] + reach * math.sin(angle):.2f}"
        )

    def hexagon(center: tuple[float, float], scale: float, attributes: dict[str, Any]):
        points = " ".join(corner(center, k, scale) for k in range(6))
        return node("polygon", {"points": points} | attributes)

    parts = []
    for i, center in enumerate(centers):
        parts.append(hexagon(center, 1, {"fill": PAPER, "stroke": GRID, "class": "az-paper"}))
        if values is not None and values[i] > 0:
            opacity = 0.7 * min(float(values[i]), 1.0)
            attributes = {"fill": COLOR_HEAT, "fill-opacity": opacity, "class": "az-heat"}
            parts.append(hexagon(center, 1, attributes))
    for side, first, color in (  # Three corners of each cell, clockwise.
        (centers[:n], 4, COLOR_X),
        (centers[: -n - 1 : -1], 1, COLOR_X),
        (centers[::n][::-1], 2, COLOR_O),
        (centers[n - 1 :: n], 5, COLOR_O),
    ):
        points = " ".join(corner(center, first + k) for center in side for k in range(3))
        line = {"fill": "none", "stroke": color, "stroke-width": 3, "stroke-linejoin": "round"}
        parts.append(node("polyline", {"points": points} | line))
    if last is not None:
        parts.append(hexagon(centers[last], 0.85, LAST))
    for i, mark in enumerate(board.tolist()):
        if mark:
            parts.append(drawing.stone(centers[i], mark))
        elif labels is not None and labels[i]:
            parts.append(drawing.cell_label(centers[i], labels[i]))
    width, height = (1.5 * n - 0.5) * CELL + 6, (0.75 * n + 0.25) * _HIGH + 6
    marks = np.array([".", "X", "O"])[board].reshape(n, n)
    label = "board " + " ".join("".join(row) for row in marks)
    group = node("g", {"transform": "translate(3 3)"}, *parts)
    scale = 1 if size is None else size / width
    return drawing.canvas(width, height, group, scale=scale, label=label)
