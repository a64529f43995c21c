"""Convolutions with 3x3 kernels on small boards, in Winograd's form or in XLA's.

Library convolutions are made for large pictures. A 3x3 kernel on a 3x3 board takes 49 products with
channel matrices, but only 25 in the form of Winograd (1980; for networks: Lavin and Gray 2016).

In one dimension, take `n` cells and the 3 taps of a kernel, in reverse order, as the coefficients
of two polynomials. The outputs are coefficients of their product. The product is determined by its
values at `n + 2` points, the last of which is infinity, and each value takes one multiplication.
The code uses the transpose of this algorithm, which takes the same number of multiplications. On a
board, the points are the pairs of a point for its rows and a point for its columns.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_LONGEST_LINE = 5  # On larger boards, Winograd's form is not always faster than XLA's.
_POINTS = (0, 1, -1, 2, -2, 0.5)


def _keep(kernel: jax.Array, board_shape: tuple[int, int]) -> jax.Array:
    del board_shape
    return kernel


class Form(NamedTuple):
    """A way to compute layers, as pure functions. The kernel size `k` is 1 or 3.

    The layout of inputs and outputs is `[B, H, W, C]`, or `[H, W, C, B]` with `batch_last`, or
    `[B, C]` for dense layers.

    Attributes:
      apply: `(x, arranged) -> y`, a convolution with zero padding.
      arrange: `(kernel [k, k, I, O], board_shape) -> arranged`.
      restore: `(arranged, board_shape) -> kernel`, the inverse of `arrange`.
      batch_last: whether the batch is the last axis of the layout.
      convolves: False for dense layers, whose kernels are `[I, O]`.
    """

    apply: Callable[[jax.Array, jax.Array], jax.Array]
    arrange: Callable[[jax.Array, tuple[int, int]], jax.Array] = _keep
    restore: Callable[[jax.Array, tuple[int, int]], jax.Array] = _keep
    batch_last: bool = False
    convolves: bool = True

    @property
    def channel_axis(self) -> int:
        """The axis of the channels in the layout."""
        return -2 if self.batch_last else -1

    def add(self, x: jax.Array, bias: jax.Array) -> jax.Array:
        """Adds one number per channel, `[C]`, to `x` in the layout."""
        channel = x.ndim + self.channel_axis
        return x + jnp.expand_dims(bias, [axis for axis in range(x.ndim) if axis != channel])


def choose_form(board_shape: tuple[int, int], dtype: Any, platform: str) -> Form:
    """Returns the form that was faster in measurements on CPUs, and XLA's on other platforms.

    Winograd's form is used only for float32: it adds inputs before it multiplies, which is inexact
    in bfloat16.
    """
    is_small = max(board_shape) <= _LONGEST_LINE
    return FORMS["winograd" if is_small and dtype == jnp.float32 and platform == "cpu" else "xla"]


def _convolve(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """XLA's convolution; for 1x1, a matrix product."""
    if kernel.shape[0] == 1:
        return x @ kernel[0, 0]
    dimensions = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dimensions)


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


def _arrange(kernel: jax.Array, board_shape: tuple[int, int]) -> jax.Array:
    """Transforms a kernel of 3x3 to `[p, O, I]`; one of 1x1 becomes `[1, O, I]`."""
    taps = _transforms(board_shape)[1] if kernel.shape[0] == 3 else np.ones((1, 1), np.float32)
    return jnp.einsum("pt,tio->poi", taps, kernel.reshape(-1, *kernel.shape[2:]))


def _multiply(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolves `[H, W, I, B]` with matrix products only; returns `[H, W, O, B]`.

    With the batch last, each product reads its input in the layout that the previous one wrote.
    """
    height, width, inputs, batch = x.shape
    flat = x.reshape(height * width, inputs, batch)
    if len(kernel) == 1:
        y = jnp.broadcast_to(kernel, (len(flat), *kernel.shape[1:])) @ flat
    else:
        cells, _, back = map(jnp.asarray, _transforms((height, width)))
        points = (cells @ flat.reshape(flat.shape[0], -1)).reshape(-1, inputs, batch)
        y = back @ (kernel @ points).reshape(len(kernel), -1)
    return y.reshape(height, width, -1, batch)


def _restore(kernel: jax.Array, board_shape: tuple[int, int]) -> jax.Array:
    """Inverts `_arrange`, up to rounding."""
    if len(kernel) == 1:
        return kernel.transpose(0, 2, 1)[None]
    taps = np.linalg.pinv(_transforms(board_shape)[1])
    return jnp.einsum("tp,poi->tio", taps, kernel).reshape(3, 3, *kernel.shape[:0:-1])


FORMS = {
    "winograd": Form(_multiply, _arrange, _restore, batch_last=True),
    "xla": Form(_convolve),
}
