"""Leaving out overrides that the player does not need."""

import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game
from azjax.players import Agent
from azjax.players.oriented import Overrides, make_lookup
from azjax.proof import exhaustive
from azjax.proof.deciding import make_decide
from azjax.proof.seat import Watch, finish


def prune(
    game: Game,
    encoding: str,
    agent: Agent,
    overrides: Overrides,
    seat: int,
    folder: pathlib.Path,
    watch: Watch = finish,
    **settings: Any,
) -> tuple[Overrides, exhaustive.Exploration]:
    """Explores all games of a player with overrides, and keeps only the overrides that it needs.

    An override is needed if a game reaches its position, and the player would move differently
    without it. The player with the remaining overrides plays exactly the same games, so the result
    of the exploration holds for it as well.

    Args:
      game: the rules.
      encoding: the encoding of the planes of the overrides.
      agent: the player without overrides; its moves in symmetric copies are symmetric copies.
      overrides: all overrides.
      seat: the seat of the player, 0 or 1.
      folder: for the files of the exploration.
      watch: consumes the steps of the exploration and returns the last one.
      **settings: other arguments of `exhaustive.explore`.

    Returns:
      The overrides that are needed, and the last step of the exploration.
    """
    lookup = make_lookup(game, encoding, overrides)
    is_needed = np.zeros(len(overrides.actions), bool)

    def act_and_find(params, key, states):
        """Returns the action, and the override if it changes the action, otherwise -1."""
        alone = agent.act(params, key, states).action
        row, action = lookup(states)
        changes = (row >= 0) & (action != alone)
        return jnp.where(changes, action, alone), jnp.where(changes, row, -1)

    decide = make_decide(agent._replace(act=act_and_find))

    def act(states):
        actions, rows = map(np.asarray, decide(states))
        is_needed[rows[rows >= 0]] = True
        return actions

    symmetric = game.symmetries is not None
    steps = exhaustive.explore(game, act, seat, folder, symmetric=symmetric, **settings)
    last = watch(steps)
    return Overrides(overrides.planes[is_needed], overrides.actions[is_needed]), last
