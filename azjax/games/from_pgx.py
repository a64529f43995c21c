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
from azjax.games import mnk
from azjax.games.base import Display, Game, State, Symmetries, guard_step
from azjax.games.square import State as Stones
from azjax.games.square import diagonals, make_display, render_board, with_pass

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

    The encoding `relative` is the observation of pgx for the player to move. Go has any size from 2
    to 19, as in `go_5x5`.
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
        display=_go_display(size, env_observe, player) if size else Display(),
    )


def _symmetries(name: str, size: int) -> Symmetries | None:
    if name == "othello":
        return with_pass(diagonals(size))
    if name == "tic_tac_toe" or name.startswith("go_"):
        all_eight = mnk.symmetries(size, size)
        return all_eight if name == "tic_tac_toe" else with_pass(all_eight.cells)
    return None


def _go_display(size: int, observe: Callable, player: Callable) -> Display:
    """Returns the display of Go, with its own coordinates: `a1` is the lower left, without `i`."""
    letters = "abcdefghjklmnopqrst"[:size]
    names = [f"{letter}{row}" for row in range(size, 0, -1) for letter in letters]
    like = make_display(
        (size, size),
        [*names, "pass"],
        render=lambda state: render_board(state.board, (size, size), names=names),
    )

    def stones(state: Any) -> Stones:
        planes = np.asarray(observe(jax.tree.map(jnp.asarray, state)))
        board: Any = (planes[..., 0].astype(int) - planes[..., 1]).ravel()
        mover = int(player(state))
        return Stones(-board if mover else board, jnp.int8(mover), jnp.bool_(False))

    def adapt(function: Any) -> Any:
        return lambda state, **options: function(stones(state), **options)

    return Display(*map(adapt, like))
