"""A trained player."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax._commands import keep, unpicklable
from azjax._files import Path
from azjax._settings import did_you_mean
from azjax.games.base import Game, State, check_batch
from azjax.players import Agent, network_agent, search_agent
from azjax.players.overrides import Overrides, make_lookup, with_overrides
from azjax.search import Algorithm, SearchResult, check_algorithm, make_search
from azjax.training.memory import check_trees
from azjax.training.parts import Parts


@dataclasses.dataclass(frozen=True)
class Player:
    """A trained player, from `load`."""

    parts: Parts
    params: Any  # For inference, from `network.fold`.
    iteration: int = 0
    run_dir: Path | None = None
    name: str | None = None  # Of a player that comes with azjax.
    moves: int | None = None  # Of self-play; None: as many as the parts make in its iterations.
    alone: bool = False  # Whether its agent plays without search.
    overrides: Overrides | None = None  # Moves that its agent plays in certain positions.

    __reduce__ = unpicklable("send its run directory or its name, and call azjax.load there")
    __copy__ = __deepcopy__ = keep

    def __repr__(self):
        where = self.run_dir if self.run_dir is None else str(self.run_dir)
        return (
            f"Player(game={self.game.name!r}, network={self.parts.network!r}, "
            f"iteration={self.iteration}, run_dir={where!r})"
        )

    @property
    def game(self) -> Game:
        """The rules."""
        return self.parts.game

    @functools.cached_property
    def agent(self) -> Agent:
        """The network with the search that it was trained with, or alone, and the overrides."""
        if self.alone:
            agent = network_agent(self.game, self.parts.evaluate, self.params)
        else:
            name = f"alphazero({self.parts.search.num_simulations}) #{self.iteration}"
            agent = search_agent(
                self.game, self.parts.search, self.parts.evaluate, self.params, name=name
            )
        agent = self.override(agent)
        return agent if self.name is None else agent._replace(name=self.name)

    def override(self, agent: Agent) -> Agent:
        """Returns an agent that plays the overrides, if there are any, and otherwise as before."""
        if self.overrides is None:
            return agent
        lookup = make_lookup(self.game, self.parts.network.encoding, self.overrides)
        return with_overrides(agent, lookup)

    def evaluate(self, states: State) -> tuple[jax.Array, jax.Array]:
        """Returns `(logits [B, A], value [B])` of the network alone for states `[B, ...]`.

        Values are in [-1, 1], for the player to move; logits of illegal actions are arbitrary.
        """
        check_batch(self.game, states)
        return _compiled_evaluate(self.parts)(self.params, states)

    def search(
        self, keys: jax.Array, states: State, search: Algorithm | None = None, **settings: Any
    ) -> SearchResult:
        """Searches from states `[B, ...]`.

        Args:
          keys: one key for the batch, or `[B]`, one per position.
          states: the positions.
          search: the algorithm, such as `PUCT()`; None: that of training.
          **settings: changed settings of the algorithm, such as `num_simulations=64`.
        """
        algorithm = changed(self.parts.search if search is None else search, **settings)
        check_trees(algorithm, self.game, check_batch(self.game, states))
        result, has_nan = _compiled_search(self.parts, algorithm)(self.params, keys, states)
        if not isinstance(has_nan, Tracer) and np.any(has_nan):
            raise ValueError(
                f"the network returned NaN in the searches of {np.sum(has_nan)} of {len(has_nan)} "
                "positions: load a checkpoint whose parameters are finite"
            )
        return result


def changed(search: Any, **settings: Any) -> Algorithm:
    """Returns a search algorithm with changed settings."""
    check_algorithm(search)
    if not settings:
        return search
    fields = getattr(type(search), "__dataclass_fields__", None)
    if fields is None:
        raise ValueError(
            f"the search, of type {type(search).__name__}, is not a dataclass, so its settings "
            f"cannot be changed: pass one that has {', '.join(settings)}"
        )
    for name in settings:
        if name not in fields:
            raise ValueError(
                f"unknown setting {name!r} of {search.algorithm}: use one of {', '.join(fields)}"
                f"{did_you_mean(name, fields)}"
            )
    return dataclasses.replace(search, **settings)


@functools.lru_cache(maxsize=32)
def _compiled_evaluate(parts: Parts) -> Callable:
    evaluate = parts.evaluate
    return jax.jit(lambda params, states: evaluate(params, None, states))


@functools.lru_cache(maxsize=32)
def _compiled_search(parts: Parts, search: Algorithm) -> Callable:
    run = make_search(search, parts.game, parts.evaluate)

    def search_and_check(params, keys, states):
        result = run(params, keys, states)
        tree = result.tree
        has_nan = jnp.isnan(tree.raw_values) | jnp.any(jnp.isnan(tree.children_prior_logits), -1)
        return result, jnp.any(has_nan, axis=-1)

    return jax.jit(search_and_check)
