"""Compares our rules with pgx and OpenSpiel over random games; run by hand, not by pytest.

    python -m pip install pgx open_spiel
    python tests/referees.py                # tic-tac-toe and Connect Four, 100,000 moves each

Tests install neither of the two; a difference is printed, and fails.
"""

import argparse
import functools
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pyspiel

from azjax import games
from azjax.games.base import init_batch, legal_action_at

GAMES = ("tic_tac_toe", "connect_four")


class Record(NamedTuple):
    """Recorded games.

    Attributes:
      legal: `bool [T, B, A]`, before the move.
      over: `bool [T, B]`, before the move.
      action: `int32 [T, B]`, -1 once the game is over.
      reward: `float32 [T, B]`, to the player who moved.
    """

    legal: np.ndarray
    over: np.ndarray
    action: np.ndarray
    reward: np.ndarray


@functools.partial(jax.jit, static_argnums=(0, 2))
def play_ours(game, key, size):
    """Plays random games."""

    def move(states, key):
        legal = jax.vmap(game.legal_actions)(states)
        over = jax.vmap(game.is_over)(states)
        action = legal_action_at(legal, jax.random.uniform(key, (size,)))
        states, reward = jax.vmap(game.step)(states, action)
        return states, Record(legal, over, jnp.where(over, -1, action), reward)

    keys = jax.random.split(key, game.max_plies + 1)
    return jax.lax.scan(move, init_batch(game, size), keys)[1]


@functools.partial(jax.jit, static_argnums=0)
def play_pgx(name, key, record):
    """Plays the same moves by the rules of pgx, whose mask is all True after the end of a game."""
    env: pgx.Env = pgx.make(name)

    def move(states, action):
        moved = jax.vmap(env.step)(states, jnp.maximum(action, 0))
        mover = states.current_player[:, None]
        reward = jnp.take_along_axis(moved.rewards, mover, axis=1)[:, 0]
        legal = states.legal_action_mask & ~states.terminated[:, None]
        reward = jnp.where(states.terminated, 0, reward)
        return moved, Record(legal, states.terminated, action, reward)

    states = jax.vmap(env.init)(jax.random.split(key, record.action.shape[1]))
    return jax.lax.scan(move, states, record.action)[1]


def play_open_spiel(name, record):
    """Plays the same moves by the rules of OpenSpiel."""
    found = Record(*(np.zeros_like(field) for field in record))
    found.over[:] = True
    found.action[:] = -1
    for b in range(record.action.shape[1]):
        state = pyspiel.load_game(name).new_initial_state()
        for t, action in enumerate(record.action[:, b]):
            if state.is_terminal():
                break
            player = state.current_player()
            found.legal[t, b, state.legal_actions()] = True
            found.over[t, b], found.action[t, b] = False, action
            state.apply_action(int(action))
            found.reward[t, b] = state.rewards()[player]
    return found


def main() -> int:
    """Compares; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=100_000, help="of each game, at least")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    differs = False
    for name in GAMES:
        game = games.make(name)
        key, size = jax.random.key(options.seed), -(-options.moves // (game.max_plies // 2))
        ours = Record(*map(np.asarray, play_ours(game, key, size)))
        played = {"pgx": play_pgx(name, key, ours), "OpenSpiel": play_open_spiel(name, ours)}
        moves = int((ours.action >= 0).sum())
        for referee, theirs in played.items():
            agree = {
                what: np.array_equal(mine, other)
                for what, mine, other in zip(Record._fields, ours, theirs, strict=True)
            }
            differs |= not all(agree.values())
            verdict = "agree" if all(agree.values()) else f"DIFFER: {agree}"
            print(f"{name} and {referee}: {size:,} games, {moves:,} moves, {verdict}")
        differs |= moves < options.moves
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
