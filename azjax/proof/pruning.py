"""Leaving out overrides that the player does not need."""

import pathlib
from typing import Any

import jax
import numpy as np

from azjax.games.base import Game
from azjax.players import Agent
from azjax.players.oriented import Overrides, oriented_agent, oriented_rows
from azjax.proof import exhaustive
from azjax.proof.deciding import make_act
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
    alone = make_act(agent)
    together = make_act(oriented_agent(game, encoding, agent, overrides))
    find = jax.jit(oriented_rows(game, encoding, overrides))
    is_needed = np.zeros(len(overrides.actions), bool)

    def act(states):
        actions = together(states)
        rows = np.asarray(find(states))
        listed = np.flatnonzero(rows >= 0)
        if len(listed):
            some = jax.tree.map(lambda leaf: leaf[listed], states)
            is_needed[rows[listed[alone(some) != actions[listed]]]] = True
        return actions

    symmetric = game.symmetries is not None
    steps = exhaustive.explore(game, act, seat, folder, symmetric=symmetric, **settings)
    last = watch(steps)
    return Overrides(overrides.planes[is_needed], overrides.actions[is_needed]), last
