"""Overrides: moves that replace those of a player in single positions.

The overrides that come with a player have one entry for a position and its symmetric copies: the
canonical orientation of the planes that the network sees. A repair has one for every state.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State
from azjax.games.hashing import contents, make_index
from azjax.games.symmetries import orient, symmetries_of
from azjax.networks.base import observed_planes
from azjax.players.agent import Agent

# `states [B, ...] -> (rows, actions)`, both `int32 [B]`: the number of the override of each state,
# or -1 if it has none, and its move, which has no meaning without an override.
Lookup = Callable[[State], tuple[jax.Array, jax.Array]]


class Overrides(NamedTuple):
    """Moves to play in certain positions and in their symmetric copies."""

    # `uint8 [K, ceil(H * W * C / 8)]`, the bits of the boolean planes in canonical orientation,
    # packed as `np.packbits` does.
    planes: np.ndarray
    actions: np.ndarray  # `uint8 [K]` or wider, the move in that orientation.


def oriented_overrides(game: Game, encoding: str, states: State, actions: np.ndarray) -> Overrides:
    """Makes overrides from positions `[K, ...]` and moves; symmetric copies become one entry."""
    symmetries = symmetries_of(game)
    oriented, is_smallest = orient(symmetries.cells, _observe(game, encoding, states))
    moved = np.argsort(symmetries.actions, axis=1)[:, np.asarray(actions)].T  # Turned, [K, G].
    options = np.where(np.asarray(is_smallest), moved, game.num_actions)
    table = np.packbits(np.asarray(oriented), axis=1)
    planes, which = np.unique(table, axis=0, return_inverse=True)
    chosen = np.full(len(planes), game.num_actions)
    np.minimum.at(chosen, which, options.min(axis=1))
    if not (options == chosen[which, None]).any(axis=1).all():
        raise ValueError("symmetric copies of a position have different moves: make them equal")
    return Overrides(planes, chosen.astype(np.min_scalar_type(game.num_actions)))


def make_lookup(game: Game, encoding: str, overrides: Overrides) -> Lookup:
    """Builds a lookup whose rows are the same for symmetric copies of a position."""
    symmetries = symmetries_of(game)
    size = np.prod(observed_planes(game, encoding).shape)
    table = jnp.asarray(np.unpackbits(overrides.planes, axis=1, count=size).astype(bool))
    find, actions = _make_find(table), jnp.asarray(overrides.actions)

    def lookup(states):
        planes, is_smallest = orient(symmetries.cells, _observe(game, encoding, states))
        row, turned = find(planes), jnp.argmax(is_smallest, axis=1)
        action = jnp.asarray(symmetries.actions)[turned, actions[row]]
        return row, action.astype(jnp.int32)

    return lookup


def state_lookup(states: State, actions: np.ndarray) -> Lookup:
    """Builds a lookup of positions `[K, ...]` and moves, in which only equal states are equal."""
    find, moves = _make_find(states), jnp.asarray(actions)

    def lookup(states):
        row = find(states)
        return row, moves[row]

    return lookup


def _make_find(listed: Any) -> Callable[[Any], jax.Array]:
    """Builds `keys [B, ...] -> rows int32 [B]`, where each is in `listed`; -1 if it is not."""
    index, rows = make_index(listed), contents(listed, axes=1)

    def find(keys):
        row = index(keys)
        return jnp.where(jnp.all(contents(keys, axes=1) == rows[row], axis=1), row, -1)

    return find


def with_overrides(agent: Agent, lookup: Lookup) -> Agent:
    """Returns an agent that plays the overrides, and in all other positions as before.

    Values and other estimates stay those of the agent.
    """

    def act(params, key, states):
        decision = agent.act(params, key, states)
        row, action = lookup(states)
        only = jax.nn.one_hot(action, decision.weights.shape[1])
        return decision._replace(
            action=jnp.where(row >= 0, action, decision.action),
            weights=jnp.where((row >= 0)[:, None], only, decision.weights),
        )

    return agent._replace(act=act)


def _observe(game: Game, encoding: str, states: State) -> jax.Array:
    return jax.vmap(lambda state: game.observe(state, encoding))(states)
