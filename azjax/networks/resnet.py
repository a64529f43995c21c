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
from azjax.networks.base import DEEPEST, WIDEST, Folded, Network, Plain, SharedConfig, Variables
from azjax.networks.convolution import WinogradConv, is_faster
from azjax.networks.modules import casting, wrap

EPSILON = 1e-5  # Added to variances.


@dataclasses.dataclass(frozen=True)
class ResNetConfig(SharedConfig):
    """A residual network."""

    kind: Literal["resnet"] = "resnet"
    """Network. `resnet`: residual blocks (AlphaZero); `mlp`: fully connected layers. For the
    settings of the other kind: --network.kind mlp --help."""
    layers: Literal["dense", "conv"] = "dense"
    """Layers of the blocks. `dense`: faster on small boards; `conv`: 3x3 convolutions
    (AlphaZero)."""
    width: Annotated[int, Range(1, WIDEST)] = 256
    """Units of a dense layer, or channels of a convolution. AlphaZero: 256 channels."""
    blocks: Annotated[int, Range(0, DEEPEST)] = 1
    """Residual blocks, of two layers each. AlphaZero: 19."""
    norm: Literal["none", "layer", "batch"] = "layer"
    """Normalization. `layer`: LayerNorm before blocks and heads; `batch`: BatchNorm after every
    layer (AlphaZero). Without BatchNorm, the last layer of each block starts at zero."""

    def __post_init__(self):
        check("network", self)
        if self.symmetric and (self.layers == "conv" or self.norm == "batch"):
            raise ValueError(
                "network.symmetric needs dense layers without BatchNorm, but network.layers is "
                f"{self.layers!r} and network.norm is {self.norm!r}: use 'dense', with 'layer' or "
                "'none'"
            )


def _convolve(x: jax.Array, kernel: jax.Array, *args: Any, **kwargs: Any) -> jax.Array:
    """XLA's convolution; for 1x1, a matrix product, which is faster."""
    if kernel.shape[0] == 1:
        return x @ kernel[0, 0]
    return jax.lax.conv_general_dilated(x, kernel, *args, **kwargs)


class ResNet(nn.Module):
    """Stem, residual blocks and two heads.

    Subclasses override layers, `relu`, `add` and `flatten` for units of another form.

    Attributes:
      config: its settings.
      num_actions: `A`.
      dtype: the type of the arithmetic.
      axis_name: mesh axis over which BatchNorm reduces in training.
    """

    config: ResNetConfig
    num_actions: int
    dtype: Any = jnp.float32
    axis_name: str | None = None

    Conv = staticmethod(functools.partial(nn.Conv, conv_general_dilated=_convolve))
    BatchNorm = staticmethod(functools.partial(nn.BatchNorm, momentum=0.9, epsilon=EPSILON))
    LayerNorm = staticmethod(  # The next layer provides scale and bias.
        functools.partial(
            nn.LayerNorm, EPSILON, use_bias=False, use_scale=False, use_fast_variance=False
        )
    )
    relu, add = staticmethod(nn.relu), staticmethod(jnp.add)

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        config, dtype, hidden = self.config, self.dtype, self.config.head_hidden
        convolves, has_batch_norm = config.layers == "conv", config.norm == "batch"
        dense, relu, add = self.dense, self.relu, self.add

        def layer(name, x, features=config.width, size=3, ends_block=False):
            options: dict[str, Any] = {"use_bias": False} if has_batch_norm else {}
            if ends_block and not has_batch_norm:
                options["kernel_init"] = nn.initializers.zeros
            elif convolves:
                options["kernel_init"] = nn.initializers.he_normal()
            if convolves:
                x = self.Conv(features, (size, size), dtype=dtype, name=name, **options)(x)
            else:
                x = dense(name, x, features, **options)
            if has_batch_norm:
                over = self.axis_name if train else None
                x = self.BatchNorm(not train, dtype=dtype, axis_name=over, name=f"{name}_norm")(x)
            return x

        def norm(x):
            return self.LayerNorm(dtype=dtype)(x) if config.norm == "layer" else x

        x = planes.astype(dtype)
        x = relu(layer("stem", x if convolves else self.flatten(x)))
        for i in range(config.blocks):
            inner = relu(layer(f"block{i}_a", norm(x)))
            x = relu(add(x, layer(f"block{i}_b", inner, ends_block=True)))
        x = norm(x)
        if convolves:
            policy = self.flatten(relu(layer("policy_conv", x, 2, size=1)))
            value = self.flatten(relu(layer("value_conv", x, 1, size=1)))
            value = relu(dense("value_hidden", value, hidden))
        else:
            policy = relu(layer("policy_hidden", x, hidden))
            value = relu(layer("value_hidden", x, hidden))
        logits = dense("policy", policy, self.num_actions).astype(jnp.float32)
        value = dense("value", value, 1)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)

    def dense(self, name: str, x: Any, features: int, **options: Any) -> Any:
        """Computes a dense layer."""
        return nn.Dense(features, dtype=self.dtype, name=name, **options)(x)

    @staticmethod
    def flatten(x: jax.Array) -> jax.Array:
        """Returns `[B, ...]` as `[B, N]`."""
        return x.reshape(x.shape[0], -1)


class WinogradResNet(ResNet):
    """A `ResNet` of convolutions that has the batch as the last axis between them."""

    Conv = WinogradConv
    BatchNorm = staticmethod(functools.partial(ResNet.BatchNorm, axis=-2))
    LayerNorm = staticmethod(functools.partial(ResNet.LayerNorm, reduction_axes=-2))

    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        return super().__call__(jnp.moveaxis(planes, 0, -1), train)

    @staticmethod
    def flatten(x: jax.Array) -> jax.Array:
        """Returns `[..., B]` as `[B, N]`."""
        return ResNet.flatten(jnp.moveaxis(x, -1, 0))


def make(
    config: ResNetConfig, game: Game, dtype: jnp.dtype, learning_dtype: jnp.dtype, platform: str
) -> Network:
    """Makes a residual network without shared weights; see `make_network`."""

    def module(config, dtype) -> nn.Module:
        convolves = config.layers == "conv"
        is_winograd = convolves and is_faster(game.board_shape, dtype, platform)
        return (WinogradResNet if is_winograd else ResNet)(config, game.num_actions, dtype)

    learned = module(config, learning_dtype)
    network = wrap(game, module(config, jnp.float32), config.encoding, learned)
    without_norm = dataclasses.replace(config, norm="none")
    folded = module(without_norm if config.norm == "batch" else config, dtype)
    return network._replace(
        fold=casting(fold_batch_norm, dtype),
        infer=folded.apply,
        plain=functools.partial(plain, config),
    )


def plain(config: ResNetConfig, folded: Folded) -> Plain:
    """Returns folded weights in the form of `Plain`."""
    return Plain("resnet", config.blocks, config.norm == "layer", folded["params"])


def fold_batch_norm(variables: Variables) -> Variables:
    """Folds each BatchNorm, `LAYER_norm`, into the layer before it, as if there were no norm."""
    layers, statistics = dict(variables["params"]), variables.get("batch_stats", {})
    for norm, values in statistics.items():
        name, learned = norm.removesuffix("_norm"), layers.pop(norm)
        scale = learned["scale"] * jax.lax.rsqrt(values["var"] + EPSILON)
        kernel, bias = layers[name]["kernel"], learned["bias"] - values["mean"] * scale
        layers[name] = {"kernel": kernel * jnp.broadcast_to(scale, kernel.shape), "bias": bias}
    return {"params": layers}
