"""Matrix products for training."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

Product = Callable[[jax.Array, jax.Array], jax.Array]  # `x [B, I], kernel [I, O] -> [B, O]`.


def product_for(dtype, platform: str) -> Product:
    """Returns the product for arithmetic of a type on a platform, such as `cpu`."""
    in_half = dtype == jnp.bfloat16 and platform == "cpu"
    return _product_in_half if in_half else jnp.matmul


@jax.custom_vjp
def _product_in_half(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`x @ kernel` with gradients that CPUs compute in bfloat16.

    XLA's CPU library has no bfloat16 product with a transposed left factor, so XLA falls back to
    float32. Rows of zeros after the transpose keep XLA from recognizing it.
    """
    return x @ kernel


def _product_forward(x, kernel):
    return x @ kernel, (x, kernel)


def _product_backward(factors, gradient):
    x, kernel = factors
    transposed = jnp.pad(x.T, ((0, 8), (0, 0)))
    return gradient @ kernel.T, (transposed @ gradient)[: x.shape[1]]


_product_in_half.defvjp(_product_forward, _product_backward)
