"""Training: one iteration, self-play to updated parameters, as one compiled program."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax import games as game_registry
from azjax.evaluators import Evaluator, network_evaluator
from azjax.game import Game
from azjax.learner import Learner, LearnerConfig, LearnerState, Losses, make_learner
from azjax.network import Network, NetworkConfig, make_network
from azjax.replay import Replay, ReplayConfig, ReplayState, make_replay
from azjax.search import Search, SearchConfig, make_search
from azjax.selfplay import Games, SelfPlayConfig, Transition, start_games, unroll
from azjax.settings import MOST, check_range, check_types
from azjax.targets import Sample, TargetConfig, augment, make_samples

AXIS = "data"  # The mesh's one axis: games and replay shards are spread over it.


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that determines a training run."""

    game: str = "tic_tac_toe"
    """Which game: tic_tac_toe or connect_four."""
    seed: int = 0
    """Seed of every random draw."""
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    search: SearchConfig = dataclasses.field(default_factory=SearchConfig)
    selfplay: SelfPlayConfig = dataclasses.field(default_factory=SelfPlayConfig)
    targets: TargetConfig = dataclasses.field(default_factory=TargetConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    learner: LearnerConfig = dataclasses.field(default_factory=LearnerConfig)

    def __post_init__(self):
        check_types("", self)
        check_range("", self, "seed", 0, 2**31 - 1)  # JAX would cut down a larger one unasked.


@flax.struct.dataclass
class TrainState:
    """All that a run carries from one iteration to the next.

    Attributes:
      learner: parameters, their average, the optimiser's state.
      replay: the buffer; leaves `[shards, ...]`.
      games: the games in flight; leaves `[B, ...]`.
      key: the run's key; iteration `i` uses `fold_in(key, i)` and nothing else.
      iteration: `int32 []`, iterations made.
    """

    learner: LearnerState
    replay: ReplayState
    games: Games
    key: jax.Array
    iteration: jax.Array


class Metrics(NamedTuple):
    """What one iteration reports; all `float32 []`.

    Attributes:
      losses: means over the iteration's optimiser steps.
      games: games finished.
      moves: moves made.
    """

    losses: Losses
    games: jax.Array
    moves: jax.Array


class Parts(NamedTuple):
    """The pieces that a configuration names, each usable alone."""

    game: Game
    network: Network
    evaluate: Evaluator
    search: Search
    replay: Replay
    learner: Learner


def make_parts(config: Config, axis_name: str | None = None) -> Parts:
    """Builds the pieces of a run."""
    game = game_registry.make(config.game)
    network = make_network(config.network, game, axis_name)
    evaluate = network_evaluator(game, network, config.network.encoding)
    return Parts(
        game=game,
        network=network,
        evaluate=evaluate,
        search=make_search(config.search, game, evaluate),
        replay=make_replay(config.replay, config.learner.batch_size),
        learner=make_learner(config.learner, network, axis_name),
    )


def check(config: Config, num_devices: int) -> None:
    """Refuses settings that contradict each other or the number of devices.

    Raises:
      ValueError: naming the setting, its value and what would work.
    """
    shards, games = config.replay.shards, config.selfplay.games
    batch, capacity = config.learner.batch_size, config.replay.capacity
    if shards % num_devices:
        raise ValueError(
            f"replay.shards is {shards}, which {num_devices} devices do not divide: use "
            f"{num_devices} or a multiple of it"
        )
    if shards > min(games, batch):
        most = math.gcd(games, batch)
        raise ValueError(
            f"replay.shards is {shards}, more than there are games ({games}) or samples in a "
            f"batch ({batch}): use {num_devices if most % num_devices else most}"
        )
    for name, value in (("selfplay.games", games), ("learner.batch_size", batch)):
        if value % shards:
            raise ValueError(
                f"{name} is {value}, which the {shards} shards of the buffer do not divide: "
                f"use a multiple of {shards}, such as {-(-value // shards) * shards}"
            )
    needed = max(games * config.selfplay.plies, batch)
    if needed > MOST:
        raise ValueError(
            f"selfplay.plies is {config.selfplay.plies}, and {games} games of so many moves are "
            f"more than any replay.capacity: use at most {MOST // games}"
        )
    if capacity < needed:
        raise ValueError(
            f"replay.capacity is {capacity}, less than one iteration's moves or one batch: "
            f"use at least {needed}"
        )


def init_state(config: Config) -> TrainState:
    """Returns the state before the first iteration; a pure function of `config`."""
    parts = make_parts(config)
    key = jax.random.key(config.seed)
    key_network, key_games, key_run = jax.random.split(key, 3)
    game_keys = jax.random.split(key_games, config.selfplay.games)
    return TrainState(
        learner=parts.learner.init(parts.network.init(key_network)),
        replay=parts.replay.init(example_sample(config, parts.game), config.replay.shards),
        games=start_games(config.selfplay, parts.game, game_keys),
        key=key_run,
        iteration=jnp.zeros((), jnp.int32),
    )


def example_sample(config: Config, game: Game) -> Sample:
    """A sample of the right shapes and types."""
    state = game.init()
    legal = game.legal_actions(state)
    policy = legal.astype(jnp.float32)
    return Sample(game.observe(state, config.network.encoding), legal, policy, jnp.zeros(()))


def make_iteration(config: Config, mesh: Mesh) -> Callable[[TrainState], tuple]:
    """Compiles `iteration: TrainState -> (TrainState, Metrics)` for a mesh of devices.

    Each device plays and searches its own games; gradients, BatchNorm statistics and
    metrics are averaged. The state handed in is donated.
    """
    parts = make_parts(config, AXIS)
    specs = state_specs()
    step = _on_mesh(mesh, lambda state: _iteration(config, parts, state), (specs, P()))
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    return jax.jit(
        step, donate_argnums=0, in_shardings=(shardings,), out_shardings=(shardings, None)
    )


def make_play(config: Config, mesh: Mesh) -> Callable[[TrainState], tuple[Games, Transition]]:
    """Compiles the self-play of an iteration alone, `TrainState -> (Games, Transition)`.

    The state is not donated. Transitions are `[T, B, ...]`, spread over the mesh by game.
    """
    parts = make_parts(config, AXIS)

    def play(state):
        return _play(config, parts, jax.random.fold_in(state.key, state.iteration), state)

    return jax.jit(_on_mesh(mesh, play, (P(AXIS), P(None, AXIS))))


def _on_mesh(mesh: Mesh, step: Callable, out_specs: Any) -> Callable:
    """Maps a function of a `TrainState` over the devices of a mesh."""
    return jax.shard_map(
        step,
        mesh=mesh,
        in_specs=(state_specs(),),
        out_specs=out_specs,
        check_vma=False,  # The loops of mctx 0.0.71 carry unvarying values that vary later.
    )


def one_copy(replicated: Any) -> Any:
    """Returns a tree that every device holds as this process's first device holds it."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), replicated)


def compiler_options(often: bool = True) -> dict[str, Any]:
    """Options for `lower(...).compile(...)` that make programs start soonest.

    On CPUs most time goes to matrix products, which are compiled already. Optimising the rest
    to the end takes half as long again, and makes no iteration measurably shorter.

    Args:
      often: whether the program runs so much that its own speed counts.
    """
    on_cpu = jax.default_backend() == "cpu"
    return {"xla_backend_optimization_level": 1 if often else 0} if on_cpu else {}


def state_specs() -> TrainState:
    """How a `TrainState` lies on the mesh: games and buffer are spread, the rest is copied."""
    specs: Any = (P(), P(AXIS), P(AXIS), P(), P())
    return TrainState(*specs)


def _iteration(config: Config, parts: Parts, state: TrainState):
    """One iteration on one device: play, remember, learn."""
    key = jax.random.fold_in(state.key, state.iteration)
    key_play, key_learn = jax.random.split(key)
    games, transitions = _play(config, parts, key_play, state)
    samples = _into_shards(state.replay, make_samples(config.targets, transitions))
    replay = parts.replay.add(state.replay, samples)
    learner, losses = _learn(config, parts, key_learn, state.learner, replay)
    finished = jnp.sum(transitions.discount == 0, dtype=jnp.float32)
    metrics = Metrics(
        losses=jax.tree.map(jnp.mean, losses),
        games=jax.lax.psum(finished, AXIS),
        moves=jnp.float32(config.selfplay.games * config.selfplay.plies),
    )
    return TrainState(learner, replay, games, state.key, state.iteration + 1), metrics


def _play(config: Config, parts: Parts, key, state: TrainState) -> tuple[Games, Transition]:
    """Self-play by the averaged network, in its inference form."""
    folded = parts.network.fold(state.learner.average)
    keys = _local_keys(key, state.games.ply.shape[0])
    encoding = config.network.encoding
    return unroll(config.selfplay, parts.game, encoding, parts.search, folded, keys, state.games)


def _local_keys(key, count: int):
    """This device's share of the keys for all games, or all shards: one each."""
    first = jax.lax.axis_index(AXIS) * count
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(first + jnp.arange(count))


def _into_shards(replay: ReplayState, samples: Sample) -> Sample:
    """Deals samples `[T, B, ...]` out to this device's shards, `[D, K, ...]`, by game."""
    shards = jax.tree.leaves(replay)[0].shape[0]

    def deal(leaf):
        by_game = jnp.swapaxes(leaf, 0, 1)
        return by_game.reshape(shards, -1, *leaf.shape[2:])

    return jax.tree.map(deal, samples)


def _learn(config: Config, parts: Parts, key, learner: LearnerState, replay: ReplayState):
    """Draws batches from the buffer and makes the iteration's optimiser steps."""
    shards, steps = jax.tree.leaves(replay)[0].shape[0], config.learner.steps
    keys = jax.vmap(lambda key: jax.random.split(key, (steps, 2)))(_local_keys(key, shards))

    def step(learner, keys):
        samples = parts.replay.sample(replay, keys[:, 0])
        samples = jax.vmap(functools.partial(augment, parts.game))(keys[:, 1], samples)
        batch = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), samples)
        return parts.learner.update(learner, batch)

    return jax.lax.scan(step, learner, jnp.swapaxes(keys, 0, 1))


