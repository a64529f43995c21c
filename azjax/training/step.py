"""Training: one iteration, self-play to updated parameters, as one pure function.

`init(parts, key)` is the first `TrainState`, and `iteration(parts, state)` the next one with its
metrics: both are pure, to be jitted, or vmapped over keys for many trainings at once.
`make_iteration` compiles the same for a mesh of devices.
"""

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

from azjax._settings import MOST, resolve_platform
from azjax.games import hashing
from azjax.games.base import Game, init_batch, state_shapes
from azjax.networks.base import Network, check_network
from azjax.search import Algorithm, check_algorithm, make_search
from azjax.search.evaluators import Evaluator, network_evaluator
from azjax.training import positions as archives
from azjax.training.learner import Learner, LearnerState, Losses
from azjax.training.positions import Archive
from azjax.training.replay import Replay, ReplayState
from azjax.training.selfplay import (
    Games,
    SelfPlayConfig,
    Transition,
    no_extra,
    start_games,
    unroll,
)
from azjax.training.targets import Sample, Targets

AXIS = "data"  # The mesh's one axis: games and replay shards are spread over it.


class Parts(NamedTuple):
    """What is trained, and how; everything but the numbers that change.

    Attributes:
      game: the rules.
      network: see `networks.make_network` and `networks.from_module`.
      search: the algorithm of self-play, such as `Gumbel(num_simulations=16)`.
      selfplay: how games are generated.
      targets: what is learned of them, see `targets.make_targets`.
      replay: the buffer, see `replay.make_replay`.
      learner: loss and optimiser, see `learner.make_learner`.
    """

    game: Game
    network: Network
    search: Algorithm
    selfplay: SelfPlayConfig
    targets: Targets
    replay: Replay
    learner: Learner

    def __repr__(self):
        search = type(self.search).__name__
        return f"Parts(game={self.game!r}, network={self.network!r}, search={search})"

    @property
    def evaluate(self) -> Evaluator:
        """The network as an evaluator; its `params` are `network.fold(variables)`."""
        return network_evaluator(self.game, self.network)


@flax.struct.dataclass
class TrainState:
    """All that a run carries from one iteration to the next.

    Attributes:
      learner: parameters, their average, the optimiser's state.
      replay: the buffer; leaves `[shards, ...]`.
      games: the games in flight; leaves `[B, ...]`.
      archive: of positions that games begin from, or None.
      key: the run's key; iteration `i` uses `fold_in(key, i)` and nothing else.
      iteration: `int32 []`, iterations made.
    """

    learner: LearnerState
    replay: ReplayState
    games: Games
    archive: Archive | None
    key: jax.Array
    iteration: jax.Array

    def __repr__(self):
        return f"TrainState(iteration={self.iteration!r}, learner={self.learner!r})"


class Metrics(NamedTuple):
    """What one iteration reports; each `float32 []`.

    Attributes:
      losses: by name, means over the iteration's optimiser steps.
      games: games finished.
      moves: moves made.
    """

    losses: Losses
    games: jax.Array
    moves: jax.Array


def _check_members(parts: Parts) -> None:
    """Refuses parts that are of the wrong kind, or of another game."""
    makers = {
        "game": (Game, "azjax.make"),
        "selfplay": (SelfPlayConfig, "SelfPlayConfig"),
        "targets": (Targets, "targets.make_targets"),
        "replay": (Replay, "replay.make_replay"),
        "learner": (Learner, "learner.make_learner"),
    }
    for name, (kind, maker) in makers.items():
        if not isinstance(found := getattr(parts, name), kind):
            raise ValueError(
                f"parts.{name} is of type {type(found).__name__}: use a {kind.__name__}, as "
                f"{maker} returns"
            )
    check_network(parts.game, parts.network)
    check_algorithm(parts.search)


def check_parts(parts: Parts, num_devices: int = 1) -> None:
    """Refuses parts that contradict each other or the number of devices.

    Raises:
      ValueError: naming the setting, its value and what would work.
    """
    _check_members(parts)
    shards, games = parts.replay.shards, parts.selfplay.games
    batch, capacity = parts.replay.batch_size, parts.replay.capacity
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
    if parts.selfplay.archive:
        jax.eval_shape(hashing.contents, state_shapes(parts.game))
    needed = games * parts.selfplay.unroll_length
    if needed > MOST:
        raise ValueError(
            f"selfplay.unroll_length is {parts.selfplay.unroll_length}, and {games} games of so "
            f"many moves are more than any replay.capacity: use at most {MOST // games}"
        )
    if capacity < needed:
        raise ValueError(
            f"replay.capacity is {capacity}, less than one iteration's moves: use at least {needed}"
        )


