"""The residual tower of AlphaGo Zero and a multilayer perceptron, in Flax.

For inference the tower's BatchNorm disappears into the convolutions, and these become the matrix
products that are fastest for the board (see `convolution.py`).
"""

import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax.convolution import Form

Variables = Any  # Flax variables: {"params": ..., "batch_stats": ...}.
Folded = Any  # The inference form of the variables.
DENSE = ("policy", "value_hidden", "value")  # The tower's layers after its convolutions.


class MLP(nn.Module):
    """Shared layers with ReLU, then one hidden layer in each head."""

    hidden: tuple[int, ...]
    head_hidden: int
    num_actions: int
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        dense = functools.partial(nn.Dense, dtype=self.dtype, dot_general=_dot_general)
        x = planes.reshape(len(planes), -1)
        for width in self.hidden:
            x = nn.relu(dense(width)(x))
        policy = nn.relu(dense(self.head_hidden, name="policy_hidden")(x))
        value = nn.relu(dense(self.head_hidden, name="value_hidden")(x))
        logits = dense(self.num_actions, name="policy")(policy).astype(jnp.float32)
        value = dense(1, name="value")(value)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)


def product_for(dtype) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Returns the product of matrices that is fastest to learn with, in arithmetic of a type."""
    in_half = dtype == jnp.bfloat16 and jax.default_backend() == "cpu"
    return _product_in_half if in_half else jnp.matmul


@jax.custom_vjp
def _product_in_half(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`x @ kernel`, with gradients that CPUs compute in bfloat16, too.

    XLA's library for CPUs has no product in bfloat16 whose left factor is transposed, so XLA
    computes it in float32. A transpose with rows of zeros at its end it takes for none.
    """
    return x @ kernel


def _product_forward(x, kernel):
    return x @ kernel, (x, kernel)


def _product_backward(factors, gradient):
    x, kernel = factors
    turned = jnp.pad(x.T, ((0, 8), (0, 0)))
    return gradient @ kernel.T, (turned @ gradient)[: x.shape[1]]


_product_in_half.defvjp(_product_forward, _product_backward)


def _dot_general(x, kernel, dimensions, precision=None, preferred_element_type=None):
    """What a dense layer asks for: the last axis of `x [B, I]` with the first of `[I, O]`."""
    del dimensions, precision, preferred_element_type
    return product_for(x.dtype)(x, kernel)


class Tower(nn.Module):
    """Stem, residual blocks and two heads (Silver et al. 2017, Methods, "Neural network")."""

    channels: int
    blocks: int
    value_hidden: int
    num_actions: int
    form: Form
    axis_name: str | None = None

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        heads = {"policy_conv": 2, "value_conv": 1}
        widths = dict(zip(DENSE, (self.num_actions, self.value_hidden, 1), strict=True))

        def layer(name, x):
            features, size = heads.get(name, self.channels), 1 if name in heads else 3
            x = BoardConv(features, size, self.form, name=name)(x)
            axis = self.axis_name if train else None
            look = {"momentum": 0.9, "axis_name": axis, "name": f"{name}_norm"}
            return nn.BatchNorm(not train, self.form.position_axes[-1], **look)(x)

        def dense(name, x):
            return nn.Dense(widths[name], name=name)(x)

        return _tower(self.form, self.blocks, planes.astype(jnp.float32), layer, dense)


def _tower(form: Form, blocks: int, planes, layer, dense) -> tuple[jax.Array, jax.Array]:
    """The tower's forward pass; `layer` and `dense` are functions of a name and an input."""

    def head(name):
        x = form.from_layout(nn.relu(layer(name, trunk)))
        return x.reshape(len(x), -1)

    trunk = nn.relu(layer("stem", form.to_layout(planes)))
    for i in range(blocks):
        inner = nn.relu(layer(f"block{i}_a", trunk))
        trunk = nn.relu(trunk + layer(f"block{i}_b", inner))
    logits = dense("policy", head("policy_conv")).astype(jnp.float32)
    value = dense("value", nn.relu(dense("value_hidden", head("value_conv"))))
    return logits, jnp.tanh(value[:, 0].astype(jnp.float32))


class BoardConv(nn.Module):
    """A 1x1 or 3x3 convolution with zero padding, computed in the chosen form."""

    features: int
    size: int
    form: Form

    @nn.compact
    def __call__(self, x):
        """Convolves `x` in the form's layout, with I channels; returns `features` channels."""
        height, width, inputs = (x.shape[axis] for axis in self.form.position_axes)
        shape = (self.size, self.size, inputs, self.features)
        kernel = self.param("kernel", nn.initializers.he_normal(), shape, jnp.float32)
        return self.form.apply(x, self.form.arrange(kernel, (height, width)))


def fold_tower(form: Form, board_shape: tuple[int, int], variables: Variables) -> Folded:
    """Folds BatchNorm into the convolutions and arranges the kernels, once per search."""
    params = variables["params"]

    def fold(name):
        norm, stats = params[f"{name}_norm"], variables["batch_stats"][f"{name}_norm"]
        scale = norm["scale"] * jax.lax.rsqrt(stats["var"] + 1e-5)
        kernel = form.arrange(params[name]["kernel"] * scale[None, None, None], board_shape)
        return {"kernel": kernel, "bias": norm["bias"] - stats["mean"] * scale}

    names = (name for name in params if not name.endswith("_norm"))
    return {name: params[name] if name in DENSE else fold(name) for name in names}


def infer_tower(
    form: Form, blocks: int, folded: Folded, planes: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The tower's forward pass on folded parameters, with the same results."""

    def layer(name, x):
        weights = folded[name]
        return form.apply(x, weights["kernel"]) + form.per_channel(weights["bias"])

    def dense(name, x):
        return x @ folded[name]["kernel"] + folded[name]["bias"][None]

    return _tower(form, blocks, planes.astype(folded["stem"]["bias"].dtype), layer, dense)