def abstract_state(config: Config, mesh: Mesh) -> TrainState:
    """Returns the shapes, types and places of a run's state, without computing it."""
    shapes = _init(config).eval_shape()
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        shapes,
        _shardings(mesh, shapes),
    )


def make_state(config: Config, mesh: Mesh) -> TrainState:
    """Computes `init_state` on the devices of a mesh, each part in its place."""
    shardings = _shardings(mesh, _init(config).eval_shape())
    init = jax.jit(lambda: _init(config)(), out_shardings=shardings)
    return init.lower().compile(compiler_options(often=False))()


def trace_state(config: Config) -> Any:
    """Traces `init_state` without computing it."""
    return _init(config).trace()


@functools.cache
def _init(config: Config) -> Any:
    """`init_state`, to be traced once for its shapes and its values."""
    return jax.jit(lambda: init_state(config))


def _shardings(mesh: Mesh, state: TrainState) -> TrainState:
    """Where each leaf of a state belongs."""

    def place(spec, tree):
        return jax.tree.map(lambda _: NamedSharding(mesh, spec), tree)

    return jax.tree.map(place, state_specs(), state, is_leaf=lambda x: isinstance(x, P))


def make_mesh(devices=None) -> Mesh:
    """Returns a mesh of one axis over the given devices, all local ones by default."""
    devices = jax.devices() if devices is None else devices
    return Mesh(np.asarray(devices), (AXIS,))
