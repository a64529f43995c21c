"""Othello of any even size; action `i` places a disc on cell `i`, and action `n * n` passes."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import square
from azjax.games.base import Game, one_per_size

_SIZES = range(4, 17, 2)  # A row fits in 32 bits, but larger boards are not tested.
_COUNTED = {4: 65_509}  # Reachable positions, counted by `solver.solve`.
_DIRECTIONS = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]


@one_per_size
def make(n: int = 8) -> Game:
    """Returns the game of the given size; repeated calls return the same object.

    Passing is legal only if the player cannot flip a disc. The game is over when neither player can
    flip one; the player with more discs wins.
    """
    if n not in _SIZES:
        raise ValueError(f"othello has no board of {n} by {n}: use an even number from 4 to 16")
    cells = n * n
    bits = (1 << np.arange(n)).astype(np.uint32)
    whole = np.uint32(2**n - 1)  # All bits of a row.
    right = np.array([[max(c, 0)] for _, c in _DIRECTIONS], np.uint32)
    left = np.array([[max(-c, 0)] for _, c in _DIRECTIONS], np.uint32)

    def words(cells: jax.Array) -> jax.Array:
        """Packs `bool [n * n]` row by row into `uint32 [n]`; the first column is the lowest bit."""
        return jnp.sum(jnp.where(cells.reshape(n, n), bits[None], 0), axis=1, dtype=jnp.uint32)

    def cells_of(rows: jax.Array) -> jax.Array:
        """Returns the cells of words as `bool [n * n]`."""
        return (rows[:, None] & bits[None] != 0).ravel()

    def shift(rows: jax.Array) -> jax.Array:
        """Moves the discs in words `[8, n]` by one cell, in each of the directions."""
        up, level, down = rows[:3], rows[3:5], rows[5:]
        up = jnp.pad(up[:, 1:], ((0, 0), (0, 1)))
        down = jnp.pad(down[:, :-1], ((0, 0), (1, 0)))
        moved = jnp.concatenate([up, level, down])
        return (moved << right >> left) & whole

    def find_runs(start: jax.Array, other: jax.Array) -> jax.Array:
        """Finds the runs `[8, n]` of the opponent's discs next to the cells `start [n]`."""
        runs = shift(jnp.broadcast_to(start, (len(_DIRECTIONS), n))) & other[None]
        for _ in range(n - 3):
            runs = runs | (shift(runs) & other[None])
        return runs

    def moves(own: jax.Array, other: jax.Array) -> jax.Array:
        """Finds the legal cells of the player who has the discs `own`; all are words `[n]`."""
        return _union(shift(find_runs(own, other))) & ~(own | other)

    def turn(placed: jax.Array, own: jax.Array, other: jax.Array) -> jax.Array:
        """Finds the opponent's discs that a new disc flips; all are words `[n]`."""
        runs = find_runs(placed, other)
        is_held = jnp.any(shift(runs) & own[None], axis=1, keepdims=True)
        return _union(jnp.where(is_held, runs, 0))

    def legal_actions(state: square.State) -> jax.Array:
        mark = 1 - 2 * state.player
        free = cells_of(moves(words(state.board == mark), words(state.board == -mark)))
        return jnp.append(free, ~jnp.any(free)) & ~state.over

    def move(state: square.State, action: jax.Array) -> tuple[square.State, jax.Array]:
        mark = 1 - 2 * state.player
        own, other = words(state.board == mark), words(state.board == -mark)
        placed = words(jnp.arange(cells) == action)
        turned = turn(placed, own, other)
        board = jnp.where(cells_of(turned | placed), mark, state.board)
        own, other = own | turned | placed, other & ~turned
        over = ~jnp.any(moves(own, other) | moves(other, own))
        ahead = jnp.sign(jnp.sum(board * mark, dtype=jnp.int32)).astype(jnp.float32)
        return square.State(board, 1 - state.player, over), jnp.where(over, ahead, 0.0)

    discs = np.zeros((n, n), np.int8)
    discs[n // 2 - 1 : n // 2 + 1, n // 2 - 1 : n // 2 + 1] = [[-1, 1], [1, -1]]
    return square.make_game(
        (n, n),
        cells + 1,
        legal_actions,
        move,
        name="othello" if n == 8 else f"othello:{n}",
        max_plies=2 * (cells - 4),
        init=lambda: square.start(discs),
        # Those of the first four discs.
        symmetries=square.with_pass(square.diagonals(n)),
        most_positions=_COUNTED.get(n, 2 * 2**4 * 3 ** (cells - 4)),
        display=square.make_display((n, n), (*square.cell_names(n, n), "pass")),
    )


def _union(rows: jax.Array) -> jax.Array:
    """Returns the bitwise OR `[n]` of words `[8, n]`."""
    return jax.lax.reduce(rows, np.uint32(0), jax.lax.bitwise_or, (0,))
