"""Openings: different positions to start the games of a match from."""

import jax
import numpy as np

from azjax.games.base import Game, State, random_action
from azjax.games.rows import distinct, pack

MOST_OPENINGS = 100_000


def random_openings(game: Game, key: jax.Array, count: int, plies: int) -> State:
    """Draws `count` different positions, each after `plies` random moves, none of them over.

    Returns:
      The states, `[count, ...]`, or fewer if there are fewer: all of those found.

    Raises:
      ValueError: if the numbers are out of range, or no game lasts that long.
    """
    if not 1 <= count <= MOST_OPENINGS or not 0 <= plies < game.max_plies:
        raise ValueError(
            f"{count} openings of {plies} moves cannot be had: ask for 1 to {MOST_OPENINGS} "
            f"openings of 0 to {game.max_plies - 1} moves"
        )
    lanes = max(64 * count, 4096)

    def somewhere(key):
        def move(state, key):
            return game.step(state, random_action(game, key, state))[0], None

        return jax.lax.scan(move, game.init(), jax.random.split(key, plies))[0]

    states = jax.device_get(jax.jit(jax.vmap(somewhere))(jax.random.split(key, lanes)))
    over = np.asarray(jax.vmap(game.is_over)(states))
    different = distinct(pack(states))[0]
    chosen = different[~over[different]][:count]
    if not len(chosen):
        raise ValueError(f"every game of {game.name} found was over after {plies} moves: use fewer")
    return jax.tree.map(lambda leaf: leaf[chosen], states)
