"""The components of training, as one record, and the settings of self-play."""

import dataclasses
from typing import Annotated, NamedTuple

import jax

from azjax._settings import Count, Fraction, NonNegative, Positive, Range, Settings, checked
from azjax.games import hashing
from azjax.games.base import Game, state_shapes
from azjax.networks.base import Network, check_network
from azjax.search import Algorithm
from azjax.search.algorithm import check_algorithm
from azjax.search.evaluators import Evaluator, network_evaluator
from azjax.search.make import Grow
from azjax.training.learner import Learner
from azjax.training.replay import Replay
from azjax.training.targets import Targets

_MOST_PLIES = 1_000_000


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig(Settings, section="selfplay"):
    """Settings of self-play."""

    games: Positive = 1024
    """Games played in parallel, over all devices. AlphaZero: 5,000 processes."""
    games_at_once: Count = 0
    """Games in a group. A device plays group after group, to save memory and fit the cache.
    0: 256 on CPUs, all elsewhere; `config.make_parts` chooses."""
    unroll_length: Annotated[int, Range(1, _MOST_PLIES)] = 8
    """Moves that every game makes in one iteration."""
    carry_over: bool = True
    """Whether unfinished games continue in the next iteration. If not, all games restart in each
    iteration. Either way, a game that is not over at the end of an iteration has the value of the
    last search as its outcome."""
    opening_share: Fraction = 0.9
    """Fraction of games that start with random moves. AlphaZero: 0."""
    opening_plies: Annotated[int, Range(0, _MOST_PLIES)] = 8
    """Maximum number of random opening moves; the number is uniform from 0."""
    archive: Annotated[int, Range(0, 2**23)] = 0
    """Buckets of the archive, from which games may start; see `archive.Archive`.
    AlphaZero: 0."""
    archive_share: Fraction = 0.5
    """Of the games with random openings, the fraction that start from the archive
    instead."""
    temperature: NonNegative = 1.0
    """PUCT and UCT: moves are sampled from visits ** (1 / temperature). AlphaZero: 1."""
    temperature_plies: Count = 30
    """PUCT and UCT: from this ply on, the most visited move is played. AlphaZero: 30."""


class Parts(NamedTuple):
    """The components of training. You pass every component explicitly.

    Each component is a record of pure functions or a dataclass of settings, and `parts._replace`
    swaps in a custom one. A custom loss goes into the learner:
    `parts._replace(learner=make_learner(network, optimizer, loss))`.
    """

    game: Game  # The rules, such as `azjax.make("hex:5")`.
    network: Network  # From `networks.make_network`, `from_module` or `from_nnx`.
    search: Algorithm  # Of self-play, such as `Gumbel(num_simulations=16)`.
    selfplay: SelfPlayConfig
    targets: Targets  # Functions that turn self-play into samples, from `make_targets`.
    replay: Replay  # The replay buffer, from `make_replay`.
    learner: Learner  # Loss, optimizer and running average, from `make_learner`.
    grow: Grow | None = None  # How search trees grow; None: as `make_search` chooses.

    def __repr__(self):
        search = type(self.search).__name__
        return f"Parts(game={self.game!r}, network={self.network!r}, search={search})"

    @property
    def evaluate(self) -> Evaluator:
        """The network as an evaluator, for parameters from `network.fold(variables)`."""
        return network_evaluator(self.game, self.network)

    @property
    def evaluations(self) -> int:
        """Network evaluations of one iteration of self-play, over all devices."""
        moves = self.selfplay.games * self.selfplay.unroll_length
        return moves * (self.search.num_simulations + 1)


def check_parts(parts: Parts, num_devices: int = 1) -> None:
    """Raises a ValueError if parts do not fit each other or the number of devices.

    The message names the setting, its value and a value that works.
    """
    for kind in (Game, SelfPlayConfig, Targets, Replay, Learner):
        name = kind.__name__.removesuffix("Config").lower()
        checked(f"parts.{name}", getattr(parts, name), kind)
    check_network(parts.game, parts.network)
    check_algorithm(parts.search)
    shards, games, batch = parts.replay.shards, parts.selfplay.games, parts.replay.batch_size
    if shards % num_devices:
        raise ValueError(
            f"replay.shards is {shards}, not a multiple of the number of devices, {num_devices}: "
            f"use {num_devices} or a multiple of it, or another number of devices"
        )
    for name, value in (("selfplay.games", games), ("learner.batch_size", batch)):
        if value % shards:
            raise ValueError(
                f"{name} is {value}, not a multiple of replay.shards, {shards}: use a multiple "
                f"of it, such as {-(-value // shards) * shards}"
            )
    samples = parts.selfplay.unroll_length * (1 if parts.game.chance is None else 2)
    capacity, needed = parts.replay.capacity, games * samples
    if capacity < needed:
        raise ValueError(
            f"replay.capacity is {capacity}, less than one iteration's samples: use at least "
            f"{needed}"
        )
    if parts.selfplay.archive:
        jax.eval_shape(hashing.contents, state_shapes(parts.game))
