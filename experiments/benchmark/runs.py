"""azjax's side of a measurement: the runs, spread over all devices as in training."""

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax import train
from azjax.learner import LearnerConfig
from azjax.network import NetworkConfig
from azjax.replay import ReplayConfig
from azjax.search import SearchConfig
from azjax.selfplay import SelfPlayConfig
from azjax.targets import make_samples
from experiments.benchmark.options import Options

PLIES = 8
BATCH = 1024  # Of the learner.
COPIED, SPREAD = P(), P(train.AXIS)


def network_config(options: Options) -> NetworkConfig:
    """The residual tower of both sides."""
    return NetworkConfig(kind="tower", channels=options.channels, blocks=options.blocks)


def run_config(
    options: Options, devices: int, *, games: int = 0, plies: int = PLIES, batch: int = BATCH
) -> train.Config:
    """A run in which every position is learned from once on average, as in AlphaZero.

    Args:
      options: sizes.
      devices: how many share games and batches.
      games: in parallel; 0 for those of the options.
      plies: moves of each game in an iteration.
      batch: samples of an optimiser step, or what comes next below that the moves allow.
    """
    games = games or options.games
    moves = games * plies
    batch = min(batch, moves) // devices * devices
    return train.Config(
        network=network_config(options),
        search=SearchConfig("gumbel", num_simulations=options.simulations),
        selfplay=SelfPlayConfig(games=games, plies=plies, opening_share=0.0),
        replay=ReplayConfig(capacity=4 * moves, shards=devices),
        learner=LearnerConfig(batch_size=batch, steps=max(1, moves // batch)),
    )


def on_mesh(
    mesh: Mesh, function: Callable, in_specs: tuple, out_spec: Any, *args: Any
) -> Callable[[], Any]:
    """Compiles a function over all devices of a mesh, as the training program does.

    Returns:
      A function that runs it on `args`, which lie on the devices already.
    """
    placed = [
        jax.device_put(arg, NamedSharding(mesh, spec))
        for arg, spec in zip(args, in_specs, strict=True)
    ]
    mapped = jax.shard_map(
        function, mesh=mesh, in_specs=in_specs, out_specs=out_spec, check_vma=False
    )
    compiled = jax.jit(mapped).lower(*placed).compile(train.compiler_options())
    return lambda: compiled(*placed)


def make_playing(config: train.Config, mesh: Mesh) -> tuple[Any, train.TrainState]:
    """Compiles the self-play of an iteration; returns it and the state that it starts from."""
    state, play = train.make_state(config, mesh), train.make_play(config, mesh)
    lowered: Any = play
    return lowered.lower(state).compile(train.compiler_options()), state


def make_remember(config: train.Config, mesh: Mesh) -> Any:
    """Compiles targets and buffer alone, `(replay, transitions) -> replay`, as iterations do."""
    parts = train.make_parts(config, train.AXIS)

    def remember(replay, transitions):
        samples = make_samples(config.targets, transitions)
        return parts.replay.add(replay, train._into_shards(replay, samples))

    specs: Any = (SPREAD, P(None, train.AXIS))
    mapped = jax.shard_map(remember, mesh=mesh, in_specs=specs, out_specs=SPREAD, check_vma=False)
    return jax.jit(mapped, donate_argnums=0)


def make_learning(config: train.Config, mesh: Mesh) -> Any:
    """Compiles learning alone, `TrainState -> LearnerState`, with an iteration's steps."""
    parts = train.make_parts(config, train.AXIS)

    def learn(state):
        return train._learn(config, parts, state.key, state.learner, state.replay)[0]

    return jax.jit(train._on_mesh(mesh, learn, COPIED))
