"""Speed of matrix products, as a reference for the machine."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from azjax import training
from experiments.benchmark.measuring import median_seconds, show
from experiments.benchmark.options import Options

_ROWS, _WIDTH, _LAYERS = 512, 512, 40  # Rows of each device.


def time_products(options: Options) -> list[dict]:
    """Times the products of dense layers on all devices together, in float32 and bfloat16."""
    mesh = training.make_mesh()
    spread = NamedSharding(mesh, PartitionSpec(training.AXIS))
    runs = {
        dtype: functools.partial(_multiply, *_operands(dtype, mesh.size, spread))
        for dtype in ("float32", "bfloat16")
    }
    seconds = median_seconds(options.repeats, **runs)
    operations = 2 * _LAYERS * mesh.size * _ROWS * _WIDTH**2
    row = {f"{name}, GFLOP/s": operations / each / 1e9 for name, each in seconds.items()}
    return show(f"products of {_WIDTH} x {_WIDTH}; medians of {options.repeats}", [row])


def _operands(dtype, devices: int, spread: NamedSharding) -> tuple[jax.Array, jax.Array]:
    x = jnp.ones((devices * _ROWS, _WIDTH), dtype)
    return jax.device_put(x, spread), jnp.full((_WIDTH, _WIDTH), 1 / _WIDTH, dtype)


@jax.jit
def _multiply(x: jax.Array, weights: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, _LAYERS, lambda _, x: jax.nn.relu(x @ weights), x)
