"""The components of training, as one record."""

import math
from typing import NamedTuple

import jax

from azjax._commands import keep, unpicklable
from azjax._settings import MOST
from azjax.games import hashing
from azjax.games.base import Game, state_shapes
from azjax.networks.base import Network, check_network
from azjax.search import Algorithm, check_algorithm
from azjax.search.evaluators import Evaluator, network_evaluator
from azjax.training.learner import Learner
from azjax.training.replay import Replay
from azjax.training.starts import SelfPlayConfig
from azjax.training.targets import Targets


class Parts(NamedTuple):
    """The components of training. You pass every component explicitly.

    Each component is a record of pure functions or a dataclass of settings, and `parts._replace`
    swaps in a custom one. A custom loss goes into the learner:
    `parts._replace(learner=make_learner(network, optimizer, loss))`.

    Attributes:
      game: the rules, such as `azjax.make("hex:5")`.
      network: from `networks.make_network`, `from_module` or `from_nnx`.
      search: the algorithm of self-play, such as `Gumbel(num_simulations=16)`.
      selfplay: settings of self-play.
      targets: functions that turn self-play into samples, see `targets.make_targets`.
      replay: the replay buffer, see `replay.make_replay`.
      learner: loss, optimizer and running average, see `learner.make_learner`.
    """

    game: Game
    network: Network
    search: Algorithm
    selfplay: SelfPlayConfig
    targets: Targets
    replay: Replay
    learner: Learner

    __reduce__ = unpicklable("send a Config, and call azjax.make_parts there")
    __copy__ = __deepcopy__ = keep

    def __repr__(self):
        search = type(self.search).__name__
        return f"Parts(game={self.game!r}, network={self.network!r}, search={search})"

    @property
    def evaluate(self) -> Evaluator:
        """The network as an evaluator, for parameters from `network.fold(variables)`."""
        return network_evaluator(self.game, self.network)


def check_parts(parts: Parts, num_devices: int = 1) -> None:
    """Raises a ValueError if parts do not fit each other or the number of devices.

    The message names the setting, its value and a value that works.
    """
    _check_members(parts)
    _check_shards(parts, num_devices)
    _check_capacity(parts)
    if parts.selfplay.archive:
        jax.eval_shape(hashing.contents, state_shapes(parts.game))


def _check_members(parts: Parts) -> None:
    """Checks the types of the parts, and that the network fits the game."""
    makers = {
        "game": (Game, "azjax.make"),
        "selfplay": (SelfPlayConfig, "SelfPlayConfig"),
        "targets": (Targets, "targets.make_targets"),
        "replay": (Replay, "replay.make_replay"),
        "learner": (Learner, "learner.make_learner"),
    }
    for name, (kind, maker) in makers.items():
        if not isinstance(part := getattr(parts, name), kind):
            raise ValueError(
                f"parts.{name} is of type {type(part).__name__}: use a {kind.__name__}, as "
                f"{maker} returns"
            )
    check_network(parts.game, parts.network)
    check_algorithm(parts.search)


def _check_shards(parts: Parts, num_devices: int) -> None:
    """Checks that the number of shards is a multiple of that of the devices, and divides others.

    It must divide the number of games and the batch size.
    """
    shards, games, batch = parts.replay.shards, parts.selfplay.games, parts.replay.batch_size
    if shards % num_devices:
        raise ValueError(
            f"replay.shards is {shards}, not a multiple of the number of devices, {num_devices}: "
            f"use {num_devices} or a multiple of it"
        )
    most = math.gcd(games, batch)
    most = num_devices if most % num_devices else most
    if shards > min(games, batch) and shards != most:  # If equal, games or batches must change.
        raise ValueError(
            f"replay.shards is {shards}, more than there are games ({games}) or samples in a "
            f"batch ({batch}): use {most}"
        )
    for name, value in (("selfplay.games", games), ("learner.batch_size", batch)):
        if value % shards:
            raise ValueError(
                f"{name} is {value}, not a multiple of replay.shards, {shards}: use a multiple "
                f"of it, such as {-(-value // shards) * shards}"
            )


def _check_capacity(parts: Parts) -> None:
    """Checks that the buffer holds the moves of an iteration."""
    capacity, games = parts.replay.capacity, parts.selfplay.games
    needed = games * parts.selfplay.unroll_length
    if needed > MOST:
        raise ValueError(
            f"selfplay.unroll_length is {parts.selfplay.unroll_length}, so the moves of {games} "
            f"games exceed any replay.capacity: use at most {MOST // games}"
        )
    if capacity < needed:
        raise ValueError(
            f"replay.capacity is {capacity}, less than one iteration's moves: use at least {needed}"
        )
