"""Networks from their settings: the modules, their inference form and their plain weights."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax._settings import resolve_platform
from azjax.games.base import Game
from azjax.networks import symmetric
from azjax.networks.base import Folded, Network, Plain, Variables, choose_dtype
from azjax.networks.config import MLPConfig, ResNetConfig
from azjax.networks.convolution import WinogradResNet, add_taps, is_faster
from azjax.networks.modules import wrap
from azjax.networks.resnet import EPSILON, MLP, ResNet


def make_network(
    config: ResNetConfig | MLPConfig, game: Game, platform: str | None = None
) -> Network:
    """Builds a residual network or an MLP for a game.

    The platform (`cpu`, `gpu`, `cuda`, `rocm` or `tpu`; by default, that of the default backend)
    determines arithmetic types and the form of convolutions.
    """
    platform = resolve_platform(platform)
    convolves = isinstance(config, ResNetConfig) and config.layers == "conv"
    dtype = choose_dtype(config.evaluation_dtype, platform, convolves)
    learning_dtype = choose_dtype(config.learning_dtype, platform, convolves)
    is_symmetric = config.symmetric and game.num_symmetries > 1
    group = _shared_group(config, game) if is_symmetric else None

    def has_taps(dtype: Any) -> bool:
        return convolves and is_faster(game.board_shape, dtype, platform)

    def module(dtype: Any, is_folded: bool = False) -> nn.Module:
        fields: Any = {"config": config, "num_actions": game.num_actions, "dtype": dtype}
        if group is not None:
            kinds: Any = symmetric.EquivariantMLP, symmetric.EquivariantResNet
            fields |= {"group": group, "is_folded": is_folded}
        else:
            kinds = MLP, WinogradResNet if has_taps(dtype) else ResNet
            if is_folded and isinstance(config, ResNetConfig) and config.norm == "batch":
                fields["config"] = dataclasses.replace(config, norm="none")
        return kinds[isinstance(config, ResNetConfig)](**fields)

    @jax.jit
    def fold(variables: Variables) -> Folded:
        if group is not None:
            folded = symmetric.fold(group, variables)
        else:
            layers = fold_batch_norm(variables)
            folded = {"params": add_taps(layers, game.board_shape) if has_taps(dtype) else layers}
        return jax.tree.map(lambda leaf: leaf.astype(dtype), folded)

    def plain(folded: Folded) -> Plain:
        dense = folded if group is None else symmetric.as_dense(group, folded)
        layers = {
            name: {part: weights[part] for part in ("kernel", "bias")}
            for name, weights in dense["params"].items()
        }
        if isinstance(config, MLPConfig):
            return Plain("mlp", len(config.hidden), False, layers)
        return Plain("resnet", config.blocks, config.norm == "layer", layers)

    network = wrap(game, module(jnp.float32), config.encoding, module(learning_dtype))
    infer: Any = module(dtype, is_folded=True).apply
    return network._replace(fold=fold, infer=infer, plain=plain, symmetric=is_symmetric)


def _shared_group(config: ResNetConfig | MLPConfig, game: Game) -> symmetric.Group:
    hidden = config.hidden if isinstance(config, MLPConfig) else (config.width,)
    widths = {*hidden, config.head_hidden}
    if any(width % game.num_symmetries for width in widths):
        raise ValueError(
            f"layers are divided among the {game.num_symmetries} symmetries of {game.name}: make "
            f"the widths of the network, now {sorted(widths)}, multiples of {game.num_symmetries}, "
            "or network.symmetric False"
        )
    return symmetric.make_group(game)


def fold_batch_norm(variables: Variables) -> dict[str, Any]:
    """Folds each BatchNorm, `LAYER_norm`, into the layer before it, as if there were no norm."""
    layers, statistics = dict(variables["params"]), variables.get("batch_stats", {})
    for norm, values in statistics.items():
        name, learned = norm.removesuffix("_norm"), layers.pop(norm)
        scale = learned["scale"] * jax.lax.rsqrt(values["var"] + EPSILON)
        kernel, bias = layers[name]["kernel"], learned["bias"] - values["mean"] * scale
        layers[name] = {"kernel": kernel * jnp.broadcast_to(scale, kernel.shape), "bias": bias}
    return layers
