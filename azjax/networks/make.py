"""Networks from their settings: the modules, their inference form and their plain weights."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax._settings import resolve_platform
from azjax.games.base import Game
from azjax.networks import symmetric
from azjax.networks.base import Folded, Network, Plain, Variables, choose_dtype
from azjax.networks.config import MLPConfig, ResNetConfig
from azjax.networks.convolution import add_taps, is_faster
from azjax.networks.mlp import MLP
from azjax.networks.modules import casting, wrap
from azjax.networks.resnet import EPSILON, ResNet


class Form(NamedTuple):
    """How a kind of network computes."""

    module: Callable[[Any], nn.Module]  # `dtype -> module`, in training.
    folded: nn.Module  # Computes with the result of `fold`.
    fold: Callable[[Variables], Folded]
    as_dense: Callable[[Folded], Folded] = lambda folded: folded  # Returns plain layers.


def make_network(
    config: ResNetConfig | MLPConfig, game: Game, platform: str | None = None
) -> Network:
    """Builds a residual network or an MLP for a game.

    Args:
      config: its settings.
      game: gives the planes' shape, the number of actions and the symmetries.
      platform: `cpu`, `gpu`, `cuda`, `rocm` or `tpu`; determines arithmetic types and the form of
        convolutions. None means the platform of the default backend.

    Raises:
      ValueError: if the game does not have the encoding, or a width of a symmetric network is not
        a multiple of the number of symmetries.
    """
    platform = resolve_platform(platform)
    convolves = isinstance(config, ResNetConfig) and config.layers == "conv"
    dtype = choose_dtype(config.evaluation_dtype, platform, convolves)
    learning_dtype = choose_dtype(config.learning_dtype, platform, convolves)
    is_symmetric = config.symmetric and game.num_symmetries > 1
    if is_symmetric:
        form = symmetric_form(config, game, dtype)
    elif isinstance(config, MLPConfig):
        module = functools.partial(MLP, game.num_actions, config=config)
        form = Form(module, module(dtype), lambda variables: variables)
    else:
        form = resnet_form(config, game, dtype, platform)
    learned = form.module(learning_dtype)
    return wrap(game, form.module(jnp.float32), config.encoding, learned)._replace(
        fold=casting(form.fold, dtype),
        infer=form.folded.apply,
        plain=lambda folded: plain(config, form.as_dense(folded)),
        symmetric=is_symmetric,
    )


def symmetric_form(config: ResNetConfig | MLPConfig, game: Game, dtype: Any) -> Form:
    """Returns the form of a network with weights shared among the game's symmetries."""
    is_mlp = isinstance(config, MLPConfig)
    kind = symmetric.EquivariantMLP if is_mlp else symmetric.EquivariantResNet
    widths = {*(config.hidden if is_mlp else (config.width,)), config.head_hidden}
    if any(width % game.num_symmetries for width in widths):
        raise ValueError(
            f"layers are divided among the {game.num_symmetries} symmetries of {game.name}: make "
            f"the widths of the network, now {sorted(widths)}, multiples of {game.num_symmetries}"
        )
    group = symmetric.symmetry_group(game)
    module = functools.partial(kind, game.num_actions, config=config, group=group)
    fold = functools.partial(symmetric.fold, group)
    as_dense = functools.partial(symmetric.as_dense, group)
    return Form(module, module(dtype, is_folded=True), fold, as_dense)


def resnet_form(config: ResNetConfig, game: Game, dtype: Any, platform: str) -> Form:
    """Returns the form of a residual network; for inference, it has no BatchNorm."""

    def module(dtype: Any, config: ResNetConfig = config) -> ResNet:
        is_winograd = config.layers == "conv" and is_faster(game.board_shape, dtype, platform)
        return ResNet(game.num_actions, dtype, config=config, is_winograd=is_winograd)

    has_norm = config.norm == "batch"
    folded = module(dtype, dataclasses.replace(config, norm="none") if has_norm else config)

    def fold(variables: Variables) -> Folded:
        layers = fold_batch_norm(variables)
        return {"params": add_taps(layers, game.board_shape) if folded.is_winograd else layers}

    return Form(module, folded, fold)


def plain(config: ResNetConfig | MLPConfig, folded: Folded) -> Plain:
    """Returns folded weights in the form of `Plain`."""
    layers = {
        name: {part: weights[part] for part in ("kernel", "bias")}
        for name, weights in folded["params"].items()
    }
    if isinstance(config, MLPConfig):
        return Plain("mlp", len(config.hidden), False, layers)
    return Plain("resnet", config.blocks, config.norm == "layer", layers)


def fold_batch_norm(variables: Variables) -> dict[str, Any]:
    """Folds each BatchNorm, `LAYER_norm`, into the layer before it, as if there were no norm."""
    layers, statistics = dict(variables["params"]), variables.get("batch_stats", {})
    for norm, values in statistics.items():
        name, learned = norm.removesuffix("_norm"), layers.pop(norm)
        scale = learned["scale"] * jax.lax.rsqrt(values["var"] + EPSILON)
        kernel, bias = layers[name]["kernel"], learned["bias"] - values["mean"] * scale
        layers[name] = {"kernel": kernel * jnp.broadcast_to(scale, kernel.shape), "bias": bias}
    return layers
