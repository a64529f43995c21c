"""Networks from Flax NNX modules."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
from flax import nnx

from azjax.games.base import Game
from azjax.networks.base import Network, sizes
from azjax.networks.modules import average_over_devices, check_outputs


def from_nnx(
    game: Game, make: Callable[[nnx.Rngs], nnx.Module], encoding: str = "relative"
) -> Network:
    """Makes a network from any Flax NNX module.

    Each call of `make(rngs)`, such as `lambda rngs: Model(9, rngs=rngs)`, makes a new module, whose
    `__call__(planes)` returns `(logits [B, A], value [B], ...)` for `planes [B, H, W, C]` in this
    encoding, with values in [-1, 1], and draws no random numbers. The mode is set by
    `module.train()` and `module.eval()`. The variables are `{"params": ..., "state": ...}`, the
    module's `nnx.Param` and all others, which training averages over devices. `nnx.BatchNorm`
    normalizes by the batches of all devices.
    """
    if isinstance(make, nnx.Module | nn.Module) or not callable(make):
        raise ValueError(
            f"make is of type {type(make).__name__}: give a function of rngs that makes a new "
            "module in each call, such as lambda rngs: Model(9, rngs=rngs); for a module of "
            "flax.linen, use from_module"
        )
    shapes = nnx.eval_shape(lambda: make(nnx.Rngs(0)))
    graph, random, _ = nnx.split(shapes, nnx.RngState, ...)
    if jax.tree.leaves(random):
        raise ValueError(
            f"{type(shapes).__name__} keeps a random state, but networks draw no random numbers: "
            "remove nnx.Dropout and similar layers, and do not store rngs"
        )

    def init(key):
        return _variables(make(nnx.Rngs(key)))

    def infer(variables, planes) -> Any:
        module = nnx.merge(graph, variables["params"], variables["state"])
        module.eval()
        return module(planes)

    def train(variables, planes, axis_name) -> Any:
        module = nnx.merge(graph, variables["params"], variables["state"])
        module.train()
        module.set_attributes(nnx.BatchNorm, axis_name=axis_name, raise_if_not_found=False)
        outputs, state = module(planes), _variables(module)["state"]
        return outputs, average_over_devices({"state": state}, axis_name)

    network = Network(encoding, init, train, infer, made_for=sizes(game, encoding))
    check_outputs(game, network)
    return network


def _variables(module: nnx.Module) -> dict[str, Any]:
    """Returns the arrays of a module as dictionaries, without its static structure."""
    _, params, state = nnx.split(module, nnx.Param, ...)
    return {"params": nnx.to_pure_dict(params), "state": nnx.to_pure_dict(state)}
