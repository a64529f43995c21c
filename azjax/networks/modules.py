"""Networks from Flax Linen modules."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import FlaxError

from azjax.games.base import Game, write_types
from azjax.networks.base import Network, check_heads, observed_planes, sizes


def from_module(game: Game, module: nn.Module, encoding: str = "relative") -> Network:
    """Makes a network from any Flax Linen module.

    Its `__call__(planes, train=False)` returns `(logits [B, A], value [B], ...)` for `planes
    [B, H, W, C]` in this encoding, with values in [-1, 1], and draws no random numbers. Statistics
    that it updates in training are averaged over the devices afterwards. To normalize by the
    batches of all devices, give the module a field `axis_name` and pass it to its `nn.BatchNorm`;
    in training it is set to the name of the mesh axis.
    """
    if not isinstance(module, nn.Module):
        kind = f"the class {module.__name__}" if isinstance(module, type) else type(module).__name__
        raise ValueError(
            f"the module is {kind}: pass an instance of a flax.linen.Module, or give a function "
            "that makes a module of flax.nnx to from_nnx"
        )
    network = wrap(game, module, encoding, module)
    check_outputs(game, network)

    def train(variables, planes, axis_name):
        outputs, updated = network.train(variables, planes, axis_name)
        return outputs, average_over_devices(updated, axis_name)

    return network._replace(train=train)


def average_over_devices(updated: Any, axis_name: str | None) -> Any:
    """Averages what a network updates in training over a mesh axis, except for integers."""

    def average(leaf):
        return jax.lax.pmean(leaf, axis_name) if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf

    return updated if axis_name is None else jax.tree.map(average, updated)


def wrap(game: Game, module: nn.Module, encoding: str, learned: nn.Module) -> Network:
    """Makes a network from a module, and the module that training applies, without checks."""
    one = observed_planes(game, encoding)
    has_axis = any(field.name == "axis_name" for field in dataclasses.fields(module))

    def init(key):
        return module.init(key, jnp.zeros((1, *one.shape), one.dtype))

    def train(variables, planes, axis_name) -> Any:
        on_mesh = learned.clone(axis_name=axis_name) if has_axis else learned
        others = [name for name in variables if name != "params"]
        return on_mesh.apply(variables, planes, train=True, mutable=others)

    infer: Any = module.apply
    return Network(encoding, init, train, infer, made_for=sizes(game, encoding))


def check_outputs(game: Game, network: Network) -> None:
    """Checks a module's outputs for a batch of 3, in evaluation and in training."""
    one = observed_planes(game, network.encoding)

    def compute(planes):
        variables = network.init(jax.random.key(0))
        trained, updated = network.train(variables, planes, None)
        others = {name: leaves for name, leaves in variables.items() if name != "params"}
        return (network.infer(network.fold(variables), planes), trained), (others, updated)

    planes = jax.ShapeDtypeStruct((3, *one.shape), one.dtype)
    try:
        returned, (before, after) = jax.eval_shape(compute, planes)
    except (FlaxError, TypeError, ValueError) as error:
        reason = str(error).split(" (http")[0].split("\n")[0]
        raise ValueError(
            f"the module cannot be applied to planes {write_types(planes)} of {game.name}, or "
            f"draws random numbers ({reason})"
        ) from error
    for heads in returned:
        check_heads(heads, 3, game, "the module")
    if write_types(before) != write_types(after):
        raise ValueError(
            f"training makes {write_types(after)} of the module's variables {write_types(before)}: "
            "create them in init, and keep their shapes and types"
        )
