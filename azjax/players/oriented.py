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


def oriented_rows(game: Game, encoding: str, overrides: Overrides) -> Callable[[State], jax.Array]:
    """Builds `states [B, ...] -> int32 [B]`, the row of each position; -1 if it has no override.

    Symmetric copies of a position have the same row.
    """
    find = _make_find(game, encoding, overrides)
    return lambda states: find(states)[0]


def oriented_agent(
    game: Game, encoding: str, agent: Agent, overrides: Overrides, name: str | None = None
) -> Agent:
    """Returns an agent that plays the overrides, and in all other positions as before.

    Values and other estimates stay those of the agent.
    """
    find, actions = _make_find(game, encoding, overrides), jnp.asarray(overrides.actions)
    _, moves = _symmetries(game)

    def act(params, key, states):
        decision = agent.act(params, key, states)
        row, symmetry = find(states)
        turned = jnp.asarray(moves)[symmetry, actions[row]]
        action = jnp.where(row >= 0, turned, decision.action).astype(jnp.int32)
        only = jax.nn.one_hot(action, game.num_actions)
        weights = jnp.where((row >= 0)[:, None], only, decision.weights)
        return decision._replace(action=action, weights=weights)

    return agent._replace(name=name or f"{agent.name} with {len(actions)} overrides", act=act)


def _make_find(game: Game, encoding: str, overrides: Overrides) -> Callable:
    """Builds `states -> (rows, symmetries)`, both `int32 [B]`.

    The symmetries lead to the canonical orientation.
    """
    cells, _ = _symmetries(game)
    size = np.prod(observed_planes(game, encoding).shape)
    table = jnp.asarray(np.unpackbits(overrides.planes, axis=1, count=size).astype(bool))
    index = make_index(game, table)

    def find(states):
        found = orient(cells, _observe(game, encoding, states))
        row = index(found.planes)
        is_listed = jnp.all(found.planes == table[row], axis=1)
        return jnp.where(is_listed, row, -1), jnp.argmax(found.is_smallest, axis=1)

    return find


def _observe(game: Game, encoding: str, states: State) -> jax.Array:
    return jax.vmap(lambda state: game.observe(state, encoding))(states)


def _symmetries(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """Returns the symmetries of the cells `[G, H * W]` and of the actions `[G, A]`."""
    if game.symmetries is None:
        height, width = game.board_shape
        return np.arange(height * width)[None], np.arange(game.num_actions)[None]
    return game.symmetries.cells, game.symmetries.actions
