"""A residual network in Flax, with dense layers or convolutions.

It consists of a stem, blocks of two layers with a shortcut, a policy head and a value head (Silver
et al. 2017, Methods, "Neural network architecture"). Its inference form is in
`resnet_inference.py`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax._settings import Range, check
from azjax.networks.base import DEEPEST, WIDEST, DType
from azjax.networks.convolution import Form

Norm = Literal["none", "layer", "batch"]
Layer = Callable[[str, Any], Any]
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
      width: see `ResNetConfig`.
      blocks: see `ResNetConfig`.
      head_hidden: see `ResNetConfig`.
      num_actions: `A`.
      norm: see `ResNetConfig`; the dense layers of convolutional heads have no BatchNorm.
      form: how the layers are computed.
      dtype: the type of the arithmetic.
      axis_name: mesh axis over which BatchNorm reduces in training.
    """

    width: int
    blocks: int
    head_hidden: int
    num_actions: int
    norm: Norm
    form: Form
    dtype: Any = jnp.float32
    axis_name: str | None = None

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        hidden = self.head_hidden
        special = {
            "policy_conv": 2,
            "value_conv": 1,
            "policy_hidden": hidden,
            "value_hidden": hidden,
        }
        outputs = {"policy": self.num_actions, "value_hidden": hidden, "value": 1}

        def layer(name, x):
            x = Linear(
                features=special.get(name, self.width),
                size=1 if name in special else 3,
                form=self.form,
                has_bias=self.norm != "batch",
                is_zero=self.norm != "batch" and name.endswith("_b"),
                dtype=self.dtype,
                name=name,
            )(x)
            if self.norm != "batch":
                return x
            return nn.BatchNorm(
                not train,
                self.form.channel_axis,
                momentum=0.9,
                epsilon=EPSILON,
                dtype=self.dtype,
                axis_name=self.axis_name if train else None,
                name=f"{name}_norm",
            )(x)

        def dense(name, x):
            return nn.Dense(outputs[name], dtype=self.dtype, name=name)(x)

        planes = planes.astype(self.dtype)
        return forward(self.form, self.blocks, self.norm == "layer", planes, layer, dense)


class Linear(nn.Module):
    """A dense layer, or a 1x1 or 3x3 convolution with zero padding."""

    features: int
    size: int
    form: Form
    has_bias: bool
    is_zero: bool
    dtype: Any

    @nn.compact
    def __call__(self, x):
        """Returns `features` channels; `x` is in the form's layout."""
        *board, inputs = x.shape[:-1] if self.form.batch_last else x.shape[1:]
        shape = (*(self.size for _ in board), inputs, self.features)
        initial = nn.initializers.he_normal() if board else nn.initializers.lecun_normal()
        if self.is_zero:
            initial = nn.initializers.zeros
        kernel = self.param("kernel", initial, shape, jnp.float32).astype(self.dtype)
        x = self.form.apply(x, self.form.arrange(kernel, tuple(board)))
        if not self.has_bias:
            return x
        bias = self.param("bias", nn.initializers.zeros, (self.features,), jnp.float32)
        return self.form.add(x, bias.astype(self.dtype))


def trunk(blocks: int, has_norm: bool, layer: Layer, x: Any, axis: int = -1) -> Any:
    """Computes stem and residual blocks.

    Args:
      blocks: number of residual blocks.
      has_norm: whether LayerNorm comes before every block and after the last one.
      layer: `(name, x) -> x`, computes one layer without its ReLU.
      x: an array, or a list of its parts.
      axis: the axis of the channels.
    """

    def norm(x):
        return standardize(x, axis) if has_norm else x

    relu = functools.partial(jax.tree.map, nn.relu)
    x = relu(layer("stem", x))
    for i in range(blocks):
        inner = relu(layer(f"block{i}_a", norm(x)))
        x = relu(jax.tree.map(jnp.add, x, layer(f"block{i}_b", inner)))
    return norm(x)


def standardize(x: Any, axis: int) -> Any:
    """LayerNorm (Ba et al. 2016) without scale and bias, which the next layer provides.

    Args:
      x: an array, or a list of its parts.
      axis: the axis of the channels.

    Returns:
      `x` with mean 0 and variance 1 along the axis, computed in float32.
    """
    parts = [part.astype(jnp.float32) for part in jax.tree.leaves(x)]
    count = sum(part.shape[axis] for part in parts)
    mean = sum(jnp.sum(part, axis, keepdims=True) for part in parts) / count
    squares = [jnp.sum(jnp.square(part - mean), axis, keepdims=True) for part in parts]
    scale = jax.lax.rsqrt(sum(squares) / count + EPSILON)

    def normalize(part):
        return ((part.astype(jnp.float32) - mean) * scale).astype(part.dtype)

    return jax.tree.map(normalize, x)


def forward(
    form: Form, blocks: int, has_norm: bool, planes: jax.Array, layer: Layer, dense: Layer
) -> tuple[jax.Array, jax.Array]:
    """Computes the network.

    Args:
      form: how the layers are computed.
      blocks: number of residual blocks.
      has_norm: whether there is LayerNorm.
      planes: `[B, H, W, C]`.
      layer: `(name, x) -> x`, computes one layer without its ReLU.
      dense: the same for the last layers of the heads.

    Returns:
      `(logits [B, A], value [B])`.
    """
    x = planes if form.convolves else planes.reshape(planes.shape[0], -1)
    x = jnp.moveaxis(x, 0, -1) if form.batch_last else x
    x = trunk(blocks, has_norm, layer, x, form.channel_axis)

    def head(name):
        hidden = nn.relu(layer(name, x))
        hidden = jnp.moveaxis(hidden, -1, 0) if form.batch_last else hidden
        return hidden.reshape(hidden.shape[0], -1)

    if form.convolves:
        policy = head("policy_conv")
        value = nn.relu(dense("value_hidden", head("value_conv")))
    else:
        policy, value = head("policy_hidden"), head("value_hidden")
    logits = dense("policy", policy).astype(jnp.float32)
    return logits, jnp.tanh(dense("value", value)[:, 0].astype(jnp.float32))
