"""The product of matrices that is fastest to learn with."""

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
    """`x @ kernel`, whose gradients CPUs compute in bfloat16 as well.

    XLA's library for CPUs has no product in bfloat16 whose left factor is transposed, so XLA
    computes it in float32. It does not recognize a transpose with rows of zeros at its end.
    """
    return x @ kernel


def _product_forward(x, kernel):
    return x @ kernel, (x, kernel)


def _product_backward(factors, gradient):
    x, kernel = factors
    turned = jnp.pad(x.T, ((0, 8), (0, 0)))
    return gradient @ kernel.T, (turned @ gradient)[: x.shape[1]]


_product_in_half.defvjp(_product_forward, _product_backward)
