"""Convolutions with 3x3 kernels on small boards, for `nn.Conv(conv_general_dilated=...)`.

Library convolutions are made for large pictures. A 3x3 kernel on a 3x3 board takes 49 products with
channel matrices, but only 25 in the form of Winograd (1980; for networks: Lavin and Gray 2016).

In one dimension, take `n` cells and the 3 taps of a kernel, in reverse order, as the coefficients
of two polynomials. The outputs are coefficients of their product. The product is determined by its
values at `n + 2` points, the last of which is infinity, and each value takes one multiplication.
The code uses the transpose of this algorithm, which takes the same number of multiplications. On a
board, the points are the pairs of a point for its rows and a point for its columns.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_LONGEST_LINE = 5  # On larger boards, Winograd's form is not always faster than XLA's.
_POINTS = (0, 1, -1, 2, -2, 0.5)


def choose_convolution(board_shape: tuple[int, int], dtype: Any, platform: str) -> Any:
    """Returns the form that was faster in measurements on CPUs, and XLA's on other platforms.

    Winograd's form is used only for float32: it adds inputs before it multiplies, which is inexact
    in bfloat16.
    """
    is_small = max(board_shape) <= _LONGEST_LINE
    return winograd if is_small and dtype == jnp.float32 and platform == "cpu" else convolve


def convolve(x: jax.Array, kernel: jax.Array, *args: Any, **kwargs: Any) -> jax.Array:
    """XLA's convolution; for 1x1, a matrix product."""
    if kernel.shape[0] == 1:
        return x @ kernel[0, 0]
    return jax.lax.conv_general_dilated(x, kernel, *args, **kwargs)


def winograd(x: jax.Array, kernel: jax.Array, *args: Any, **kwargs: Any) -> jax.Array:
    """Convolves `[B, H, W, I]` with zero padding, with matrix products only.

    The kernel is `[3, 3, I, O]` or `[1, 1, I, O]`. The products have the batch as their last axis,
    and each reads its input in the layout that the previous one wrote.
    """
    del args, kwargs
    batch, height, width, inputs = x.shape
    flat = jnp.moveaxis(x, 0, -1).reshape(height * width, inputs, batch)
    kernel = kernel.reshape(-1, *kernel.shape[2:])
    if len(kernel) == 1:
        kernel = jnp.broadcast_to(kernel.transpose(0, 2, 1), (len(flat), *kernel.shape[:0:-1]))
        y = kernel @ flat
    else:
        cells, taps, back = map(jnp.asarray, _transforms((height, width)))
        kernel = jnp.einsum("pt,tio->poi", taps, kernel)
        points = (cells @ flat.reshape(len(flat), -1)).reshape(-1, inputs, batch)
        y = back @ (kernel @ points).reshape(len(kernel), -1)
    return jnp.moveaxis(y.reshape(height, width, -1, batch), -1, 0)


def _line(length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the matrices of `_transforms` for one line."""

    def evaluate(terms):
        finite = np.vander(_POINTS[: length + 1], terms, increasing=True)
        return np.vstack([finite, np.arange(terms) == terms - 1])

    # The transpose of the polynomial product: from `length + 2` cells to `length` outputs.
    cells = np.linalg.inv(evaluate(length + 2)).T
    largest = abs(cells).max(axis=1, keepdims=True)
    # The first and the last of the cells lie outside the board.
    return (cells / largest)[:, 1:-1], evaluate(3) * largest, evaluate(length).T


@functools.cache
def _transforms(board_shape: tuple[int, int]) -> list[np.ndarray]:
    """Returns float32 matrices for `n` cells and `p` points: `cells [p, n]`, `taps [p, 9]`, `back`.

    Outputs are `back [n, p]` times the product of transformed cells and taps.
    """
    rows, columns = map(_line, board_shape)
    return [np.kron(*pair).astype(np.float32) for pair in zip(rows, columns, strict=True)]
