"""Networks made of Flax NNX modules."""

import inspect
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx
from flax.errors import FlaxError
from jax.core import Tracer

from azjax.games.base import Game
from azjax.networks.base import Network, observed_planes, unfolded
from azjax.networks.modules import check_outputs


def from_nnx(
    game: Game, make: Callable[[nnx.Rngs], nnx.Module], encoding: str = "relative"
) -> Network:
    """Makes a network of any Flax NNX module. Its variables are their own inference form.

    The variables are `{"params": ..., "state": ...}`, dictionaries of arrays: the module's
    `nnx.Param`, and everything else, such as the statistics of `nnx.BatchNorm`. These are
    averaged over the devices in training, where `nnx.BatchNorm` normalizes by the batches of all
    devices. `module.train()` and `module.eval()` choose the mode.

    Args:
      game: gives the planes' shape and the number of actions.
      make: `rngs -> module`, such as `lambda rngs: Model(9, rngs=rngs)`. Each call makes a new
        module, whose `__call__(planes)` returns `(logits [B, A], value [B], ...)` for
        `planes [B, H, W, C]`, with values in [-1, 1], and draws nothing at random.
      encoding: which of the game's encodings the module reads.

    Raises:
      ValueError: if the game has no such encoding, `make` is not such a function, the module
        cannot be called so or keeps a random state, or the outputs have other shapes.
    """
    _check_make(make)
    observed_planes(game, encoding)  # Refuses an encoding before anything is made.
    graph, *_ = nnx.split(nnx.eval_shape(lambda: _check_module(make(nnx.Rngs(0)))))

    def init(key):
        return _variables(make(nnx.Rngs(key)))

    def apply(variables, planes) -> Any:
        module = nnx.merge(graph, variables["params"], variables["state"])
        module.eval()
        return module(planes)

    def train(variables, planes, axis_name) -> Any:
        module = nnx.merge(graph, variables["params"], variables["state"])
        module.train()
        module.set_attributes(nnx.BatchNorm, axis_name=axis_name, raise_if_not_found=False)
        outputs, state = module(planes), _variables(module)["state"]
        if axis_name is not None:
            state = jax.tree.map(lambda leaf: _average(leaf, axis_name), state)
        return outputs, {"state": state}

    network = unfolded(game, encoding, init, apply, train)
    check_outputs(game, network, (FlaxError, TypeError, ValueError))
    return network


def _variables(module: nnx.Module) -> dict[str, Any]:
    """Returns the arrays of a module as dictionaries, apart from its static structure."""
    _, params, state = nnx.split(module, nnx.Param, ...)
    return {"params": nnx.to_pure_dict(params), "state": nnx.to_pure_dict(state)}


def _average(leaf: jax.Array, axis_name: str) -> jax.Array:
    """Averages statistics over the devices; whole numbers are the same on all of them."""
    is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
    return jax.lax.pmean(leaf, axis_name) if is_float else leaf


def _check_make(make: Any) -> None:
    """Refuses what is not a function of `rngs`."""
    kind = make if isinstance(make, type) else type(make)
    name = kind.__name__
    if issubclass(kind, nn.Module):
        raise ValueError(f"{name} is a module of flax.linen: use from_module(game, module)")
    if isinstance(make, nnx.Module):
        raise ValueError(
            f"make is a module, {name}, whose weights are drawn already: give a function that "
            f"makes a new one for each seed, such as lambda rngs: {name}(..., rngs=rngs)"
        )
    advice = "give a function of rngs alone, such as lambda rngs: Model(9, rngs=rngs)"
    if not callable(make):
        raise ValueError(f"make is of type {name}: {advice}")
    try:
        inspect.signature(make).bind(None)
    except TypeError as error:
        raise ValueError(f"make cannot be called with rngs ({error}): {advice}") from error


def _check_module(module: Any) -> nnx.Module:
    """Refuses, while tracing, what `make` may not return."""
    name = type(module).__name__
    if isinstance(module, nn.Module):
        raise ValueError(
            f"make returns {name}, a module of flax.linen: use from_module(game, module)"
        )
    if not isinstance(module, nnx.Module):
        raise ValueError(f"make returns {name}: return a module of flax.nnx")
    if not callable(module):
        raise ValueError(f"{name} cannot be called: give it a method __call__(self, planes)")
    _, params, random, _ = nnx.split(module, nnx.Param, nnx.RngState, ...)
    if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(params)):
        raise ValueError(
            f"make returns a module, {name}, without parameters or whose weights are drawn "
            "already: make a new one in each call"
        )
    for path, part in nnx.iter_modules(module):
        for attribute, value in vars(part).items():
            if isinstance(value, Tracer):  # It would be a part of the static structure.
                place = ".".join(map(str, (*path, attribute)))
                raise ValueError(
                    f"{name} keeps an array, {place}, that is not a variable: make it an "
                    "nnx.Param, an nnx.Variable or an array of NumPy"
                )
    if kept := [".".join(map(str, path)) for path, _ in nnx.to_flat_state(random)]:
        raise ValueError(
            f"{name} keeps a random state, {kept[0]}, and networks draw nothing at random: leave "
            "out nnx.Dropout and the like, and do not keep rngs"
        )
    return module
