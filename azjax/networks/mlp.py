"""A multilayer perceptron in Flax."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax.networks.base import DEEPEST, WIDEST, DType
from azjax.settings import check_range, check_types


@dataclasses.dataclass(frozen=True)
class MLPConfig:
    """A multilayer perceptron: fully connected layers."""

    kind: Literal["mlp"] = "mlp"
    """Which network. `tower`: residual convolutions (the papers); `mlp`: fully connected
    layers. Settings of the other one: --network.kind tower --help."""
    encoding: str = "relative"
    """Input planes. `absolute`: X, O and side to move; `relative`: the mover's stones and
    the opponent's. AlphaZero: relative, with history."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the shared layers."""
    head_hidden: int = 64
    """Width of the hidden layer in each head."""
    evaluation_dtype: DType = "float32"
    """Arithmetic of the search's evaluations. `bfloat16`: less exact, and faster where the
    hardware has it; `auto`: there."""
    learning_dtype: DType = "float32"
    """Arithmetic of the layers in learning; parameters and losses are in float32."""
    symmetric: bool = False
    """Share weights among the symmetries that the game has, so that the images of a position get
    those of its outputs. Learns from fewer games, with a half or a quarter of the products."""

    def __post_init__(self):
        check_types("network", self)
        check_range("network", self, "head_hidden", 1, WIDEST)
        widths = self.hidden
        if not 1 <= len(widths) <= DEEPEST or not 1 <= min(widths) <= max(widths) <= WIDEST:
            raise ValueError(
                f"network.hidden is {widths}: use 1 to {DEEPEST} widths, each 1 to {WIDEST}"
            )


class MLP(nn.Module):
    """Shared layers with ReLU, then one hidden layer in each head."""

    hidden: tuple[int, ...]
    head_hidden: int
    num_actions: int
    dtype: Any = jnp.float32
    platform: str = ""

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        dot_general = functools.partial(_dot_general, self.platform)
        dense = functools.partial(nn.Dense, dtype=self.dtype, dot_general=dot_general)
        x = planes.reshape(len(planes), -1)
        for width in self.hidden:
            x = nn.relu(dense(width)(x))
        policy = nn.relu(dense(self.head_hidden, name="policy_hidden")(x))
        value = nn.relu(dense(self.head_hidden, name="value_hidden")(x))
        logits = dense(self.num_actions, name="policy")(policy).astype(jnp.float32)
        value = dense(1, name="value")(value)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)


def product_for(dtype, platform: str) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Returns the product of matrices that is fastest to learn with, in arithmetic of a type."""
    in_half = dtype == jnp.bfloat16 and platform == "cpu"
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


def _dot_general(platform, x, kernel, dimensions, precision=None, preferred_element_type=None):
    """What a dense layer asks for: the last axis of `x [B, I]` with the first of `[I, O]`."""
    del dimensions, precision, preferred_element_type
    return product_for(x.dtype, platform)(x, kernel)
