"""A residual network in Flax, with dense layers or convolutions.

It consists of a stem, blocks of two layers with a shortcut, a policy head and a value head (Silver
et al. 2017, Methods, "Neural network architecture"). For inference, BatchNorm is folded into the
layers.
"""

import dataclasses
import functools
from typing import Annotated, Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax._settings import Range, check
from azjax.games.base import Game
from azjax.networks import equivariant
from azjax.networks.base import DEEPEST, WIDEST, DType, Network, Plain, Variables
from azjax.networks.convolution import WinogradConv, is_faster
from azjax.networks.modules import from_settings

Norm = Literal["none", "layer", "batch"]
EPSILON = 1e-5  # Added to variances.


@dataclasses.dataclass(frozen=True)
class ResNetConfig:
    """A residual network."""

    kind: Literal["resnet"] = "resnet"
    """Network. `resnet`: residual blocks (AlphaZero); `mlp`: fully connected layers. For the
    settings of the other kind: --network.kind mlp --help."""
    encoding: str = "relative"
    """Input planes. `absolute`: X, O and side to move; `relative`: the mover's stones and
    the opponent's. AlphaZero: relative, with history."""
    layers: Literal["dense", "conv"] = "dense"
    """Layers of the blocks. `dense`: faster on small boards; `conv`: 3x3 convolutions
    (AlphaZero)."""
    width: Annotated[int, Range(1, WIDEST)] = 256
    """Units of a dense layer, or channels of a convolution. AlphaZero: 256 channels."""
    blocks: Annotated[int, Range(0, DEEPEST)] = 1
    """Residual blocks, of two layers each. AlphaZero: 19."""
    norm: Norm = "layer"
    """Normalization. `layer`: LayerNorm before blocks and heads; `batch`: BatchNorm after every
    layer (AlphaZero). Without BatchNorm, the last layer of each block starts at zero."""
    head_hidden: Annotated[int, Range(1, WIDEST)] = 64
    """Width of the hidden layer in each head; with convolutions, only in the value head.
    AlphaZero: 256."""
    evaluation_dtype: DType = "float32"
    """Arithmetic of evaluations in the search. `bfloat16`: less exact, faster on hardware that
    supports it; `auto`: bfloat16 on such hardware."""
    learning_dtype: DType = "float32"
    """Arithmetic of the layers in training; parameters and losses are float32."""
    symmetric: bool = False
    """Share the weights of dense layers among the game's symmetries: symmetric copies of a position
    get symmetric outputs. Needs 1/2 to 1/4 of the multiplications."""

    def __post_init__(self):
        check("network", self)
        if self.symmetric and (self.layers == "conv" or self.norm == "batch"):
            raise ValueError(
                "network.symmetric needs dense layers without BatchNorm, but network.layers is "
                f"{self.layers!r} and network.norm is {self.norm!r}: use 'dense', with 'layer' or "
                "'none'"
            )


class ResNet(nn.Module):
    """Stem, residual blocks and two heads.

    Attributes:
      config: its settings.
      num_actions: `A`.
      dtype: the type of the arithmetic.
      batch_last: whether the batch is the last axis between the layers, as `WinogradConv` wants.
      axis_name: mesh axis over which BatchNorm reduces in training.
    """

    config: ResNetConfig
    num_actions: int
    dtype: Any = jnp.float32
    batch_last: bool = False
    axis_name: str | None = None

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        config, hidden = self.config, self.config.head_hidden
        convolves, has_batch_norm = config.layers == "conv", config.norm == "batch"
        conv = WinogradConv if self.batch_last else _Conv
        axis = -2 if self.batch_last else -1  # Of the channels.

        def layer(name, x, features=config.width, size=3):
            options = {"use_bias": not has_batch_norm, "dtype": self.dtype, "name": name}
            if name.endswith("_b") and not has_batch_norm:
                options["kernel_init"] = nn.initializers.zeros
            elif convolves:
                options["kernel_init"] = nn.initializers.he_normal()
            if convolves:
                x = conv(features, (size, size), **options)(x)
            else:
                x = nn.Dense(features, **options)(x)
            if not has_batch_norm:
                return x
            return nn.BatchNorm(
                not train,
                axis,
                momentum=0.9,
                epsilon=EPSILON,
                dtype=self.dtype,
                axis_name=self.axis_name if train else None,
                name=f"{name}_norm",
            )(x)

        def dense(name, x, features):
            return nn.Dense(features, dtype=self.dtype, name=name)(x)

        def flatten(x):
            x = jnp.moveaxis(x, -1, 0) if self.batch_last else x
            return x.reshape(x.shape[0], -1)

        planes = planes.astype(self.dtype)
        x = planes if convolves else planes.reshape(planes.shape[0], -1)
        x = trunk(config, layer, jnp.moveaxis(x, 0, -1) if self.batch_last else x, axis)
        if convolves:
            policy = flatten(nn.relu(layer("policy_conv", x, 2, size=1)))
            value = flatten(nn.relu(layer("value_conv", x, 1, size=1)))
            value = nn.relu(dense("value_hidden", value, hidden))
        else:
            policy = nn.relu(layer("policy_hidden", x, hidden))
            value = nn.relu(layer("value_hidden", x, hidden))
        logits = dense("policy", policy, self.num_actions).astype(jnp.float32)
        value = dense("value", value, 1)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)


