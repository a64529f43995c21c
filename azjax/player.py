"""A trained player, loaded from its run directory."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import jax

from azjax import checkpoint, memory
from azjax.game import Game, State, check_batch
from azjax.search import SearchConfig, SearchResult, make_search
from azjax.settings import from_dict
from azjax.train import Config, make_mesh, make_parts


@dataclasses.dataclass(frozen=True)
class Player:
    """A trained player, as `load` returns it.

    Attributes:
      game: the rules.
      config: the run's configuration.
      params: the trained network in its inference form.
      iteration: the iteration that it was saved after.
      skipped: one sentence for each newer checkpoint that was damaged.
    """

    game: Game
    config: Config
    params: Any
    iteration: int
    skipped: tuple[str, ...] = ()

    def evaluate(self, states: State) -> tuple[jax.Array, jax.Array]:
        """Returns the raw network's `(logits [B, A], value [B])` for states `[B, ...]`.

        Values are in [-1, 1], for the player to move; logits of illegal actions mean nothing.

        Raises:
          ValueError: if the states are not a batch of this game.
        """
        return _compiled_evaluate(self.config)(self.params, states)

    def search(self, keys: jax.Array, states: State, **settings: Any) -> SearchResult:
        """Searches from states `[B, ...]`.

        Args:
          keys: one key for the whole batch, or `[B]`, one per position.
          states: the positions.
          **settings: fields of `SearchConfig` to change, such as `num_simulations=64` or
            `algorithm="puct"`.

        Raises:
          ValueError: if the states are not a batch of this game, the keys do not go with it, or a
            setting is unknown or out of range, or the trees do not fit in memory.
        """
        search = from_dict(SearchConfig, dataclasses.asdict(self.config.search) | settings)
        memory.check_trees(search, self.game, check_batch(self.game, states))
        return _compiled_search(self.config, search)(self.params, keys, states)


@functools.lru_cache(maxsize=32)
def _compiled_evaluate(config: Config) -> Callable:
    parts = make_parts(config)

    def evaluate(params, states):
        check_batch(parts.game, states)
        return parts.evaluate(params, None, states)

    return jax.jit(evaluate)


@functools.lru_cache(maxsize=32)
def _compiled_search(config: Config, settings: SearchConfig) -> Callable:
    parts = make_parts(config)
    return jax.jit(make_search(settings, parts.game, parts.evaluate))


def load(run_dir: str | os.PathLike[str], iteration: int | None = None) -> Player:
    """Loads the newest sound checkpoint of a run as a player, on one device.

    Args:
      run_dir: the run directory.
      iteration: load the checkpoint of this iteration and no other.

    Raises:
      checkpoint.CheckpointError: if there is no run, no sound checkpoint, or not the one
        asked for.
    """
    config = checkpoint.read_config(run_dir)
    parts = make_parts(config)
    mesh = make_mesh(jax.devices()[:1])
    state, skipped = checkpoint.restore(run_dir, config, mesh, step=iteration)
    return Player(
        game=parts.game,
        config=config,
        params=parts.network.fold(state.learner.average),
        iteration=int(state.iteration),
        skipped=tuple(skipped),
    )