def init(parts: Parts, key: jax.Array) -> TrainState:
    """Returns the state before the first iteration; the key is for all that the run draws.

    Raises:
      ValueError: if the parts contradict each other, see `check_parts`.
    """
    check_parts(parts)
    key_network, key_games, key_run = jax.random.split(key, 3)
    game_keys = jax.random.split(key_games, parts.selfplay.games)
    games = start_games(parts.selfplay, parts.game, game_keys)
    places, first = parts.selfplay.archive, jax.tree.map(lambda leaf: leaf[0], games)
    return TrainState(
        learner=parts.learner.init(parts.network.init(key_network)),
        replay=parts.replay.init(example(parts), parts.replay.shards),
        games=games,
        archive=archives.make_archive(first, places) if places else None,
        key=key_run,
        iteration=jnp.zeros((), jnp.int32),
    )


def example(parts: Parts) -> Sample:
    """Returns a sample of the right shapes and types."""
    state = parts.game.init()
    legal = parts.game.legal_actions(state)
    transition = Transition(
        planes=parts.game.observe(state, parts.network.encoding),
        legal=legal,
        action_weights=legal.astype(jnp.float32),
        root_value=jnp.zeros((), jnp.float32),
        action=jnp.zeros((), jnp.int32),
        reward=jnp.zeros((), jnp.float32),
        discount=jnp.zeros((), jnp.float32),
        extra=_example_note(parts),
    )
    one = jax.tree.map(lambda leaf: leaf[None, None], transition)
    return jax.tree.map(lambda leaf: leaf[0, 0], parts.targets.make(one))


def _example_note(parts: Parts) -> Any:
    """What self-play keeps of the search of one position; zeros."""
    if parts.targets.note is no_extra:  # So that no search is traced in vain.
        return ()

    def search():
        params = parts.network.fold(parts.network.init(jax.random.key(0)))
        find = make_search(parts.search, parts.game, parts.evaluate)
        return parts.targets.note(find(params, jax.random.key(0), init_batch(parts.game, 1)))

    shapes = jax.eval_shape(search)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype), shapes)


def iteration(
    parts: Parts, state: TrainState, axis_name: str | None = None
) -> tuple[TrainState, Metrics]:
    """Makes one iteration, plays, remembers, learns; pure.

    Args:
      parts: what is trained.
      state: from `init`, or from the iteration before; of several devices, the share of one.
      axis_name: the mesh axis that games, buffer and gradients are shared over; None for one
        device.

    Raises:
      ValueError: if the parts contradict each other or the size of the axis, see `check_parts`.
    """
    check_parts(parts, 1 if axis_name is None else jax.lax.axis_size(axis_name))
    key = jax.random.fold_in(state.key, state.iteration)
    key_play, key_learn = jax.random.split(key)
    games, transitions = _play(parts, key_play, state, axis_name)
    samples = _into_shards(state.replay, parts.targets.make(transitions))
    replay = parts.replay.add(state.replay, samples)
    learner, losses = _learn(parts, key_learn, state.learner, replay, axis_name)
    finished = jnp.sum(transitions.discount == 0, dtype=jnp.float32)
    metrics = Metrics(
        losses=jax.tree.map(jnp.mean, losses),
        games=finished if axis_name is None else jax.lax.psum(finished, axis_name),
        moves=jnp.float32(parts.selfplay.games * parts.selfplay.unroll_length),
    )
    archive = _remember(state.archive, transitions.new_starts, axis_name)
    return TrainState(learner, replay, games, archive, state.key, state.iteration + 1), metrics


def _play(parts: Parts, key, state: TrainState, axis_name) -> tuple[Games, Transition]:
    """Self-play by the averaged network, in its inference form."""
    folded, games = parts.network.fold(state.learner.ema_params), state.games
    keys = _local_keys(key, games.ply.shape[0], axis_name)
    if not parts.selfplay.carry_over:
        keys, first_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
        games = start_games(parts.selfplay, parts.game, first_keys, state.archive)
    search, encoding = make_search(parts.search, parts.game, parts.evaluate), parts.network.encoding
    rules = parts.selfplay, parts.game, encoding, search
    return unroll(*rules, folded, keys, games, parts.targets.note, state.archive)


def _remember(archive: Archive | None, games: Any, axis_name: str | None) -> Archive | None:
    """Puts games `[T, B, 2, ...]` of all devices into the archive, of which each has a copy."""
    if archive is None:
        return None
    if axis_name is not None:
        games = jax.lax.all_gather(games, axis_name, axis=1, tiled=True)
    games = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 3), games)
    return archives.add(archive, games.states, games)


def _local_keys(key, count: int, axis_name: str | None):
    """This device's share of the keys for all games, or all shards: one each."""
    first = 0 if axis_name is None else jax.lax.axis_index(axis_name) * count
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(first + jnp.arange(count))


def _into_shards(replay: ReplayState, samples: Sample) -> Sample:
    """Deals samples `[T, B, ...]` out to this device's shards, `[D, K, ...]`, by game."""
    shards = jax.tree.leaves(replay)[0].shape[0]
    return jax.tree.map(
        lambda leaf: jnp.swapaxes(leaf, 0, 1).reshape(shards, -1, *leaf.shape[2:]), samples
    )


