"""Trained players, from a run or from those that come with azjax."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import jax

from azjax import games
from azjax._files import Path
from azjax._settings import Count, checked
from azjax.games.base import Game, State, check_batch
from azjax.networks import Network
from azjax.networks.base import check_network
from azjax.networks.integers import make_quantized
from azjax.players import Agent, network_agent, search_agent
from azjax.players.overrides import Overrides, make_lookup, with_overrides
from azjax.runs import checkpoint, directory, pretrained
from azjax.runs.config import Config, CustomNetworkConfig, is_custom, make_parts
from azjax.search import ALGORITHMS, Algorithm, SearchResult, make_search
from azjax.search.algorithm import check_algorithm
from azjax.training.memory import check_trees
from azjax.training.parts import Parts


@dataclasses.dataclass(frozen=True)
class Player:
    """A trained player, from `load`."""

    parts: Parts
    params: Any = dataclasses.field(repr=False)  # For inference, from `network.fold`.
    iteration: int = 0
    run_dir: Path | None = None
    name: str | None = None  # Of a player that comes with azjax.
    moves: int | None = None  # Of self-play; None: as many as the parts make in its iterations.
    alone: bool = False  # Whether its agent plays without search.
    # Moves that its agent plays in certain positions.
    overrides: Overrides | None = dataclasses.field(default=None, repr=False)

    @property
    def game(self) -> Game:
        """The rules."""
        return self.parts.game

    @functools.cached_property
    def agent(self) -> Agent:
        """The network with the search that it was trained with, or alone, and the overrides."""
        number = self.parts.search.num_simulations
        name = self.name or f"alphazero({number}) #{self.iteration}"
        return self.with_simulations(0 if self.alone else number)._replace(name=name)

    def with_simulations(self, number: int) -> Agent:
        """Returns the player with its overrides: with a search of this length, or alone for 0."""
        search, evaluate = self.parts.search, self.parts.evaluate
        if number not in (0, search.num_simulations):
            search = changed(search, num_simulations=number)
        agent = network_agent(self.game, evaluate, self.params)
        if number:
            agent = search_agent(self.game, search, evaluate, self.params)
        if self.overrides is None:
            return agent
        lookup = make_lookup(self.game, self.parts.network.encoding, self.overrides)
        return with_overrides(agent, lookup)

    def evaluate(self, states: State) -> tuple[jax.Array, jax.Array]:
        """Returns `(logits [B, A], value [B])` of the network alone for states `[B, ...]`.

        Values are in [-1, 1], for the player to move; logits of illegal actions are arbitrary.
        """
        check_batch(self.game, states)
        return _compiled(self.parts, None)(self.params, states)

    def search(
        self, keys: jax.Array, states: State, search: Algorithm | None = None, **settings: Any
    ) -> SearchResult:
        """Searches from states `[B, ...]`, with one key for the batch, or `[B]`, one per position.

        The algorithm is by default that of training. `settings` change it, such as
        `num_simulations=64`.
        """
        algorithm = changed(self.parts.search if search is None else search, **settings)
        check_trees(algorithm, self.game, check_batch(self.game, states))
        return _compiled(self.parts, algorithm)(self.params, keys, states)


def changed(search: Any, **settings: Any) -> Algorithm:
    """Returns a search algorithm with changed settings."""
    check_algorithm(search)
    try:
        return dataclasses.replace(search, **settings) if settings else search
    except TypeError as error:
        raise ValueError(f"the settings of {search!r} cannot be changed ({error})") from error


@functools.lru_cache(maxsize=32)
def _compiled(parts: Parts, search: Algorithm | None) -> Callable:
    """Compiles a search, or the network alone."""
    if search is None:
        return jax.jit(lambda params, states: parts.evaluate(params, None, states))
    return jax.jit(make_search(search, parts.game, parts.evaluate))


def check_name(name: str) -> None:
    """Raises a ValueError if no player of this name comes with azjax, or a folder hides it."""
    if name not in pretrained.names():
        raise ValueError(pretrained.describe_unknown(name))
    if os.path.isdir(name):
        raise ValueError(f"{name} is a folder here, which hides the player of this name: rename it")


def is_pretrained(run_dir: Path) -> bool:
    """Returns whether a path is the name of a player that comes with azjax, and not a run."""
    if os.path.exists(os.path.join(run_dir, "config.json")):
        return False
    if is_name := str(run_dir) in pretrained.names():
        check_name(str(run_dir))
    return is_name


def read_settings(run_dir: Path) -> Config:
    """Returns the settings of a run, or of a player that comes with azjax."""
    if not is_pretrained(run_dir):
        if not os.path.isdir(run_dir):
            raise checkpoint.CheckpointError(
                f"{run_dir} is not a run directory, and {pretrained.describe_unknown(str(run_dir))}"
            )
        return directory.read_config(run_dir)
    about = pretrained.read(str(run_dir)).about
    search = dict(about["search"])
    return Config(
        game=about["game"],
        network=CustomNetworkConfig(source=str(run_dir)),
        search=ALGORITHMS[search.pop("algorithm")](**search),
    )


def load(
    run_dir: Path,
    iteration: int | None = None,
    game: Game | None = None,
    network: Network | None = None,
    parts: Parts | None = None,
) -> Player:
    """Loads the player of a run's checkpoint, or one of the players that come with azjax.

    Args:
      run_dir: the run directory; or the name of a player that comes with azjax, one of
        `runs.pretrained.names()`, unless there is a run in a folder of this name.
      iteration: iteration of the checkpoint; None: the newest one.
      game: the custom game of the run, if any. Its rules are not compared with those of training.
      network: the custom network of the run, if any.
      parts: the custom parts of the run, if any; they include game and network.

    Raises a CheckpointError if the run or the checkpoint does not exist, is damaged, or has other
    arrays than the network. An older checkpoint never takes the place of a damaged one.
    """
    checked("iteration", iteration, Count | None)
    custom = {"game": (game, Game), "network": (network, Network), "parts": (parts, Parts)}
    given = [name for name, (part, kind) in custom.items() if checked(name, part, kind | None)]
    if is_pretrained(run_dir):
        if given or iteration is not None:
            raise ValueError(f"{run_dir} comes with azjax and is complete: give only its name")
        return _load_pretrained(str(run_dir))
    config = read_settings(run_dir)
    if parts is not None:
        if len(given) > 1:
            raise ValueError(f"parts contains its own {given[0]}: leave {given[0]} out")
        game = parts.game
    if game is not None and not config.parts and not is_custom(config.game):
        name = games.make(config.game).name
        if game.name != name:
            raise ValueError(
                f"{run_dir} is a run of {name}, not of {game.name}: leave the game out, or load a "
                "run of that game"
            )
    if parts is None:
        parts = make_parts(config, game, network)
    check_network(parts.game, parts.network)
    average, iteration = checkpoint.restore_player(run_dir, parts.network, iteration)
    return Player(parts, parts.network.fold(average), iteration, run_dir)


@functools.lru_cache(maxsize=8)
def _load_pretrained(name: str) -> Player:
    config, (about, variables, overrides) = read_settings(name), pretrained.read(name)
    game = games.make(config.game)
    network = make_quantized(game, variables, about["encoding"], about["symmetric"])
    return Player(
        parts=make_parts(config, game, network),
        params=network.fold(variables),
        iteration=about["iteration"],
        name=name,
        moves=about["training"]["moves"],
        alone=about["alone"],
        overrides=overrides,
    )
