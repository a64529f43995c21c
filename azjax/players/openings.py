"""Openings: different positions from which the games of a match start."""

from typing import NamedTuple

import jax
import numpy as np

from azjax.games.base import Game, State, random_action
from azjax.games.rows import distinct, pack

MOST_OPENINGS = 100_000


class Openings(NamedTuple):
    """`K` different positions and the moves that lead to them."""

    states: State  # The positions; every leaf is `[K, ...]`.
    actions: np.ndarray  # `int32 [K, T]`, the moves from the starting position.


def draw_openings(game: Game, key: jax.Array, count: int, plies: int) -> Openings:
    """Draws `count` different unfinished positions, each after `plies` random moves.

    Returns:
      The openings; fewer than `count` if no more were found.
    """
    if not 1 <= count <= MOST_OPENINGS or not 0 <= plies < game.max_plies:
        raise ValueError(
            f"{count} openings of {plies} moves are not possible: use 1 to {MOST_OPENINGS} "
            f"openings of 0 to {game.max_plies - 1} moves"
        )

    def draw(key):
        def move(state, key):
            action = random_action(game, key, state)
            return game.step(state, action)[0], action

        return jax.lax.scan(move, game.init(), jax.random.split(key, plies))

    keys = jax.random.split(key, max(64 * count, 4096))
    states, actions = jax.device_get(jax.jit(jax.vmap(draw))(keys))
    over = np.asarray(jax.vmap(game.is_over)(states))
    different = distinct(pack(states))[0]
    chosen = different[~over[different]][:count]
    if not len(chosen):
        raise ValueError(
            f"all random games of {game.name} were over after {plies} moves: use fewer"
        )
    return Openings(jax.tree.map(lambda leaf: leaf[chosen], states), actions[chosen])