def _learn(parts: Parts, key, learner: LearnerState, replay: ReplayState, axis_name):
    """Draws batches from the buffer and makes the iteration's optimiser steps."""
    shards, steps = jax.tree.leaves(replay)[0].shape[0], parts.learner.steps
    keys = _local_keys(key, shards, axis_name)
    keys = jax.vmap(lambda key: jax.random.split(key, (steps, 2)))(keys)

    def step(learner, keys):
        samples = parts.replay.sample(replay, keys[:, 0])
        samples = jax.vmap(parts.targets.augment)(keys[:, 1], samples)
        batch = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), samples)
        return parts.learner.update(learner, batch, axis_name)

    return jax.lax.scan(step, learner, jnp.swapaxes(keys, 0, 1))


# The same on a mesh of devices.


def make_iteration(parts: Parts, mesh: Mesh) -> Callable[[TrainState], tuple]:
    """Compiles `TrainState -> (TrainState, Metrics)` for a mesh; the state is donated.

    Each device plays its own games; gradients, BatchNorm statistics and metrics are averaged.

    Raises:
      ValueError: if the parts contradict each other or the number of devices.
    """
    check_parts(parts, mesh.size)
    specs = state_specs()
    step = _on_mesh(mesh, lambda state: iteration(parts, state, AXIS), (specs, P()))
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    return jax.jit(
        step, donate_argnums=0, in_shardings=(shardings,), out_shardings=(shardings, None)
    )


def make_play(parts: Parts, mesh: Mesh) -> Callable[[TrainState], tuple[Games, Transition]]:
    """Compiles the self-play of an iteration alone; transitions are `[T, B, ...]`.

    Raises:
      ValueError: if the parts contradict each other or the number of devices.
    """
    check_parts(parts, mesh.size)

    def play(state):
        return _play(parts, jax.random.fold_in(state.key, state.iteration), state, AXIS)

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


def make_state(
    parts: Parts, key: jax.Array, mesh: Mesh, check: Callable[[Any], None] | None = None
) -> TrainState:
    """Computes `init` on the devices of a mesh, each part in its place.

    The compiled program is handed to `check` before it runs, to raise if it is too large.

    Raises:
      ValueError: if the parts contradict each other or the number of devices.
    """
    check_parts(parts, mesh.size)
    data = np.asarray(jax.random.key_data(key))
    make = _initial(parts, str(jax.random.key_impl(key)))
    placed = jax.jit(make, out_shardings=_shardings(mesh, make.eval_shape(data)))
    first = compiled(placed, data, often=False)
    if check is not None:
        check(first)
    return first(data)


def abstract_state(parts: Parts, mesh: Mesh) -> TrainState:
    """Returns the shapes, types and places of a run's state, without computing it.

    Raises:
      ValueError: if the parts contradict each other or the number of devices.
    """
    check_parts(parts, mesh.size)
    key = jax.random.key(0)
    shapes = _initial(parts, str(jax.random.key_impl(key))).eval_shape(jax.random.key_data(key))
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        shapes,
        _shardings(mesh, shapes),
    )


@functools.lru_cache(maxsize=8)
def _initial(parts: Parts, key_impl: str) -> Any:
    """`init` of a key's data, to be traced once for its shapes and its values."""
    return jax.jit(lambda data: init(parts, jax.random.wrap_key_data(data, impl=key_impl)))


def _shardings(mesh: Mesh, state: TrainState) -> TrainState:
    """Where each leaf of a state belongs."""

    def place(spec, tree):
        return jax.tree.map(lambda _: NamedSharding(mesh, spec), tree)

    return jax.tree.map(place, state_specs(), state, is_leaf=lambda x: isinstance(x, P))


def state_specs() -> TrainState:
    """How a `TrainState` lies on the mesh: games and buffer are spread, the rest is copied."""
    specs: Any = (P(), P(AXIS), P(AXIS), P(), P(), P())
    return TrainState(*specs)


def make_mesh(devices=None) -> Mesh:
    """Returns a mesh of one axis over the given devices, all local ones by default."""
    devices = jax.devices() if devices is None else devices
    return Mesh(np.asarray(devices), (AXIS,))


def one_copy(replicated: Any) -> Any:
    """Returns a tree that every device holds as this process's first device holds it."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), replicated)


def compiled(function: Any, *args: Any, often: bool = True) -> Any:
    """Compiles a jitted function for arguments, or their shapes; see `compiler_options`."""
    return function.lower(*args).compile(compiler_options(often))


def compiler_options(often: bool = True, platform: str | None = None) -> dict[str, Any]:
    """Options for `lower(...).compile(...)` that make programs start soonest.

    On CPUs most time goes to matrix products, which are compiled already: optimising the rest
    makes no iteration measurably shorter. A program that does not run `often` needs even less.
    """
    on_cpu = resolve_platform(platform) == "cpu"
    return {"xla_backend_optimization_level": 1 if often else 0} if on_cpu else {}
