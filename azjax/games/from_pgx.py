"""Games of pgx (Koyamada et al. 2023) as records, such as `pgx:othello` and `pgx:go_5x5`.

The rules, the planes and the pictures are pgx's own. What differs is put right here: who is to
move is counted from the first player on, a finished game has no legal action, an illegal one
changes nothing, and a state does not carry its observation along.
"""

import functools
import math
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax._commands import command
from azjax._settings import did_you_mean
from azjax.games import connect_four, hex, mnk, othello
from azjax.games.base import Game, State, Symmetries, where
from azjax.games.square import cell_names, render_board

_CHESS, _SHOGI, _ANIMAL = ".PNBRQK", ".PLNSBRGK+ABCDE", ".PBRKG"
_PLIES = {  # Of the longest game.
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
    """Returns the record of one of pgx's games, every time the same.

    Its encoding `relative` is pgx's observation for the player to move.

    Args:
      name: as pgx calls it, such as `othello`; Go has any size from 2 to 19, as in `go_5x5`.

    Raises:
      ValueError: if pgx has no such game of two players and perfect information.
      ImportError: if pgx is not installed.
    """
    go = re.fullmatch(r"go_(\d+)x\1", name)
    size = int(go[1]) if go else 0
    if name not in _PLIES and not 2 <= size <= 19:
        raise ValueError(
            f"pgx:{name} is no game of two players and perfect information: use pgx: and one of "
            f"{', '.join(NAMES)}{did_you_mean(name, NAMES)}"
        )
    env = _environment(name, size)
    with jax.ensure_compile_time_eval():
        begun = jax.device_get(jax.jit(env.init)(jax.random.key(0)))
    height, width, _ = jax.eval_shape(env.observe, begun).shape
    first, num_actions = int(begun.current_player), len(begun.legal_action_mask)

    def bare(state: Any) -> Any:
        nothing = jnp.zeros_like(state.rewards)  # What is seen and earned is not of the position.
        return state.replace(observation=jnp.zeros(0, bool), rewards=nothing)

    def legal_actions(state: Any) -> jax.Array:
        return state.legal_action_mask & ~is_over(state)

    def is_over(state: Any) -> jax.Array:
        return state.terminated | state.truncated

    def player(state: Any) -> jax.Array:
        return jnp.int8(state.current_player != first)

    def step(state: Any, action: jax.Array) -> tuple[State, jax.Array]:
        is_legal = legal_actions(state)[action] & (action >= 0) & (action < num_actions)
        after = env.step(state, action)
        reward = after.rewards[state.current_player]
        return where(is_legal, bare(after), state), jnp.where(is_legal, reward, 0.0)

    def observe(state: Any, encoding: str) -> jax.Array:
        del encoding  # There is one.
        planes = env.observe(state)
        return planes if planes.dtype == bool else planes.astype(jnp.float32)

    ours = _as_ours(name, height)

    def render(state: Any) -> str:
        if ours is None:
            return _write_pieces(name, state, int(player(state)))
        board = _stones(name, env, state, int(player(state)))
        return render_board(board, board.shape, slant=int(name == "hex"))

    def draw(state: Any, **look) -> drawing.Drawing:
        if ours is None:
            return _draw_pieces(state, **look)
        board = _stones(name, env, state, int(player(state))).ravel()
        return ours(board, **look)

    return Game(
        name=f"pgx:{name}",
        num_actions=num_actions,
        board_shape=(height, width),
        max_plies=2 * size**2 if size else _PLIES[name],
        most_positions=None,
        encodings=("relative",),
        init=lambda: jax.tree.map(jnp.asarray, bare(begun)),
        step=step,
        legal_actions=legal_actions,
        is_over=is_over,
        player=player,
        observe=observe,
        render=render,
        symmetries=_symmetries(name, height),
        draw=draw,
        name_actions=_namer(name, height, player),
    )


def _environment(name: str, size: int) -> Any:
    try:
        import pgx
        from pgx import go
    except ImportError as error:
        install = command("pip", "install", "azjax[pgx]")
        raise ImportError(f"pgx:{name} needs the package pgx: {install}") from error
    known: Any = name
    return go.Go(size=size) if size else pgx.make(known)


def _symmetries(name: str, size: int) -> Symmetries | None:
    """Those of our own games of that name; Go has all of the square's, and a pass."""
    if name == "tic_tac_toe":
        return mnk.symmetries(3, 3)
    if name == "othello":
        return othello.symmetries(size)
    if not name.startswith("go_"):
        return None
    cells = mnk.symmetries(size, size).cells
    passing = np.full((len(cells), 1), size**2, np.int32)
    return Symmetries(cells=cells, actions=np.concatenate([cells, passing], axis=1))


def _namer(name: str, size: int, player: Any) -> Any:
    """Builds `Game.name_actions`; None where actions go by their numbers."""
    if name in ("othello", "hex") or name.startswith("go_"):
        last = "swap" if name == "hex" else "pass"
        return lambda state: (*cell_names(size, size), last)
    if name not in ("chess", "gardner_chess"):
        return None
    # From each square, by file and rank as the mover sees them, along each of some planes.
    if name == "chess":
        from pgx._src.games.chess import FROM_PLANE as targets
    else:
        from pgx.gardner_chess import TO_MAP as targets
    to = np.asarray(targets)
    promoted = np.where(np.arange(to.shape[1]) < 9, np.arange(to.shape[1]) // 3, 3)

    def name_actions(state: Any) -> list[str]:
        ranks = range(1, size + 1) if int(player(state)) == 0 else range(size, 0, -1)
        squares = [f"{'abcdefgh'[file]}{rank}" for file in range(size) for rank in ranks]
        return [
            squares[origin] + squares[target] + "rbn "[promoted[plane]].strip()
            for origin, row in enumerate(to)
            for plane, target in enumerate(row)
        ]

    return name_actions


def _as_ours(name: str, size: int) -> Callable[..., drawing.Drawing] | None:
    """How a game like one of ours is drawn, `(board, **look)`; None for games of pieces."""

    def like(position: Any) -> Callable[..., drawing.Drawing]:
        return lambda board, **look: position(board, jnp.int8(0), jnp.bool_(False)).draw(**look)

    if name.startswith("go_"):
        return like(othello.state_type(size))  # Stones, and an action beyond those of the cells.
    known = {
        "tic_tac_toe": like(mnk.state_type(3, 3, 3)),
        "connect_four": like(connect_four.state_type(6, 7, 4)),
        "othello": like(othello.state_type(8)),
        "hex": hex.draw_as_it_lies,
    }
    return known.get(name)


def _stones(name: str, env: Any, state: Any, player: int) -> np.ndarray:
    """The board, `int [H, W]`: 1 for the first player's stones, -1 for the second's."""
    if name == "hex":  # Its observation is turned for the second player.
        board = np.sign(np.asarray(state._x.board)).reshape(11, 11)
    else:
        planes = np.asarray(env.observe(state))
        board = planes[..., 0].astype(int) - planes[..., 1]
    return -board if player else board


def _write_pieces(name: str, state: Any, player: int) -> str:
    """Writes a board of pieces for a terminal, the first player's in capitals."""
    inner = getattr(state, "_x", state)
    if name in ("chess", "gardner_chess"):
        board = np.asarray(inner.board if name == "chess" else inner._board)
        size = math.isqrt(len(board))
        grid = np.rot90(board.reshape(size, size))
        rows = _letters(-np.flip(grid, axis=0) if player else grid, _CHESS).splitlines()
        ranks = [f"{size - r} {row}" for r, row in enumerate(rows)]
        return "\n".join([*ranks, "  " + " ".join("abcdefgh"[:size])])
    if name == "shogi":
        letters, shape, board, hand = _SHOGI, (9, 9), inner.board, inner.hand
    else:
        letters, shape, board, hand = _ANIMAL, (3, 4), inner._board, inner._hand
    board, kinds = np.asarray(board) + 1, len(letters) - 1
    board = np.where(board > kinds, kinds - board, board)
    board = -board[::-1] if player else board
    hands = np.asarray(hand)[:: -1 if player else 1]
    first, second = ("".join(np.repeat([*letters[1 : 1 + len(row)]], row)) or "-" for row in hands)
    held = f"in hand: {first} and {second.lower()}"
    return _letters(np.rot90(board.reshape(shape), 3), letters) + "\n" + held


def _letters(grid: np.ndarray, letters: str) -> str:
    rows = [
        [letters[piece] if piece >= 0 else letters[-piece].lower() for piece in row]
        for row in grid.tolist()
    ]
    return "\n".join(" ".join(row) for row in rows)


def _draw_pieces(state: Any, values=None, labels=None, last=None, size: float = 240):
    """Draws pgx's own picture; values, labels and the last action are not shown in it."""
    del values, labels, last
    root = ElementTree.fromstring(jax.tree.map(jnp.asarray, state).to_svg(color_theme="light"))
    width, height = (float(root.get(side, "0").removesuffix("px")) for side in ("width", "height"))
    root.set("viewBox", f"0 0 {width:g} {height:g}")
    root.set("width", f"{size:g}")
    root.set("height", f"{size * height / width:g}")
    return drawing.Drawing(root)
