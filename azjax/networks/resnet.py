"""Residual networks and MLPs in Flax.

A residual network has a stem, blocks of two layers with a shortcut, a policy head and a value head
(Silver et al. 2017, Methods, "Neural network architecture").
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax.networks.config import MLPConfig, ResNetConfig
from azjax.networks.convolution import Conv, WinogradConv

EPSILON = 1e-5  # Added to variances.


class TwoHeads(nn.Module):
    """What residual networks and MLPs share: dense layers, and the outputs of two heads."""

    num_actions: int
    dtype: Any = jnp.float32  # Of the arithmetic.

    def dense(self, name: str, x: Any, features: int, **options: Any) -> Any:
        """Computes a dense layer."""
        return nn.Dense(features, dtype=self.dtype, name=name, **options)(x)

    def outputs(self, policy: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns `(logits [B, A], value [B])`, from the hidden units of the heads."""
        logits = self.dense("policy", policy, self.num_actions).astype(jnp.float32)
        value = self.dense("value", value, 1)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)


class MLP(TwoHeads):
    """Shared layers with ReLU, then one hidden layer in each head."""

    config: MLPConfig = MLPConfig()

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        x = planes.reshape(planes.shape[0], -1)
        for i, width in enumerate(self.config.hidden):
            x = relu(self.dense(f"Dense_{i}", x, width))
        policy = relu(self.dense("policy_hidden", x, self.config.head_hidden))
        value = relu(self.dense("value_hidden", x, self.config.head_hidden))
        return self.outputs(policy, value)


class ResNet(TwoHeads):
    """Stem, residual blocks and two heads.

    Between layers, `x` is an array, or a list of arrays in a symmetric network. In Winograd's form,
    the batch is its last axis.
    """

    config: ResNetConfig = ResNetConfig()
    axis_name: str | None = None  # Mesh axis over which BatchNorm reduces in training.
    is_winograd: bool = False  # The form of the convolutions.

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        width, hidden = self.config.width, self.config.head_hidden
        convolves = self.config.layers == "conv"
        layer = functools.partial(self.layer, train)

        def norm(x):
            is_layer_norm = self.config.norm == "layer"
            return standardize(x, self.dtype, self.channels) if is_layer_norm else x

        x = planes.astype(self.dtype)
        x = jnp.moveaxis(x, 0, -1) if self.is_winograd else x
        x = relu(layer("stem", x if convolves else self.flatten(x), width))
        for i in range(self.config.blocks):
            inner = relu(layer(f"block{i}_a", norm(x), width))
            inner = layer(f"block{i}_b", inner, width, ends_block=True)
            x = relu(jax.tree.map(jnp.add, x, inner))
        x = norm(x)
        if convolves:
            policy = self.flatten(relu(layer("policy_conv", x, 2, size=1)))
            value = self.flatten(relu(layer("value_conv", x, 1, size=1)))
            value = relu(self.dense("value_hidden", value, hidden))
        else:
            policy = relu(layer("policy_hidden", x, hidden))
            value = relu(layer("value_hidden", x, hidden))
        return self.outputs(policy, value)

    def layer(
        self, train: bool, name: str, x: Any, features: int, size: int = 3, ends_block: bool = False
    ) -> Any:
        """Computes a dense layer or a convolution, with BatchNorm if there is one."""
        has_batch_norm = self.config.norm == "batch"
        options: dict[str, Any] = {"use_bias": not has_batch_norm}
        if ends_block and not has_batch_norm:
            options["kernel_init"] = nn.initializers.zeros
        if self.config.layers == "conv":
            conv = WinogradConv if self.is_winograd else Conv
            options = {"kernel_init": nn.initializers.he_normal()} | options
            x = conv(features, (size, size), dtype=self.dtype, name=name, **options)(x)
        else:
            x = self.dense(name, x, features, **options)
        if not has_batch_norm:
            return x
        over = self.axis_name if train else None
        norm = functools.partial(nn.BatchNorm, momentum=0.9, epsilon=EPSILON, axis_name=over)
        return norm(not train, self.channels, dtype=self.dtype, name=f"{name}_norm")(x)

    @property
    def channels(self) -> int:
        """The axis of the channels."""
        return -2 if self.is_winograd else -1

    def flatten(self, x: jax.Array) -> jax.Array:
        """Returns `[B, N]`."""
        x = jnp.moveaxis(x, -1, 0) if self.is_winograd else x
        return x.reshape(x.shape[0], -1)


def relu(x: Any) -> Any:
    """ReLU of an array, or of the list of arrays of a symmetric network."""
    return jax.tree.map(nn.relu, x)


def standardize(x: Any, dtype: Any, axis: int) -> Any:
    """LayerNorm of an array or a list of arrays; the next layer provides scale and bias."""
    parts = [part.astype(jnp.float32) for part in jax.tree.leaves(x)]
    count = sum(part.shape[axis] for part in parts)

    def mean(each: list[jax.Array]) -> jax.Array:
        sums = [jnp.sum(part, axis, keepdims=True) for part in each]
        return functools.reduce(jnp.add, sums) / count

    center = mean(parts)
    scale = jax.lax.rsqrt(mean([jnp.square(part - center) for part in parts]) + EPSILON)
    normal = [((part - center) * scale).astype(dtype) for part in parts]
    return jax.tree.unflatten(jax.tree.structure(x), normal)
