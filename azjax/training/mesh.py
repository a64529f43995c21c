"""Training on a mesh of devices, and how its programs are compiled."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax.training.parts import Parts, check_parts
from azjax.training.step import TrainState, init, iteration

AXIS = "data"  # The only axis of the mesh.
# What XLA may put into CUDA graphs; by default, it leaves out loops and conditions.
_GRAPHS = "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,WHILE,CONDITIONAL,DYNAMIC_SLICE_FUSION"


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
        # The loops of a search start with constants, which are equal on all devices, and then carry
        # values that vary; `check_vma` accepts no such loop, of azjax or of mctx 0.0.71.
        check_vma=False,
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
