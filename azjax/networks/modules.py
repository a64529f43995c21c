"""Networks from Flax Linen modules."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import FlaxError

from azjax.games.base import Game, describe
from azjax.networks.base import (
    Folded,
    Network,
    Outputs,
    Plain,
    Variables,
    check_heads,
    observed_planes,
    unfolded,
)


def from_module(game: Game, module: nn.Module, encoding: str = "relative") -> Network:
    """Makes a network from any Flax Linen module.

    Statistics that the module updates in training are averaged over the devices afterwards. To
    normalize by the batches of all devices, give the module a field `axis_name` and pass it to its
    `nn.BatchNorm`; in training it is set to the name of the mesh axis.

    Args:
      game: gives the planes' shape and the number of actions.
      module: its `__call__(planes, train=False)` returns `(logits [B, A], value [B], ...)` for
        `planes [B, H, W, C]`, with values in [-1, 1], and draws no random numbers.
      encoding: the encoding of the module's input, one of `game.encodings`.

    Raises:
      ValueError: if the game does not have the encoding, the module does not have this signature,
        or the outputs have the wrong shapes.
    """
    _check_module(module)
    network = wrap(game, module, encoding)
    check_outputs(game, network)

    def train(variables, planes, axis_name):
        outputs, updated = network.train(variables, planes, axis_name)
        return outputs, updated if axis_name is None else jax.lax.pmean(updated, axis_name)

    return network._replace(train=train)


def wrap(game: Game, module: nn.Module, encoding: str, learned: nn.Module | None = None) -> Network:
    """Makes a network from a module without checks and without averaging over devices.

    Training applies `learned`, by default the module itself.
    """
    learned = module if learned is None else learned
    one = observed_planes(game, encoding)
    has_axis = any(field.name == "axis_name" for field in dataclasses.fields(module))

    def init(key):
        return module.init(key, jnp.zeros((1, *one.shape), one.dtype))

    def apply(variables, planes) -> Any:
        return module.apply(variables, planes)

    def train(variables, planes, axis_name) -> Any:
        on_mesh = learned.clone(axis_name=axis_name) if has_axis else learned
        others = [name for name in variables if name != "params"]
        return on_mesh.apply(variables, planes, train=True, mutable=others)

    return unfolded(game, encoding, init, apply, train)


def with_inference(
    network: Network,
    arrange: Callable[[Variables], Folded],
    infer: Callable[[Folded, jax.Array], Outputs],
    dtype: Any,
    plain: Callable[[Folded], Plain],
    symmetric: bool = False,
) -> Network:
    """Adds an inference form to a network.

    Args:
      network: a network from `wrap`.
      arrange: `variables -> folded`, in float32.
      infer: see `Network`.
      dtype: the type of the inference form.
      plain: see `Network`.
      symmetric: see `Network`.
    """

    @jax.jit
    def fold(variables):
        return jax.tree.map(lambda weights: weights.astype(dtype), arrange(variables))

    return network._replace(fold=fold, infer=infer, plain=plain, symmetric=symmetric)


def _check_module(module: Any) -> None:
    """Raises ValueError unless `module` is a Linen module that can be called with `train`."""
    kind = module if isinstance(module, type) else type(module)
    if any(base.__module__.startswith("flax.nnx.") for base in kind.__mro__):
        name = kind.__name__
        raise ValueError(
            f"{name} is a module of flax.nnx: use "
            f"from_nnx(game, lambda rngs: {name}(..., rngs=rngs))"
        )
    if not isinstance(module, nn.Module):
        what = "the class" if kind is module else "of type"
        raise ValueError(
            f"the module is {what} {kind.__name__}, not a Flax module: pass an instance of a "
            "flax.linen.Module"
        )
    name, parameters = type(module).__name__, inspect.signature(type(module).__call__).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if "train" not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
        listed = ", ".join(parameters)
        raise ValueError(
            f"{name}.__call__({listed}) does not take train: write __call__(self, planes, "
            "train=False), where train may be ignored"
        )


def check_outputs(
    game: Game, network: Network, errors: tuple[type[Exception], ...] = (FlaxError,)
) -> None:
    """Checks a module's outputs for a batch of 3, in evaluation and in training.

    The `errors` are exceptions that are raised if the module cannot be applied to the planes.
    """
    one = observed_planes(game, network.encoding)

    def compute(planes):
        variables = network.init(jax.random.key(0))
        trained, updated = network.train(variables, planes, None)
        others = {name: leaves for name, leaves in variables.items() if name != "params"}
        return (network.apply(variables, planes), trained), (others, updated)

    planes = jax.ShapeDtypeStruct((3, *one.shape), one.dtype)
    try:
        returned, (before, after) = jax.eval_shape(compute, planes)
    except errors as error:
        reason = str(error).split(" (http")[0].split("\n")[0]
        raise ValueError(
            f"the module cannot be applied to planes {describe(planes)} of {game.name}, or draws "
            f"random numbers ({reason})"
        ) from error
    for heads in returned:
        check_heads(heads, 3, game, "the module")
    if changed := _describe_leaves(before) ^ _describe_leaves(after):
        raise ValueError(
            f"training adds or changes {min(changed)[0]}, a variable of the module: create it in "
            "init, and keep its shape and type"
        )


def _describe_leaves(tree: Any) -> set[tuple[str, str]]:
    """Returns the names and shapes of a tree's arrays."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {
        (jax.tree_util.keystr(path, simple=True, separator="."), describe(x)) for path, x in leaves
    }