def _convolve(x: jax.Array, kernel: jax.Array, *args: Any, **kwargs: Any) -> jax.Array:
    """XLA's convolution; for 1x1, a matrix product, which is faster."""
    if kernel.shape[0] == 1:
        return x @ kernel[0, 0]
    return jax.lax.conv_general_dilated(x, kernel, *args, **kwargs)


_Conv = functools.partial(nn.Conv, conv_general_dilated=_convolve)


def trunk(config: ResNetConfig, layer: equivariant.Apply, x: Any, axis: int = -1) -> Any:
    """Computes stem and residual blocks of an array, or a list of its parts, along an axis."""
    relu = functools.partial(jax.tree.map, nn.relu)

    def norm(x):
        return standardize(x, axis) if config.norm == "layer" else x

    x = relu(layer("stem", x))
    for i in range(config.blocks):
        inner = relu(layer(f"block{i}_a", norm(x)))
        x = relu(jax.tree.map(jnp.add, x, layer(f"block{i}_b", inner)))
    return norm(x)


def standardize(x: Any, axis: int) -> Any:
    """LayerNorm (Ba et al. 2016) without scale and bias, which the next layer provides.

    It is computed in float32. `x` is an array, or a list of its parts along the axis.
    """
    parts = [part.astype(jnp.float32) for part in jax.tree.leaves(x)]
    count = sum(part.shape[axis] for part in parts)
    mean = sum(jnp.sum(part, axis, keepdims=True) for part in parts) / count
    squares = [jnp.sum(jnp.square(part - mean), axis, keepdims=True) for part in parts]
    scale = jax.lax.rsqrt(sum(squares) / count + EPSILON)

    def normalize(part):
        return ((part.astype(jnp.float32) - mean) * scale).astype(part.dtype)

    return jax.tree.map(normalize, x)


def fold(variables: Variables) -> dict[str, Any]:
    """Folds BatchNorm into the layers before it; returns the layers."""
    params, statistics = variables["params"], variables.get("batch_stats", {})
    folded = {name: layer for name, layer in params.items() if not name.endswith("_norm")}
    for norm, values in statistics.items():
        name = norm.removesuffix("_norm")
        scale = params[norm]["scale"] * jax.lax.rsqrt(values["var"] + EPSILON)
        kernel = folded[name]["kernel"]
        bias = params[norm]["bias"] - values["mean"] * scale
        scale = jnp.expand_dims(scale, tuple(range(kernel.ndim - 1)))
        folded[name] = {"kernel": kernel * scale, "bias": bias}
    return folded


def make(config: ResNetConfig, game: Game, platform: str) -> Network:
    """Builds the residual network for a game."""
    convolves = config.layers == "conv"
    plain = functools.partial(Plain, "resnet", config.blocks, config.norm == "layer")
    if config.symmetric and game.num_symmetries > 1:
        names = ("stem", *(f"block{i}_{part}" for i in range(config.blocks) for part in "ab"))
        layers = tuple((name, config.width) for name in names)
        return equivariant.make(config, game, platform, layers, trunk, plain)

    def module(dtype, settings=config):
        batch_last = convolves and is_faster(game.board_shape, dtype, platform)
        return ResNet(settings, game.num_actions, dtype, batch_last)

    folded_norm = {"norm": "none"} if config.norm == "batch" else {}
    inferred = dataclasses.replace(config, **folded_norm)
    return from_settings(
        config,
        game,
        platform,
        module,
        fold=lambda variables: {"params": fold(variables)},
        infer=lambda dtype: module(dtype, inferred).apply,
        plain=lambda folded: plain(folded["params"]),
        convolves=convolves,
    )
