"""The residual network in the form that searches evaluate, and all its forms together.

BatchNorm disappears into the layers before it, and convolutions become the products that are
fastest for the board (see `convolution.py`).
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from azjax.games.base import Game
from azjax.networks import equivariant
from azjax.networks.base import Folded, Plain, Variables, choose_dtype
from azjax.networks.convolution import Form, choose_form
from azjax.networks.group import group_for
from azjax.networks.modules import Forms
from azjax.networks.products import Product, product_for
from azjax.networks.resnet import EPSILON, ResNet, ResNetConfig, forward, trunk

_DENSE = ("policy", "value_hidden", "value")  # Layers of the heads that never convolve.


def fold(form: Form, board_shape: tuple[int, int], variables: Variables) -> Folded:
    """Arranges the kernels, and folds BatchNorm into the layers before it, once per search."""
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
    """The layers with their kernels as they were before they were arranged."""
    restore: Any = form.restore
    return {
        name: layer if name in _DENSE else layer | {"kernel": restore(layer["kernel"], board_shape)}
        for name, layer in folded.items()
    }


def infer(
    form: Form, blocks: int, has_norm: bool, folded: Folded, planes: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The forward pass on folded parameters, with the same results."""

    def layer(name, x):
        weights = folded[name]
        return form.apply(x, weights["kernel"]) + form.per_channel(weights["bias"])

    def dense(name, x):
        return x @ folded[name]["kernel"] + folded[name]["bias"][None]

    planes = planes.astype(folded["stem"]["bias"].dtype)
    return forward(form, blocks, has_norm, planes, layer, dense)


def units(product: Product) -> Form:
    """Dense layers as a form: the layout is `[B, C]`, a board in one row, and kernels `[I, O]`."""
    return Form(
        arrange=lambda kernel, _: kernel,
        apply=product,
        to_layout=lambda x: x.reshape(len(x), -1),
        position_axes=(-1,),
        per_channel=lambda x: x[None],
        restore=lambda kernel, _: kernel,
    )


def make_forms(config: ResNetConfig, game: Game, platform: str) -> Forms:
    """Builds the residual network for a game, in all its forms.

    Raises:
      ValueError: if the game's symmetries do not divide the widths.
    """
    convolves, has_norm = config.layers == "conv", config.norm == "layer"
    plain = functools.partial(Plain, "resnet", config.blocks, has_norm)
    evaluated = choose_dtype(config.evaluation_dtype, platform, convolves)
    learned = choose_dtype(config.learning_dtype, platform, convolves)
    if config.symmetric and game.num_symmetries > 1:
        return equivariant.make_forms(_shared(config, game), evaluated, learned, platform, plain)

    def form_for(dtype):
        if convolves:
            return choose_form(game.board_shape, dtype, platform)
        return units(product_for(dtype, platform))

    form = form_for(evaluated)
    module = ResNet(
        config.width,
        config.blocks,
        config.head_hidden,
        game.num_actions,
        config.norm,
        form_for(jnp.float32),
    )
    return Forms(
        module=module,
        learned=module.clone(dtype=learned, form=form_for(learned)),
        arrange=functools.partial(fold, form, game.board_shape),
        infer=functools.partial(infer, form, config.blocks, has_norm),
        dtype=evaluated,
        plain=(lambda folded: plain(_unfold(form, game.board_shape, folded)))
        if form.restore
        else None,
    )


def _shared(config: ResNetConfig, game: Game) -> equivariant.Equivariant:
    """The network of dense layers whose weights the game's symmetries share."""
    widths = {"network.width": config.width, "network.head_hidden": config.head_hidden}
    names = ("stem", *(f"block{i}_{part}" for i in range(config.blocks) for part in "ab"))
    return equivariant.Equivariant(
        layers=tuple((name, config.width) for name in names),
        trunk=functools.partial(trunk, config.blocks, config.norm == "layer"),
        head_hidden=config.head_hidden,
        num_actions=game.num_actions,
        group=group_for(game, widths),
        zeros=tuple(name for name in names if name.endswith("_b")),
    )
