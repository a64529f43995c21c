"""Training on a mesh of devices: games and buffer are sharded, the rest is replicated."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax._settings import resolve_platform
from azjax.training.parts import Parts, check_parts
from azjax.training.selfplay import Games, self_play
from azjax.training.step import TrainState, init, iteration, local_keys
from azjax.training.targets import Transition

AXIS = "data"  # The only axis of the mesh.


def make_iteration(parts: Parts, mesh: Mesh) -> Callable[[TrainState], tuple]:
    """Compiles `TrainState -> (TrainState, Metrics)` for a mesh; the state is donated.

    Each device plays its own games; gradients, BatchNorm statistics and losses are averaged.
    """
    check_parts(parts, mesh.size)
    specs = state_specs()
    step = _on_mesh(mesh, lambda state: iteration(parts, state, AXIS), (specs, P()))
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    return jax.jit(
        step, donate_argnums=0, in_shardings=(shardings,), out_shardings=(shardings, None)
    )


def make_play(parts: Parts, mesh: Mesh) -> Callable[[TrainState], tuple[Games, Transition]]:
    """Compiles the self-play of an iteration alone; transitions are `[T, B, ...]`."""
    check_parts(parts, mesh.size)

    def play(state):
        key = jax.random.fold_in(state.key, state.iteration)
        keys = local_keys(key, len(state.games.ply), AXIS)
        return self_play(parts, state.learner.average, keys, state.games, state.archive)

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
    """Computes `init` on a mesh, after calling `check` with the compiled program."""
    check_parts(parts, mesh.size)
    data = np.asarray(jax.random.key_data(key))
    make = _initial(parts, str(jax.random.key_impl(key)))
    placed = jax.jit(make, out_shardings=_shardings(mesh, make.eval_shape(data)))
    first = compiled(placed, data, often=False)
    if check is not None:
        check(first)
    return first(data)


def abstract_state(parts: Parts, mesh: Mesh) -> TrainState:
    """Returns shapes, types and shardings of the state, without computing it."""
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
    """Returns the jitted `init`, as a function of key data; cached to trace it only once."""
    return jax.jit(lambda data: init(parts, jax.random.wrap_key_data(data, impl=key_impl)))


def _shardings(mesh: Mesh, state: TrainState) -> TrainState:
    def place(spec, tree):
        return jax.tree.map(lambda _: NamedSharding(mesh, spec), tree)

    return jax.tree.map(place, state_specs(), state, is_leaf=lambda x: isinstance(x, P))


def state_specs() -> TrainState:
    """Returns the partition specs of a `TrainState`: games and buffer are sharded."""
    specs: Any = (P(), P(AXIS), P(AXIS), P(), P(), P())
    return TrainState(*specs)


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


def compiler_options(often: bool = True, platform: str | None = None) -> dict[str, Any]:
    """Returns options for `lower(...).compile(...)` that shorten compilation on CPUs."""
    # There most time goes to matrix products in precompiled kernels, so optimizing the rest does
    # not speed up an iteration measurably. Level 0 compiles fastest, but may round one formula in
    # several ways: it is for programs that run once.
    on_cpu = resolve_platform(platform) == "cpu"
    return {"xla_backend_optimization_level": 1 if often else 0} if on_cpu else {}
