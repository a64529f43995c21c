"""Residual networks and MLPs in Flax.

A residual network has a stem, blocks of two layers with a shortcut, a policy head and a value head
(Silver et al. 2017, Methods, "Neural network architecture"):

    x = relu(stem(planes))
    for block in blocks:
        x = relu(x + block.b(relu(block.a(norm(x)))))
    policy, value = policy_head(norm(x)), value_head(norm(x))

`convolution.py` and `symmetric.py` have faster forms of the same networks.
"""

import functools
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax.networks.config import MLPConfig, ResNetConfig

EPSILON = 1e-5  # Added to variances.


class TwoHeads(nn.Module):
    """What residual networks and MLPs share: dense layers, and the outputs of two heads."""

    num_actions: int
    dtype: Any = jnp.float32  # Of the arithmetic.

    relu = staticmethod(nn.relu)

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
            x = self.relu(self.dense(f"Dense_{i}", x, width))
        policy = self.relu(self.dense("policy_hidden", x, self.config.head_hidden))
        value = self.relu(self.dense("value_hidden", x, self.config.head_hidden))
        return self.outputs(policy, value)


def _convolve(x: jax.Array, kernel: jax.Array, *args: Any, **options: Any) -> jax.Array:
    """XLA's convolution; for 1x1, a matrix product, which is faster."""
    if kernel.shape[0] == 1:
        return x @ kernel[0, 0]
    return jax.lax.conv_general_dilated(x, kernel, *args, **options)


class ResNet(TwoHeads):
    """Stem, residual blocks and two heads, of dense layers or of convolutions."""

    config: ResNetConfig = ResNetConfig()
    axis_name: str | None = None  # Mesh axis over which BatchNorm reduces in training.

    # Other forms of the network replace these, and some of the methods below.
    add = staticmethod(jnp.add)
    make_conv: ClassVar[Any] = staticmethod(
        functools.partial(nn.Conv, conv_general_dilated=_convolve)
    )
    channels = -1  # The axis of the channels.

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        width, hidden = self.config.width, self.config.head_hidden
        convolves = self.config.layers == "conv"
        layer = functools.partial(self.layer, train)

        def norm(x):
            return self.standardize(x) if self.config.norm == "layer" else x

        x = self.relu(layer("stem", self.read(planes.astype(self.dtype)), width))
        for i in range(self.config.blocks):
            inner = self.relu(layer(f"block{i}_a", norm(x), width))
            x = self.relu(self.add(x, layer(f"block{i}_b", inner, width, ends_block=True)))
        x = norm(x)
        if convolves:
            policy = self.flatten(self.relu(layer("policy_conv", x, 2, size=1)))
            value = self.flatten(self.relu(layer("value_conv", x, 1, size=1)))
            value = self.relu(self.dense("value_hidden", value, hidden))
        else:
            policy = self.relu(layer("policy_hidden", x, hidden))
            value = self.relu(layer("value_hidden", x, hidden))
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
            options = {"kernel_init": nn.initializers.he_normal()} | options
            x = self.make_conv(features, (size, size), dtype=self.dtype, name=name, **options)(x)
        else:
            x = self.dense(name, x, features, **options)
        if not has_batch_norm:
            return x
        over = self.axis_name if train else None
        norm = functools.partial(nn.BatchNorm, momentum=0.9, epsilon=EPSILON, axis_name=over)
        return norm(not train, self.channels, dtype=self.dtype, name=f"{name}_norm")(x)

    def read(self, planes: jax.Array) -> jax.Array:
        """Returns the planes as the input of the stem."""
        return planes if self.config.layers == "conv" else self.flatten(planes)

    def flatten(self, x: jax.Array) -> jax.Array:
        """Returns `[B, N]`."""
        return x.reshape(x.shape[0], -1)

    def standardize(self, x: Any) -> Any:
        """LayerNorm over the channels; the next layer provides scale and bias."""
        return standardize([x], self.channels, self.dtype)[0]


def standardize(parts: list[jax.Array], axis: int, dtype: Any) -> list[jax.Array]:
    """Standardizes the channels of several arrays together."""
    parts = [part.astype(jnp.float32) for part in parts]
    count = sum(part.shape[axis] for part in parts)

    def mean(each: list[jax.Array]) -> jax.Array:
        sums = [jnp.sum(part, axis, keepdims=True) for part in each]
        return functools.reduce(jnp.add, sums) / count

    center = mean(parts)
    scale = jax.lax.rsqrt(mean([jnp.square(part - center) for part in parts]) + EPSILON)
    return [((part - center) * scale).astype(dtype) for part in parts]
