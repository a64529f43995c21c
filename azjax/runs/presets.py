"""Named configurations, and the choice among them by game."""

import dataclasses
from typing import Literal

from azjax import games
from azjax._settings import checked
from azjax.games.base import Game
from azjax.networks import MLPConfig, ResNetConfig
from azjax.runs.config import Config, CustomNetworkConfig, Plan
from azjax.search import PUCT, Gumbel
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from azjax.training.targets import TargetConfig

_TIC_TAC_TOE = ("tic_tac_toe", "mnk:3x3x3", "pgx:tic_tac_toe")  # `default` was tuned for it.
# Custom games with up to this many positions get the preset `default`. It leads to perfect players
# in the package's games with up to 20,000 positions, but not in Dots and Boxes on 2x2 boxes, which
# has 5,349.
_FEW = 1000
# On two CPU cores, dense layers evaluate ten times as many positions per second as convolutions
# with 64 channels. Sharing weights between mirror images can double this rate. Random openings
# reach endgames that good players avoid. Exact errors did not distinguish the value targets
# (lab/ideas.md); half of the root value stays, since the recorded players were trained with it.
# Searches with 16 simulations and twice as many games learn faster than searches with 32. The
# buffer holds 24 iterations. The learning rate decays over 1,500 iterations, which take an hour on
# two cores. Further experiments are listed in lab/connect_four.md.
_CONNECT_FOUR = Config(
    game="connect_four",
    network=ResNetConfig(
        width=320,
        blocks=2,
        norm="none",
        evaluation_dtype="auto",
        learning_dtype="auto",
        symmetric=True,
    ),
    search=Gumbel(num_simulations=16, value_scale=0.5),
    selfplay=SelfPlayConfig(games=1024, unroll_length=16, opening_plies=32),
    targets=TargetConfig(outcome_weight=0.5),
    replay=ReplayConfig(capacity=393_216),
    learner=LearnerConfig(
        batch_size=1024, steps=64, learning_rate=2e-3, decay_steps=96_000, policy_surprise=0.5
    ),
)
PRESETS = {
    # Tuned to reach a perfect tic-tac-toe player quickly on two CPU cores.
    "default": Config(),
    # Close to AlphaZero as published, scaled to the board: a residual network of convolutions, PUCT
    # with Dirichlet noise, outcomes as value targets, SGD with momentum and a weight penalty.
    # c_puct is the published 1.25, for Q in [0, 1]; with Q in [-1, 1], as here, it explores half as
    # much. An unvisited action counts as a draw, not as a loss, and planes are by color. Most games
    # start with random moves: self-play from the empty board seldom or never reaches most of the
    # positions that verification covers.
    "paper": Config(
        network=ResNetConfig(encoding="absolute", layers="conv", width=64, blocks=2, norm="batch"),
        search=PUCT(num_simulations=50, dirichlet_alpha=1.0),
        selfplay=SelfPlayConfig(
            games=512, unroll_length=9, opening_share=0.8, opening_plies=8, temperature_plies=3
        ),
        replay=ReplayConfig(capacity=32_768),
        learner=LearnerConfig(
            optimizer="sgd",
            batch_size=512,
            steps=64,
            learning_rate=0.05,
            decay_steps=3000,
            final_learning_rate=0.0005,
            l2=1e-4,
            clip_norm=0.0,
            ema_decay=0.0,
        ),
    ),
    # A small MLP and few games with deep searches, Adam at 1e-3.
    "mlp": Config(
        network=MLPConfig(hidden=(128, 128, 64), head_hidden=32),
        search=PUCT(num_simulations=200, c_puct=1.0),
        selfplay=SelfPlayConfig(games=50, unroll_length=9, opening_share=0.0, temperature_plies=9),
        replay=ReplayConfig(capacity=8_000, shards=2),
        learner=LearnerConfig(
            batch_size=64,
            steps=28,
            learning_rate=1e-3,
            warmup_steps=0,
            decay_steps=0,
            clip_norm=0.0,
            ema_decay=0.0,
        ),
    ),
    "connect_four": _CONNECT_FOUR,
    # For games that can be solved and are not tiny. Each iteration starts games from a buffer of
    # all positions met, to cover them evenly, and plays only four moves of each. Searches with 8
    # simulations lead to perfect networks sooner than searches with 16.
    "enumerable": dataclasses.replace(
        _CONNECT_FOUR,
        game=Config().game,
        network=dataclasses.replace(_CONNECT_FOUR.network, width=224),
        search=dataclasses.replace(_CONNECT_FOUR.search, num_simulations=8),
        selfplay=SelfPlayConfig(
            games=4096,
            unroll_length=4,
            carry_over=False,
            opening_plies=16,
            archive=2**20,
            archive_share=0.8,
        ),
        replay=ReplayConfig(capacity=131_072),
        learner=LearnerConfig(batch_size=1024, steps=64, learning_rate=2e-3, decay_steps=10_000),
    ),
    # For games without tuned settings: the settings of Connect Four, but with a wider network, half
    # the learning rate, a shorter decay, and no policy surprise. The buffer is half as large, since
    # samples of the first iterations soon become outdated.
    "large": dataclasses.replace(
        _CONNECT_FOUR,
        game=Config().game,
        network=dataclasses.replace(_CONNECT_FOUR.network, width=448),
        replay=ReplayConfig(capacity=196_608),
        learner=LearnerConfig(batch_size=1024, steps=64, learning_rate=1e-3, decay_steps=30_000),
    ),
}

