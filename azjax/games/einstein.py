"""EinStein würfelt nicht! (Althöfer 2004) of any size: a die decides which stones may move.

Both players have stones numbered from 1 on, with which they fill a triangle in opposite corners of
the board: 6 stones on 5x5, as the game is played, or 3 on 3x3. The numbers follow row by row; in
the original game, each player places them freely. The die shows one of the numbers, all equally
likely. The stone with this number moves; if it was captured, one of those next to it in number. It
steps towards the opposite corner, along a row, a column or the diagonal, and captures any stone,
even its own. A player wins by reaching the corner or by capturing all stones.

Action `3 * stone + d` moves a stone down if `d` is 0, diagonally if 1, and right if 2, as seen by
player 0. Player 1 sees the board rotated by 180 degrees. At a throw, action `i` is the number
`i + 1`, and `player` is already the one who moves after it.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.drawing import CELL, note
from azjax.games.base import Display, Game, one_per_size, where
from azjax.games.square import cell_names, make_display, make_game

_USUAL = 5


class State(NamedTuple):
    """A position.

    Attributes:
      stones: `int8 [n * n]`, row-major, row 0 on top: the numbers of the stones, negative for
        player 1. 0 = empty.
      player: `int8 []`, who is to move, or to throw the die.
      die: `int8 []`, the number shown; 0 = the die is to be thrown.
      over: `bool []`, whether a player has won.
    """

    stones: jax.Array
    player: jax.Array
    die: jax.Array
    over: jax.Array

    @property
    def board(self) -> jax.Array:
        """The owners of the stones, `int8 [n * n]`: 1 = player 0, -1 = player 1, 0 = empty."""
        return (self.stones > 0).astype(np.int8) - (self.stones < 0).astype(np.int8)


@one_per_size
def make(n: int = _USUAL) -> Game:
    """Returns the game with `n` rows and columns; repeated calls return the same object."""
    if not 3 <= n <= 8:
        raise ValueError(f"einstein has no board of {n} by {n}: use 3 to 8")
    cells = np.arange(n * n)
    row, column = np.divmod(cells, n)
    is_filled = row + column < (n + 1) // 2
    setup = np.where(is_filled, np.cumsum(is_filled), 0).astype(np.int8)
    count = np.sum(is_filled).item()
    numbers = np.arange(1, count + 1, dtype=np.int8)
    down, right = row[:, None] + np.array([1, 1, 0]), column[:, None] + np.array([0, 1, 1])
    targets = np.where(np.maximum(down, right) < n, n * down + right, -1)
    outcomes = np.arange(3 * count) < count

    def legal_actions(state: State) -> jax.Array:
        own = _seen(state)
        is_left = jnp.any(own == numbers[:, None], axis=1)
        lower = jnp.max(jnp.where(is_left & (numbers <= state.die), numbers, np.int8(-1)))
        higher = jnp.min(jnp.where(is_left & (numbers >= state.die), numbers, np.int8(127)))
        may_move = (numbers == lower) | (numbers == higher)
        moves = may_move[:, None] & (jnp.asarray(targets)[_places(own, numbers)] >= 0)
        return jnp.where(state.die == 0, outcomes, moves.ravel()) & ~state.over

    def move(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        own, stone = _seen(state), action // 3
        place = _places(own, numbers)[stone]
        target = jnp.asarray(targets)[place, action % 3]
        own = own.at[place].set(0).at[target].set(jnp.asarray(numbers)[stone])
        won = (own[-1] > 0) | ~jnp.any(own < 0)
        stones = jnp.where(state.player == 0, own, -own[::-1])
        moved = State(stones, 1 - state.player, jnp.int8(0), won)
        thrown = state._replace(die=jnp.asarray(action + 1, jnp.int8))
        return where(state.die == 0, thrown, moved), jnp.float32(won & (state.die != 0))

    def observe(state: State, encoding: str) -> jax.Array:
        """Encodes the mover's stones by number, the opponent's, and the stones that may move."""
        del encoding  # There is only one.
        own = _seen(state)[:, None]
        may_move = jnp.any(legal_actions(state).reshape(-1, 3), axis=1) & (state.die != 0)
        moving = jnp.any((own == numbers) & may_move, axis=1, keepdims=True)
        planes = own == np.concatenate([numbers, -numbers])
        return jnp.append(planes, moving, axis=1).reshape(n, n, -1)

    def chance(state: State) -> jax.Array:
        is_thrown = (state.die == 0) & legal_actions(state)
        return jnp.where(is_thrown, jnp.float32(1 / count), 0)

    start = setup - setup[::-1]
    # The other stones end before the corner. Each player throws before each of these moves.
    moves = int(np.sum((2 * (n - 1) - row - column)[is_filled])) - (count - 1)
    boards = (math.comb(2 * count, k) * math.perm(n * n, k) for k in range(2 * count + 1))
    return make_game(
        (n, n),
        3 * count,
        legal_actions,
        move,
        name="einstein" + (f":{n}" if n != _USUAL else ""),
        max_plies=4 * moves,
        encodings=("relative",),
        init=lambda: State(jnp.asarray(start), jnp.int8(0), jnp.int8(0), jnp.bool_(False)),
        observe=observe,
        most_positions=2 * moves * (1 + count) * sum(boards),
        display=_display(n, numbers, targets),
        chance=chance,
    )


def _seen(state: State) -> jax.Array:
    """Turns the board to the perspective of the player to move, with positive own stones."""
    return jnp.where(state.player == 0, state.stones, -state.stones[::-1])


def _places(own: jax.Array, numbers: np.ndarray) -> jax.Array:
    return jnp.argmax(own == numbers[:, None], axis=1)


def _display(n: int, numbers: np.ndarray, targets: np.ndarray) -> Display:
    cells, owners = cell_names(n, n), np.repeat(numbers, 3)

    def find_cells(state: State, is_made: bool) -> np.ndarray:
        if (state.die == 0) != is_made:  # The action throws the die.
            return np.full(len(owners), -1)
        player = state.player ^ is_made
        place = np.asarray(_places(_seen(state._replace(player=player)), numbers))
        to = np.repeat(place, 3) if is_made else targets[place].ravel()
        return n * n - 1 - to if player else to

    def name_actions(state: State) -> list[str]:
        if state.die == 0:
            return [str(i + 1) for i in range(len(owners))]
        to = find_cells(state, False)
        return [f"{stone}{cells[cell % n**2]}" for stone, cell in zip(owners, to, strict=True)]

    def render(state: State) -> str:
        marks = [f"{'OX'[x > 0]}{abs(x)}" if x else "." for x in np.asarray(state.stones).tolist()]
        rows = [[f"{r + 1}", *marks[n * r : n * r + n]] for r in range(n)]
        rows = [["", *(cell[0] for cell in cells[:n])], *rows, ["die:", str(state.die or "-")]]
        return "\n".join(" ".join(f"{mark:2}" for mark in row).rstrip() for row in rows)

    def draw(state: State, *args: Any, **look: Any) -> Any:
        picture = stones.draw(state, *args, **look)
        for cell in np.flatnonzero(state.stones):
            x, y = (cell % n + 0.95) * CELL, (cell // n + 0.3) * CELL
            number, style = abs(state.stones[cell]), {"font-size": 8, "text-anchor": "end"}
            picture.element[0].append(note(x, y, f"{number}", style))
        return picture

    stones: Any = make_display((n, n), name_actions, find_cells, render)
    return stones._replace(draw=draw)
