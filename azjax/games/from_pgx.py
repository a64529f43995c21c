"""Games of pgx (Koyamada et al. 2023) as records, such as `pgx:othello` and `pgx:go_5x5`.

The rules and planes come from pgx. This module adapts them to the conventions of
`azjax.games.base`: player 0 moves first, a finished game has no legal action, and an illegal action
changes nothing. States do not contain their observation.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax._commands import check_installed
from azjax._settings import did_you_mean, mixes_types
from azjax.games import connect_four, hex, mnk, othello
from azjax.games.base import Display, Game, State, Symmetries, guard_step
from azjax.games.square import State as Stones
from azjax.games.square import make_display, render_board, with_pass

_PLIES = {  # The length of the longest game.
    "animal_shogi": 256,
    "chess": 512,
    "connect_four": 42,
    "gardner_chess": 256,
    "hex": 122,
    "othello": 120,
    "shogi": 512,
    "tic_tac_toe": 9,
}
NAMES = (*_PLIES, "go_SIZExSIZE")


@functools.cache
def make(name: str) -> Game:
    """Returns a game of pgx; repeated calls return the same object.

    The encoding `relative` is the observation of pgx for the player to move.

    Args:
      name: the name in pgx, such as `othello`; Go has any size from 2 to 19, as in `go_5x5`.

    Raises:
      ValueError: if pgx has no such game of two players without chance or hidden information,
        cannot be imported, or JAX is in 64-bit mode.
    """
    board = re.fullmatch(r"go_(\d+)x\1", name)
    size = int(board[1]) if board else 0
    if name not in _PLIES and not 2 <= size <= 19:
        raise ValueError(
            f"pgx:{name} is not one of the games of pgx for two players without chance or hidden "
            f"information: use pgx:NAME with one of {', '.join(NAMES)}{did_you_mean(name, NAMES)}"
        )
    settings: Any = jax.config
    if settings.jax_enable_x64:
        raise ValueError(
            f"pgx:{name} fails in JAX's 64-bit mode, as the games of pgx mix types: turn "
            "jax_enable_x64 off"
        )
    check_installed("pgx", f"pgx:{name}")
    try:
        import pgx
        from pgx import go
    except ImportError as error:  # Its version may not fit the installed JAX.
        raise ValueError(f"pgx:{name} cannot import pgx: {error}") from error
    untyped: Any = name
    env: Any = go.Go(size=size) if size else pgx.make(untyped)
    with jax.ensure_compile_time_eval():
        begun = jax.device_get(jax.jit(mixes_types(env.init))(jax.random.key(0)))
    env_step, env_observe = mixes_types(env.step), mixes_types(env.observe)
    height = jax.eval_shape(env_observe, begun).shape[0]
    first, num_actions = int(begun.current_player), len(begun.legal_action_mask)

    def bare(state: Any) -> Any:
        nothing = jnp.zeros_like(state.rewards)  # Not part of the position.
        return state.replace(observation=jnp.zeros(0, bool), rewards=nothing)

    def legal_actions(state: Any) -> jax.Array:
        return state.legal_action_mask & ~is_over(state)

    def is_over(state: Any) -> jax.Array:
        return state.terminated | state.truncated

    def player(state: Any) -> jax.Array:
        return jnp.int8(state.current_player != first)

    def move(state: Any, action: jax.Array) -> tuple[State, jax.Array]:
        after = env_step(state, action)
        return bare(after), after.rewards[state.current_player]

    def observe(state: Any, encoding: str) -> jax.Array:
        del encoding  # There is only one.
        planes = env_observe(state)
        return planes if planes.dtype == bool else planes.astype(jnp.float32)

    return Game(
        name=f"pgx:{name}",
        num_actions=num_actions,
        max_plies=2 * size**2 if size else _PLIES[name],
        encodings=("relative",),
        init=lambda: jax.tree.map(jnp.asarray, bare(begun)),
        step=guard_step(num_actions, legal_actions, move),
        legal_actions=legal_actions,
        is_over=is_over,
        player=player,
        observe=observe,
        symmetries=_symmetries(name, height),
        display=_make_display(name, height, env_observe, player),
    )


def _symmetries(name: str, size: int) -> Symmetries | None:
    if name == "othello":
        return othello.symmetries(size)
    if name != "tic_tac_toe" and not name.startswith("go_"):
        return None
    square = mnk.symmetries(size, size)
    return square if name == "tic_tac_toe" else with_pass(square.cells)


def _make_display(
    name: str,
    size: int,
    observe: Callable[[Any], jax.Array],
    player: Callable[[Any], jax.Array],
) -> Display:
    if "chess" in name:
        names = _chess_names(size, player)
        return Display(lambda state: _write_chess(state, size, int(player(state))), None, names)
    if "shogi" in name:
        return Display()
    if name.startswith("go_"):
        like = _go_display(size)
    elif name == "hex":  # Its actions are cells.
        like = hex.display(size, True, mirror=np.arange(size**2))
    elif name == "connect_four":
        like = connect_four.display(6, 7, 4)
    else:
        like = mnk.display(3, 3, 3) if name == "tic_tac_toe" else othello.display(size)

    def stones(state: Any) -> Stones:
        planes = np.asarray(observe(jax.tree.map(jnp.asarray, state)))
        board: Any = (planes[..., 0].astype(int) - planes[..., 1]).ravel()
        mover = int(player(state))
        return Stones(-board if mover else board, jnp.int8(mover), jnp.bool_(False))

    def adapt(function: Any) -> Any:
        return lambda state, **options: function(stones(state), **options)

    return Display(*map(adapt, like))


def _go_display(size: int) -> Display:
    """Returns the display of Go, with its own coordinates: `a1` is the lower left, without `i`."""
    letters = "abcdefghjklmnopqrst"[:size]
    names = [f"{letter}{row}" for row in range(size, 0, -1) for letter in letters]
    return make_display(
        (size, size),
        [*names, "pass"],
        render=lambda state: render_board(state.board, (size, size), names=names),
    )


def _chess_names(size: int, player: Callable[[Any], jax.Array]) -> Callable[[Any], list[str]]:
    """Builds `Display.name_actions` for chess on `size` ranks and files.

    An action is an origin and a plane, which determines the target, from the mover's perspective.
    The planes are those of AlphaZero (Silver et al. 2018, Table S2): underpromotions, and moves of
    a queen and of a knight. Squares are numbered file by file.
    """
    steps = [*range(1 - size, 0), *range(1, size)]
    queen = [(x * step, y * step) for x, y in ((0, 1), (1, 0), (1, 1), (1, -1)) for step in steps]
    knight = [(x, y) for x in (-2, -1, 2, 1) for y in (-2, -1, 1, 2) if abs(x) != abs(y)]
    moves = np.array([(0, 1), (1, 1), (-1, 1)] * 3 + queen + knight)
    origins = np.stack(np.divmod(np.arange(size**2), size), axis=-1)[:, None]
    targets = origins + moves
    on_board = np.all((targets >= 0) & (targets < size), axis=-1)
    promotes = (np.arange(len(moves)) < 9) & (origins[..., 1] == size - 2)
    is_move = on_board & (promotes | (np.arange(len(moves)) >= 9))
    to = np.where(is_move, targets @ [size, 1], -1)
    promoted = ["rbn"[plane // 3] if plane < 9 else "" for plane in range(len(moves))]

    def name_actions(state: Any) -> list[str]:
        ranks = range(1, size + 1) if int(player(state)) == 0 else range(size, 0, -1)
        squares = [f"{'abcdefgh'[file]}{rank}" for file in range(size) for rank in ranks]
        return [
            squares[origin] + squares[target] + promoted[plane]
            for origin, row in enumerate(to)
            for plane, target in enumerate(row)
        ]

    return name_actions


def _write_chess(state: Any, size: int, player: int) -> str:
    """Returns the board as text, the pieces of the first player in capitals."""
    inner = getattr(state, "_x", state)
    board = np.asarray(inner.board if hasattr(inner, "board") else inner._board)
    grid = np.rot90(board.reshape(size, size))
    grid = -np.flip(grid, axis=0) if player else grid
    letters = ".PNBRQKkqrbnp"  # The numbers of the opponent's pieces are negative.
    rows = [
        f"{size - r} " + " ".join(letters[piece] for piece in row)
        for r, row in enumerate(grid.tolist())
    ]
    return "\n".join([*rows, "  " + " ".join("abcdefgh"[:size])])