_SMALL: dict[str, dict] = {  # Changes by `smoke` for each kind of network.
    "resnet": {"width": 16, "blocks": 1, "head_hidden": 16},
    "mlp": {"hidden": (32,), "head_hidden": 16},
}


def get(name: str) -> Config:
    """Returns the preset of that name; raises a ValueError if it does not exist."""
    return PRESETS[checked("preset", name, Literal[*PRESETS])]


def name_for(name: str, game: Game | None = None) -> str:
    """Returns the name of the default preset of a game; `game` is the game itself, if custom."""
    base = name.partition(":")[0]  # The game without its size.
    if game is None and name in _TIC_TAC_TOE:
        return "default"
    if game is None and base == "pgx":  # Creating games of pgx takes long.
        return "large"
    measured = game is None and games.has_variants(base)
    made = games.make(name) if game is None else game
    if made.enumerable:
        is_tiny = made.is_small if measured else (made.most_positions or 0) <= _FEW
        return "default" if is_tiny else "enumerable"
    return base if measured and base in PRESETS else "large"


def choose(
    name: str | None, game: Game | None = None, *, preset: str | None = None, is_smoke: bool = False
) -> tuple[Config, Plan, str]:
    """Returns the settings, the plan and the preset of a new run.

    `name` is the game, as in `games.make`, or as the settings record a custom one, which `game` is;
    by default, it is that of the preset. By default, the game determines the preset.
    """
    preset = preset or name_for(name or Config.game, game)
    config = get(preset) if name is None else dataclasses.replace(get(preset), game=name)
    return *adapt(config, game, is_smoke), preset


def adapt(config: Config, game: Game | None, is_smoke: bool) -> tuple[Config, Plan]:
    """Shrinks the settings of a preset if asked, and fits them to a custom game; adds the plan."""
    config = config if game is None else fit(config, game)
    if is_smoke:
        return smoke(config), Plan(until="never", max_iterations=3)
    return config, Plan()


def fit(config: Config, game: Game) -> Config:
    """Makes the network of a preset use the encoding of a game, if it has only one."""
    if isinstance(config.network, CustomNetworkConfig) or len(game.encodings) != 1:
        return config
    network = dataclasses.replace(config.network, encoding=game.encodings[0])
    return dataclasses.replace(config, network=network)


def smoke(config: Config) -> Config:
    """Shrinks a configuration so that a few iterations finish in seconds."""
    return dataclasses.replace(
        config,
        network=dataclasses.replace(config.network, **_SMALL.get(config.network.kind, {})),
        search=dataclasses.replace(config.search, num_simulations=4),
        selfplay=dataclasses.replace(
            config.selfplay, games=16, unroll_length=4, archive=min(config.selfplay.archive, 1024)
        ),
        replay=dataclasses.replace(config.replay, capacity=1024, shards=8),
        learner=dataclasses.replace(config.learner, batch_size=32, steps=2),
    )
