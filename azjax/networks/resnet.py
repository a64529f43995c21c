"""A residual network in Flax, with dense layers or convolutions.

It consists of a stem, blocks of two layers with a shortcut, a policy head and a value head (Silver
et al. 2017, Methods, "Neural network architecture"). For inference, BatchNorm is folded into the
layers.
"""

import dataclasses
import functools
import itertools
from typing import Annotated, Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax._settings import Range, check
from azjax.networks.base import DEEPEST, WIDEST, Layer, SharedConfig, Variables

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

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        config, dtype, hidden = self.config, self.dtype, self.config.head_hidden
        convolves, has_batch_norm = config.layers == "conv", config.norm == "batch"

        def layer(name, x, features=config.width, size=3, ends_block=False):
            options = {"use_bias": not has_batch_norm, "dtype": dtype, "name": name}
            if ends_block and not has_batch_norm:
                options["kernel_init"] = nn.initializers.zeros
            elif convolves:
                options["kernel_init"] = nn.initializers.he_normal()
            if convolves:
                x = self.Conv(features, (size, size), **options)(x)
            else:
                x = nn.Dense(features, **options)(x)
            if has_batch_norm:
                over = self.axis_name if train else None
                x = self.BatchNorm(not train, dtype=dtype, axis_name=over, name=f"{name}_norm")(x)
            return x

        def norm(x):
            return self.LayerNorm(dtype=dtype)(x) if config.norm == "layer" else x

        def dense(name, x, features):
            return nn.Dense(features, dtype=dtype, name=name)(x)

        x = planes.astype(dtype)
        x = nn.relu(layer("stem", x if convolves else self.flatten(x)))
        for i in range(config.blocks):
            inner = nn.relu(layer(f"block{i}_a", norm(x)))
            x = nn.relu(x + layer(f"block{i}_b", inner, ends_block=True))
        x = norm(x)
        if convolves:
            policy = self.flatten(nn.relu(layer("policy_conv", x, 2, size=1)))
            value = self.flatten(nn.relu(layer("value_conv", x, 1, size=1)))
            value = nn.relu(dense("value_hidden", value, hidden))
        else:
            policy = nn.relu(layer("policy_hidden", x, hidden))
            value = nn.relu(layer("value_hidden", x, hidden))
        logits = dense("policy", policy, self.num_actions).astype(jnp.float32)
        value = dense("value", value, 1)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)

    @staticmethod
    def flatten(x: jax.Array) -> jax.Array:
        """Returns `[B, ...]` as `[B, N]`."""
        return x.reshape(x.shape[0], -1)


def without_batch_norm(config: Any) -> Any:
    """Returns the settings of the network that remains after `fold_batch_norm`."""
    has_batch_norm = getattr(config, "norm", "none") == "batch"
    return dataclasses.replace(config, norm="none") if has_batch_norm else config


def fold_batch_norm(variables: Variables) -> Variables:
    """Folds each BatchNorm, `LAYER_norm`, into the layer before it, as if there were no norm."""
    layers, statistics = dict(variables["params"]), variables.get("batch_stats", {})
    for norm, values in statistics.items():
        name, learned = norm.removesuffix("_norm"), layers.pop(norm)
        scale = learned["scale"] * jax.lax.rsqrt(values["var"] + EPSILON)
        kernel, bias = layers[name]["kernel"], learned["bias"] - values["mean"] * scale
        layers[name] = {"kernel": kernel * jnp.broadcast_to(scale, kernel.shape), "bias": bias}
    return {"params": layers}


def list_layers(blocks: int) -> tuple[Layer, ...]:
    """Lists the dense layers before the heads."""
    pairs = [
        (Layer(f"block{i}_a", "block"), Layer(f"block{i}_b", "shortcut")) for i in range(blocks)
    ]
    return Layer("stem", "planes"), *itertools.chain.from_iterable(pairs)
