"""One iteration of training, from self-play to updated parameters, as a pure function.

`init(parts, key)` returns the first `TrainState`, and `iteration(parts, state)` the next one with
metrics. Both can be jitted, and vmapped over keys to train many networks together.
`make_iteration` compiles an iteration for a mesh of devices.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax.games.base import init_batch
from azjax.search import make_search
from azjax.training import archive as archives
from azjax.training import effort
from azjax.training.archive import Archive
from azjax.training.learner import LearnerState, Losses
from azjax.training.parts import Parts, check_parts
from azjax.training.selfplay import Games, self_play, start_games
from azjax.training.targets import Sample, Transition, no_extra

AXIS = "data"  # The only axis of the mesh.
# By default, XLA leaves out loops and conditions.
_GRAPHS = "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,WHILE,CONDITIONAL,DYNAMIC_SLICE_FUSION"


@flax.struct.dataclass
class TrainState:
    """The complete state of training between iterations."""

    learner: LearnerState
    replay: Any  # The replay buffer; leaves [shards, ...].
    games: Games  # The games in flight; leaves [B, ...].
    archive: Archive | None  # The position buffer.
    key: jax.Array  # Of the run; iteration `i` uses only `fold_in(key, i)`.
    iteration: jax.Array  # int32 [], number of completed iterations.

    def __repr__(self):
        return f"TrainState(iteration={self.iteration!r})"


class Metrics(NamedTuple):
    """Metrics of one iteration, each `float32 []`."""

    losses: Losses  # By name, means over the optimizer steps of the iteration.
    games: jax.Array  # Number of finished games.


def init(parts: Parts, key: jax.Array) -> TrainState:
    """Returns the state before the first iteration; all random draws derive from the key."""
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
    """Returns a sample with the shapes and types of the run."""

    def search():
        params = parts.network.fold(parts.network.init(jax.random.key(0)))
        find = make_search(parts.search, parts.game, parts.evaluate, parts.selfplay.engine)
        return parts.targets.note(find(params, jax.random.key(0), init_batch(parts.game, 1)))

    # Without a note, no search is traced.
    notes = () if parts.targets.note is no_extra else jax.eval_shape(search)
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
        extra=jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype), notes),
    )
    one = jax.tree.map(lambda leaf: leaf[None, None], transition)
    return jax.tree.map(lambda leaf: leaf[0, 0], parts.targets.make(one))


def iteration(
    parts: Parts, state: TrainState, axis_name: str | None = None
) -> tuple[TrainState, Metrics]:
    """Runs one iteration: self-play, storing samples, learning.

    Under `jax.shard_map`, `state` is the part of one device, and `axis_name` is the mesh axis over
    which games and buffer are split and gradients are averaged.
    """
    check_parts(parts, 1 if axis_name is None else jax.lax.axis_size(axis_name))
    key = jax.random.fold_in(state.key, state.iteration)
    key_play, key_learn = jax.random.split(key)
    keys = local_keys(key_play, len(state.games.ply), axis_name)
    # The games' keys are numbered from 0.
    schedule = effort.draw_moves(parts.selfplay, jax.random.fold_in(key_play, parts.selfplay.games))
    average = state.learner.average
    games, transitions = self_play(parts, average, keys, state.games, state.archive, schedule)
    shards = jax.tree.leaves(state.replay)[0].shape[0]
    samples = jax.tree.map(  # By game: [T, B, ...] become [D, K, ...].
        lambda leaf: jnp.swapaxes(leaf, 0, 1).reshape(shards, -1, *leaf.shape[2:]),
        effort.keep_full(parts.selfplay, schedule, parts.targets.make(transitions)),
    )
    replay = parts.replay.add(state.replay, samples)
    learner, losses = _learn(parts, key_learn, state.learner, replay, axis_name)
    finished = jnp.sum(transitions.discount == 0, dtype=jnp.float32)
    metrics = Metrics(
        losses=jax.tree.map(jnp.mean, losses),
        games=finished if axis_name is None else jax.lax.psum(finished, axis_name),
    )
    archive = state.archive
    if archive is not None:  # Replicated: it gets the games [T, B, 2, ...] of all devices.
        met = transitions.new_starts
        if axis_name is not None:
            met = jax.lax.all_gather(met, axis_name, axis=1, tiled=True)
        met = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 3), met)
        archive = archives.add(archive, met.states, met)
    return TrainState(learner, replay, games, archive, state.key, state.iteration + 1), metrics


def local_keys(key: jax.Array, count: int, axis_name: str | None) -> jax.Array:
    """Returns keys for the games or shards of this device.

    The key of a game or shard does not depend on the number of devices.
    """
    first = 0 if axis_name is None else jax.lax.axis_index(axis_name) * count
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(first + jnp.arange(count))


def _learn(
    parts: Parts,
    key: jax.Array,
    learner: LearnerState,
    replay: Any,
    axis_name: str | None,
) -> tuple[LearnerState, Losses]:
    """Makes the optimizer steps of an iteration, with batches from the buffer."""
    shards, steps = jax.tree.leaves(replay)[0].shape[0], parts.learner.steps
    keys = local_keys(key, shards, axis_name)
    keys = jax.vmap(lambda key: jax.random.split(key, (steps, 2)))(keys)

    def step(learner, keys):
        samples = parts.replay.sample(replay, keys[:, 0])
        samples = jax.vmap(parts.targets.augment)(keys[:, 1], samples)
        batch = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), samples)
        return parts.learner.update(learner, batch, axis_name)

    return jax.lax.scan(step, learner, jnp.swapaxes(keys, 0, 1))


# On a mesh of devices: games and buffer are sharded, the rest is replicated.


def make_iteration(parts: Parts, mesh: Mesh) -> Callable[[TrainState], tuple]:
    """Compiles `TrainState -> (TrainState, Metrics)` for a mesh; the state is donated.

    Each device plays its own games; gradients, BatchNorm statistics and losses are averaged.
    """
    check_parts(parts, mesh.size)
    step = jax.shard_map(
        lambda state: iteration(parts, state, AXIS),
        mesh=mesh,
        in_specs=(state_specs(),),
        out_specs=(state_specs(), P()),
        check_vma=False,  # The loops of mctx 0.0.71 carry unvarying values that vary later.
    )
    shardings = _shardings(mesh)
    return jax.jit(
        step, donate_argnums=0, in_shardings=(shardings,), out_shardings=(shardings, None)
    )


def make_state(parts: Parts, key: jax.Array, mesh: Mesh) -> TrainState:
    """Computes `init` on a mesh."""
    check_parts(parts, mesh.size)
    data = np.asarray(jax.random.key_data(key))
    make = _initial(parts, str(jax.random.key_impl(key)))
    return compiled(jax.jit(make, out_shardings=_shardings(mesh)), data, often=False)(data)


def abstract_state(parts: Parts, mesh: Mesh) -> TrainState:
    """Returns shapes, types and shardings of the state, without computing it."""
    check_parts(parts, mesh.size)
    key = jax.random.key(0)
    shapes = _initial(parts, str(jax.random.key_impl(key))).eval_shape(jax.random.key_data(key))
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        shapes,
        jax.tree.broadcast(_shardings(mesh), shapes),
    )


@functools.lru_cache(maxsize=8)
def _initial(parts: Parts, key_impl: str) -> Any:
    """Returns the jitted `init`, as a function of key data; cached to trace it only once."""
    return jax.jit(lambda data: init(parts, jax.random.wrap_key_data(data, impl=key_impl)))


def state_specs() -> TrainState:
    """Returns the partition specs of a `TrainState`: games and buffer are sharded."""
    specs: Any = (P(), P(AXIS), P(AXIS), P(), P(), P())
    return TrainState(*specs)


def _shardings(mesh: Mesh) -> TrainState:
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), state_specs())


def make_mesh(devices=None) -> Mesh:
    """Returns a mesh with one axis over the given devices, by default over all."""
    devices = jax.devices() if devices is None else devices
    return Mesh(np.asarray(devices), (AXIS,))


def one_copy(replicated: Any) -> Any:
    """Returns the arrays of a replicated tree on one device of this process, without copying."""
    return jax.tree.map(lambda leaf: leaf.addressable_data(0), replicated)


def compiled(function: Any, *args: Any, often: bool = True) -> Any:
    """Compiles a jitted function for arguments or their shapes; see `compiler_options`."""
    return function.lower(*args).compile(compiler_options(often))


def compiler_options(often: bool = True) -> dict[str, Any]:
    """Returns options for `lower(...).compile(...)`.

    On CPUs, they shorten compilation. On GPUs, programs that run often become CUDA graphs, loops
    included, so that the host does not start every kernel.
    """
    platform = jax.default_backend()
    if platform == "gpu" and often:
        return {"xla_gpu_enable_command_buffer": _GRAPHS, "xla_gpu_graph_min_graph_size": 1}
    # On CPUs most time goes to matrix products in precompiled kernels, so optimizing the rest does
    # not speed up an iteration measurably. Level 0 compiles fastest, but may round one formula in
    # several ways: it is for programs that run once.
    return {"xla_backend_optimization_level": 1 if often else 0} if platform == "cpu" else {}
