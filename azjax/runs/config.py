"""The settings of a run and its plan, and the function that builds its parts from them."""

import dataclasses
import functools
from typing import Annotated, Any, Literal

from jax.core import Tracer

from azjax import games
from azjax._settings import (
    Count,
    NonNegative,
    Positive,
    Range,
    Settings,
    flatten,
    from_dict,
    resolve_platform,
)
from azjax.games.base import Game
from azjax.networks import MLPConfig, Network, ResNetConfig, make_network
from azjax.search import PUCT, UCT, Gumbel, MctxGumbel, MctxMuZero
from azjax.search.make import default_grow
from azjax.training.learner import LearnerConfig, configured_learner
from azjax.training.parts import Parts, SelfPlayConfig
from azjax.training.replay import ReplayConfig, make_replay
from azjax.training.targets import TargetConfig, make_targets


@dataclasses.dataclass(frozen=True)
class CustomNetworkConfig(Settings, section="network"):
    """Placeholder for a network that is passed to `make_parts`."""

    kind: Literal["custom"] = "custom"
    """A custom network, given as FILE.py:FUNCTION."""
    source: str = ""
    """Its origin, `PLACE:FUNCTION#SHA-256`. It is informative only, and never imported."""


IN_PYTHON = "python"  # Stands for the file of a game or parts that were passed to `azjax.train`.
NetworkConfig = ResNetConfig | MLPConfig | CustomNetworkConfig
SearchConfig = Gumbel | PUCT | UCT | MctxGumbel | MctxMuZero
_WITH_PARTS = "game", "seed", "parts"  # The settings that have an effect with custom parts.


@dataclasses.dataclass(frozen=True)
class Config(Settings):
    """All settings that determine a training run; the defaults are the preset `default`."""

    game: str = "tic_tac_toe"
    """Which game: tic_tac_toe; connect_four, mnk, othello, hex, hex_swap, breakthrough or
    einstein, of any size, such as connect_four:4x5 or hex:6; backgammon; a game of pgx, such as
    pgx:chess; or a custom game, FILE.py:FUNCTION."""
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

    def as_dict(self) -> dict[str, Any]:
        """Returns all settings, for JSON; with custom parts, only those that have an effect."""
        settings = dataclasses.asdict(self)
        names = _WITH_PARTS if self.parts else settings
        return {name: settings[name] for name in names}

    @classmethod
    def read(cls, content: Any) -> "Config":
        """Builds a configuration from what `as_dict` returned; no setting may be missing."""
        if isinstance(content, dict) and content.get("parts"):
            defaults = dataclasses.asdict(cls())
            content = {n: s for n, s in defaults.items() if n not in _WITH_PARTS} | content
        return from_dict(cls, content, complete=True)


@dataclasses.dataclass(frozen=True)
class Plan(Settings):
    """When a run stops and what it saves, which changes no iteration."""

    until: Literal["auto", "perfect", "unbeatable", "never"] | float = "auto"
    """When to stop. perfect: no blunder in any position, and in small games none with search
    either; unbeatable: no losing line from either seat; never: after the last iteration; in games
    with dice, a number: no move loses more than this of the expected outcome; auto: perfect if the
    game can be enumerated, or 0.01 with dice, otherwise never."""
    max_iterations: Positive = 500
    """Maximum number of iterations, including earlier sessions."""
    max_minutes: NonNegative = 0.0
    """Maximum number of minutes of a session, from its start until its certificate and report are
    written; 0: no limit. There is at least one iteration."""
    examine_every: Count = 0
    """In games that can be solved: maximum number of iterations between two verifications of the
    network; 0: verification makes at most a tenth as many network evaluations as self-play."""
    checkpoint_every: Count = 0
    """Iterations between checkpoints; 0: 10, but at most one checkpoint a minute. There is always
    one at the end."""
    keep_checkpoints: Positive = 3
    """Number of newest checkpoints to keep."""
    report: bool = True
    """Write report.html at the end."""


def is_custom(game: str) -> bool:
    """Whether a name is that of a custom game, `FILE.py:FUNCTION` or `IN_PYTHON:NAME`."""
    place, colon, _ = game.partition(":")
    return bool(colon) and not games.has_variants(place)


def count_devices(available: int, *numbers: int) -> int:
    """Returns the largest number of devices, up to those available, that divides all `numbers`."""
    return max(n for n in range(1, available + 1) if not any(number % n for number in numbers))


def make_parts(
    config: Config,
    game: Game | None = None,
    network: Network | None = None,
    platform: str | None = None,
) -> Parts:
    """Builds the parts of a configuration; the same arguments return the same parts.

    `game` and `network` replace those of the settings, and are needed if those are custom. Settings
    that determine no shape, such as learning rates, may be traced.

    All choices that depend on the hardware are made here, for a platform, `cpu`, `gpu`, `cuda`,
    `rocm` or `tpu`, that this machine need not have; None is that of the default backend.
    """
    if config.parts:
        raise ValueError(f"the parts are custom, {config.parts}: pass them as parts=...")
    if game is None:
        if is_custom(config.game):
            raise ValueError(f"the game is custom, {config.game}: pass it as game=...")
        game = games.make(config.game)
    is_traced = any(isinstance(value, Tracer) for _, value in flatten(config))
    make = _make_parts.__wrapped__ if is_traced else _make_parts  # A cache would keep the tracers.
    return make(config, game, network, resolve_platform(platform))


@functools.lru_cache(maxsize=16)
def _make_parts(config: Config, game: Game, network: Network | None, platform: str) -> Parts:
    if network is None:
        if isinstance(config.network, CustomNetworkConfig):
            source = config.network.source
            raise ValueError(f"the network is custom, {source}: pass it as network=... or in parts")
        network = make_network(config.network, game, platform)
    selfplay = config.selfplay
    if platform == "cpu" and not selfplay.games_at_once:
        # With few simulations, the trees of this many games can fit in a core's cache.
        selfplay = dataclasses.replace(selfplay, games_at_once=256)
    return Parts(
        game=game,
        network=network,
        search=config.search,
        selfplay=selfplay,
        targets=make_targets(config.targets, game),
        replay=make_replay(config.replay, config.learner.batch_size),
        learner=configured_learner(config.learner, network),
        grow=default_grow(platform),
    )
