"""Overrides up to symmetry: moves that replace those of a player in single positions.

A position and its symmetric copies have one entry, for the canonical orientation of the planes that
the network sees.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State
from azjax.games.hashing import make_index
from azjax.networks.base import observed_planes
from azjax.networks.orientation import orient
from azjax.players.agent import Agent


class Overrides(NamedTuple):
    """Moves to play in certain positions and in their symmetric copies.

    Attributes:
      planes: `uint8 [K, ceil(H * W * C / 8)]`, the bits of the boolean planes in canonical
        orientation, packed as `np.packbits` does.
      actions: `uint8 [K]`, the move in that orientation.
    """

    planes: np.ndarray
    actions: np.ndarray


def oriented_overrides(game: Game, encoding: str, states: State, actions: np.ndarray) -> Overrides:
    """Makes overrides from positions `[K, ...]` and moves `[K]`; symmetric copies become one entry.

    Raises:
      ValueError: if two copies of a position have moves that are not copies of each other.
    """
    cells, moves = _symmetries(game)
    found = orient(cells, _observe(game, encoding, states))
    moved = np.argsort(moves, axis=1)[:, np.asarray(actions)].T  # [K, G], turned like the board.
    options = np.where(np.asarray(found.is_smallest), moved, game.num_actions)
    table = np.packbits(np.asarray(found.planes), axis=1)
    planes, which = np.unique(table, axis=0, return_inverse=True)
    chosen = np.full(len(planes), game.num_actions)
    np.minimum.at(chosen, which, options.min(axis=1))
    if not (options == chosen[which, None]).any(axis=1).all():
        raise ValueError("symmetric copies of a position have different moves: make them equal")
    return Overrides(planes, chosen.astype(np.uint8))


def join(earlier: Overrides, later: Overrides) -> Overrides:
    """Returns all overrides of both; where both have one, the later one."""
    planes = np.concatenate((later.planes, earlier.planes))
    actions = np.concatenate((later.actions, earlier.actions))
    planes, rows = np.unique(planes, axis=0, return_index=True)
    return Overrides(planes, actions[rows])


def make_lookup(
    game: Game, encoding: str, overrides: Overrides
) -> Callable[[State], tuple[jax.Array, jax.Array]]:
    """Builds `states [B, ...] -> (rows, actions)`, both `int32 [B]`.

    A row is the number of the override, the same for symmetric copies of a position, or -1 if there
    is none. The action is its move; it has no meaning without an override.
    """
    cells, moves = _symmetries(game)
    size = np.prod(observed_planes(game, encoding).shape)
    table = jnp.asarray(np.unpackbits(overrides.planes, axis=1, count=size).astype(bool))
    index, actions = make_index(game, table), jnp.asarray(overrides.actions)

    def lookup(states):
        found = orient(cells, _observe(game, encoding, states))
        row = index(found.planes)
        is_listed = jnp.all(found.planes == table[row], axis=1)
        action = jnp.asarray(moves)[jnp.argmax(found.is_smallest, axis=1), actions[row]]
        return jnp.where(is_listed, row, -1), action.astype(jnp.int32)

    return lookup


def oriented_agent(
    game: Game, encoding: str, agent: Agent, overrides: Overrides, name: str | None = None
) -> Agent:
    """Returns an agent that plays the overrides, and in all other positions as before.

    Values and other estimates stay those of the agent.
    """
    lookup = make_lookup(game, encoding, overrides)

    def act(params, key, states):
        decision = agent.act(params, key, states)
        row, action = lookup(states)
        only = jax.nn.one_hot(action, game.num_actions)
        return decision._replace(
            action=jnp.where(row >= 0, action, decision.action),
            weights=jnp.where((row >= 0)[:, None], only, decision.weights),
        )

    count = len(overrides.actions)
    return agent._replace(name=name or f"{agent.name} with {count} overrides", act=act)


def _observe(game: Game, encoding: str, states: State) -> jax.Array:
    return jax.vmap(lambda state: game.observe(state, encoding))(states)


def _symmetries(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """Returns the symmetries of the cells `[G, H * W]` and of the actions `[G, A]`."""
    if game.symmetries is None:
        height, width = game.board_shape
        return np.arange(height * width)[None], np.arange(game.num_actions)[None]
    return game.symmetries.cells, game.symmetries.actions
