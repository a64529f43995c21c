"""The settings of a run, and the function that builds its parts from them."""

import dataclasses
import functools
from collections.abc import Collection
from typing import Annotated, Literal

from azjax import games
from azjax._settings import Range, check, resolve_platform
from azjax.games.base import Game
from azjax.networks import MLPConfig, Network, ResNetConfig, make_network
from azjax.search import PUCT, UCT, Gumbel, MctxGumbel, MctxMuZero
from azjax.training.learner import LearnerConfig, configured_learner
from azjax.training.parts import Parts, SelfPlayConfig, choose_games_at_once
from azjax.training.replay import ReplayConfig, make_replay
from azjax.training.targets import TargetConfig, make_targets


@dataclasses.dataclass(frozen=True)
class CustomNetworkConfig:
    """Placeholder for a network that is passed to `make_parts`."""

    kind: Literal["custom"] = "custom"
    """A custom network, given as FILE.py:FUNCTION."""
    source: str = ""
    """Its origin, `PLACE:FUNCTION#SHA-256`. It is informative only, and never imported."""

    def __post_init__(self):
        check("network", self)


NetworkConfig = ResNetConfig | MLPConfig | CustomNetworkConfig
SearchConfig = Gumbel | PUCT | UCT | MctxMuZero | MctxGumbel


@dataclasses.dataclass(frozen=True)
class Config:
    """All settings that determine a training run; the defaults are the preset `default`."""

    game: str = "tic_tac_toe"
    """Which game: tic_tac_toe, connect_four, mnk, othello, hex, hex_swap or breakthrough, of any
    size, such as connect_four:4x5 or hex:6; a game of pgx, such as pgx:chess; or a custom game,
    FILE.py:FUNCTION."""
    seed: Annotated[int, Range(0, 2**31 - 1)] = 0  # JAX truncates larger ones silently.
    """Seed of all random draws."""
    parts: str = ""
    """Custom parts (game, network, search, self-play, targets, replay, learner), which replace the
    game and the settings below: FILE.py:FUNCTION, a function without arguments that returns
    `Parts`."""
    network: NetworkConfig = dataclasses.field(default_factory=ResNetConfig)
    search: SearchConfig = dataclasses.field(default_factory=lambda: Gumbel(num_simulations=16))
    selfplay: SelfPlayConfig = dataclasses.field(default_factory=SelfPlayConfig)
    targets: TargetConfig = dataclasses.field(default_factory=TargetConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    learner: LearnerConfig = dataclasses.field(default_factory=LearnerConfig)

    def __post_init__(self):
        check("", self)


def is_custom(game: str) -> bool:
    """Whether a name is that of a custom game, `PLACE:FUNCTION`.

    PLACE is a file, or `python` for a game that was passed to `azjax.train`.
    """
    place, colon, _ = game.partition(":")
    return bool(colon) and not games.has_variants(place)


def count_devices(
    shards: int, available: int, processes: int = 1, evenly: tuple[int, ...] | None = None
) -> int:
    """Returns the largest usable number of devices per process.

    Their total over all `processes` must divide the shards of the replay buffer. If the number of
    shards may still change (see `fit_devices`), the total may instead divide all numbers in
    `evenly`, such as the numbers of games and samples.

    >>> count_devices(shards=16, available=6), count_devices(shards=16, available=6, processes=8)
    (4, 2)
    >>> count_devices(shards=8, available=64, evenly=(1024, 512))
    64
    """

    def fits(devices):
        divides = evenly is not None and not any(number % devices for number in evenly)
        return shards % devices == 0 or divides

    return max((n for n in range(1, available + 1) if fits(n * processes)), default=1)


def fit_devices(config: Config, num_devices: int, keep: Collection[str] = ()) -> Config:
    """Adapts settings so that the devices share games, batches and buffer evenly.

    Nothing changes if `num_devices` divides `replay.shards`. Otherwise each device has one shard,
    `selfplay.games` and `learner.batch_size` are rounded up to multiples of the devices, and
    `replay.capacity` is raised to hold an iteration; settings whose names are in `keep` stay.
    """
    if config.replay.shards % num_devices == 0 or "replay.shards" in keep:
        return config

    def round_up(name, value):
        return value if name in keep else -(-value // num_devices) * num_devices

    games = round_up("selfplay.games", config.selfplay.games)
    batch_size = round_up("learner.batch_size", config.learner.batch_size)
    capacity = config.replay.capacity
    if "replay.capacity" not in keep:
        capacity = max(capacity, batch_size, games * config.selfplay.unroll_length)
    return dataclasses.replace(
        config,
        selfplay=dataclasses.replace(config.selfplay, games=games),
        replay=dataclasses.replace(config.replay, capacity=capacity, shards=num_devices),
        learner=dataclasses.replace(config.learner, batch_size=batch_size),
    )


def make_parts(
    config: Config,
    game: Game | None = None,
    network: Network | None = None,
    platform: str | None = None,
) -> Parts:
    """Builds the parts of a configuration; the same arguments return the same parts.

    All choices that depend on the hardware are made here: how many games are played together,
    whether the first simulations of a search are evaluated in one call, and the data types and form
    of the layers. Tracing the parts makes no further choice, so a program can be lowered for a
    platform that this machine does not have.

    Args:
      config: the settings.
      game: replaces the game of the settings; needed if that is custom.
      network: replaces the network of the settings; needed if that is custom.
      platform: `cpu`, `gpu`, `cuda`, `rocm` or `tpu`; None: that of the default backend.
    """
    if config.parts:
        raise ValueError(f"the parts are custom, {config.parts}: pass them as parts=...")
    if game is None:
        if is_custom(config.game):
            raise ValueError(f"the game is custom, {config.game}: pass it as game=...")
        game = games.make(config.game)
    return _make_parts(config, game, network, resolve_platform(platform))


@functools.lru_cache(maxsize=16)
def _make_parts(config: Config, game: Game, network: Network | None, platform: str) -> Parts:
    if network is None:
        if isinstance(config.network, CustomNetworkConfig):
            source = config.network.source
            raise ValueError(f"the network is custom, {source}: pass it as network=...")
        network = make_network(config.network, game, platform)
    return Parts(
        game=game,
        network=network,
        search=config.search,
        selfplay=choose_games_at_once(config.selfplay, platform),
        targets=make_targets(config.targets, game),
        replay=make_replay(config.replay, config.learner.batch_size),
        learner=configured_learner(config.learner, network),
    )
