"""Othello of any even size; action `i` sets a disc on cell `i`, and action `n * n` passes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax.game import ENCODINGS, Game, Symmetries, observation_planes, where
from azjax.games.square import (
    Stones,
    cell_names,
    diagonals,
    make_state_type,
    on_cells,
    render_board,
)

_SIZES = range(4, 17, 2)
_DIRECTIONS = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]


@functools.cache
def state_type(n: int) -> type[Stones]:
    """Returns the type of a game's positions, every time the same."""

    def draw(state, values=None, labels=None, last=None, size=30 * n) -> drawing.Drawing:
        """Draws the board; what belongs to a pass is not shown."""
        look = on_cells(n * n, values, labels, last)
        return drawing.board(np.asarray(state.board), (n, n), size=size, **look)

    return make_state_type(draw)


def make(n: int = 8) -> Game:
    """Returns the record of a game of `n` rows and columns, every time the same.

    Who cannot turn a disc passes, and only then; when neither can, more discs win.

    Raises:
      ValueError: if there is no such board.
    """
    if n not in _SIZES:
        raise ValueError(f"othello has no board of {n} by {n}: use an even number from 4 to 16")
    return _make(n)


@functools.cache
def _make(n: int) -> Game:
    cells = n * n
    position = state_type(n)

    def shift(planes: jax.Array) -> jax.Array:
        """Moves what is in `bool [8, n, n]` by one cell, each plane in its direction."""
        wide = jnp.pad(planes, ((0, 0), (1, 1), (1, 1)))
        return jnp.stack(
            [
                wide[d, 1 - down : n + 1 - down, 1 - right : n + 1 - right]
                for d, (down, right) in enumerate(_DIRECTIONS)
            ]
        )

    def run(start: jax.Array, other: jax.Array) -> jax.Array:
        """The opponent's discs, without a gap, behind each start `bool [n, n]`: `[8, n, n]`."""
        found = shift(jnp.broadcast_to(start, (len(_DIRECTIONS), n, n))) & other
        for _ in range(n - 3):
            found = found | (shift(found) & other)
        return found

    def moves(board: jax.Array, mark: jax.Array) -> jax.Array:
        """The cells, `bool [cells]`, where a player of that mark may set a disc."""
        grid = board.reshape(n, n)
        behind = shift(run(grid == mark, grid == -mark))
        return ((grid == 0) & jnp.any(behind, axis=0)).ravel()

    def turn(board: jax.Array, mark: jax.Array, action: jax.Array) -> jax.Array:
        """The cells, `bool [cells]`, whose discs a new one turns."""
        grid = board.reshape(n, n)
        found = run((jnp.arange(cells) == action).reshape(n, n), grid == -mark)
        is_held = jnp.any(shift(found) & (grid == mark), axis=(1, 2), keepdims=True)
        return jnp.any(found & is_held, axis=0).ravel()

    def legal_actions(state: Stones) -> jax.Array:
        found = moves(state.board, 1 - 2 * state.player)
        return jnp.append(found, ~jnp.any(found)) & ~state.over

    def step(state: Stones, action: jax.Array) -> tuple[Stones, jax.Array]:
        is_legal = legal_actions(state)[action] & (action >= 0) & (action <= cells)
        mark = 1 - 2 * state.player
        is_set = jnp.arange(cells) == action
        board = jnp.where(turn(state.board, mark, action) | is_set, mark, state.board)
        player, over = 1 - state.player, ~jnp.any(moves(board, -mark) | moves(board, mark))
        moved = state._replace(board=board, player=player, over=over)
        after = where(is_legal, moved, state)
        ahead = jnp.sign(jnp.sum(board, dtype=jnp.int32) * mark).astype(jnp.float32)
        return after, jnp.where(is_legal & over, ahead, 0.0)

    return Game(
        name="othello" if n == 8 else f"othello:{n}",
        num_actions=cells + 1,
        board_shape=(n, n),
        max_plies=2 * (cells - 4),
        most_positions=2 * 2**4 * 3 ** (cells - 4),
        encodings=ENCODINGS,
        init=lambda: position(jnp.asarray(_start(n)), jnp.int8(0), jnp.bool_(False)),
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=lambda state, encoding: observation_planes(
            state.board, state.player, (n, n), encoding
        ),
        render=lambda state: render_board(state.board, (n, n)),
        symmetries=symmetries(n),
        draw=position.draw,
        name_actions=lambda state: (*cell_names(n, n), "pass"),
    )


def _start(n: int) -> np.ndarray:
    board = np.zeros((n, n), np.int8)
    board[n // 2 - 1 : n // 2 + 1, n // 2 - 1 : n // 2 + 1] = [[-1, 1], [1, -1]]
    return board.ravel()


def symmetries(n: int) -> Symmetries:
    """Returns those that leave the first four discs as they are: diagonals and half a turn."""
    cells = diagonals(n)
    passing = np.full((len(cells), 1), n * n, np.int32)
    return Symmetries(cells=cells, actions=np.concatenate([cells, passing], axis=1))
