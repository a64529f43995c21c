"""The inference form of the residual network.

BatchNorm is folded into the layers before it, and convolutions get the form that `convolution.py`
chooses for the board.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from azjax.games.base import Game
from azjax.networks import equivariant
from azjax.networks.base import Folded, Network, Plain, Variables, choose_dtype
from azjax.networks.convolution import Form, choose_form
from azjax.networks.modules import with_inference, wrap
from azjax.networks.resnet import EPSILON, ResNet, ResNetConfig, forward, trunk

_DENSE = ("policy", "value_hidden", "value")  # Layers of the heads that are never convolutions.


def fold(form: Form, board_shape: tuple[int, int], variables: Variables) -> Folded:
    """Arranges the kernels, and folds BatchNorm into the layers before it."""
    params, statistics = variables["params"], variables.get("batch_stats", {})

    def fold_layer(name):
        norm = f"{name}_norm"
        weights: dict[str, Any] = {**params[name], **params.get(norm, {})}
        if norm in statistics:
            scale = weights.pop("scale") * jax.lax.rsqrt(statistics[norm]["var"] + EPSILON)
            weights["bias"] -= statistics[norm]["mean"] * scale
            outputs_last = tuple(range(weights["kernel"].ndim - 1))
            weights["kernel"] = weights["kernel"] * jnp.expand_dims(scale, outputs_last)
        if name not in _DENSE:
            weights["kernel"] = form.arrange(weights["kernel"], board_shape)
        return weights

    return {name: fold_layer(name) for name in params if not name.endswith("_norm")}


def _unfold(form: Form, board_shape: tuple[int, int], folded: Folded) -> dict[str, Any]:
    """Returns the layers with their original kernels."""
    return {
        name: layer
        if name in _DENSE
        else layer | {"kernel": form.restore(layer["kernel"], board_shape)}
        for name, layer in folded.items()
    }


def infer(
    form: Form, blocks: int, has_norm: bool, folded: Folded, planes: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Computes the network from folded parameters."""

    def layer(name, x):
        weights = folded[name]
        return form.add(form.apply(x, weights["kernel"]), weights["bias"])

    def dense(name, x):
        return x @ folded[name]["kernel"] + folded[name]["bias"][None]

    planes = planes.astype(folded["stem"]["bias"].dtype)
    return forward(form, blocks, has_norm, planes, layer, dense)


def make(config: ResNetConfig, game: Game, platform: str) -> Network:
    """Builds the residual network for a game.

    Raises:
      ValueError: if a width is not a multiple of the number of symmetries.
    """
    convolves, has_norm = config.layers == "conv", config.norm == "layer"
    plain = functools.partial(Plain, "resnet", config.blocks, has_norm)
    if config.symmetric and game.num_symmetries > 1:
        names = ("stem", *(f"block{i}_{part}" for i in range(config.blocks) for part in "ab"))
        return equivariant.make(
            config,
            game,
            platform,
            plain,
            widths={"network.width": config.width},
            layers=tuple((name, config.width) for name in names),
            trunk=functools.partial(trunk, config.blocks, has_norm),
            zeros=tuple(name for name in names if name.endswith("_b")),
        )
    evaluated = choose_dtype(config.evaluation_dtype, platform, convolves)
    learned = choose_dtype(config.learning_dtype, platform, convolves)

    def form_for(dtype):
        if convolves:
            return choose_form(game.board_shape, dtype, platform)
        return Form(jnp.matmul, convolves=False)

    form = form_for(evaluated)
    module = ResNet(
        config.width,
        config.blocks,
        config.head_hidden,
        game.num_actions,
        config.norm,
        form_for(jnp.float32),
    )
    trained = module.clone(dtype=learned, form=form_for(learned))
    return with_inference(
        wrap(game, module, config.encoding, trained),
        arrange=functools.partial(fold, form, game.board_shape),
        infer=functools.partial(infer, form, config.blocks, has_norm),
        dtype=evaluated,
        plain=lambda folded: plain(_unfold(form, game.board_shape, folded)),
    )
