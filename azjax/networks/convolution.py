"""Convolutions with 3x3 kernels on small boards: `choose_form` returns the fastest one.

Library convolutions are made for large pictures. All forms compute the same. On a board of 3 by 3 a
3x3 kernel costs 81 products of channels by channels as one dense matrix, and 28 as a product of
spectra (`fourier.py`). On one of 8 by 8 it costs 576 cell by cell, and 144 in Winograd's form
(`winograd.py`).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.networks import fourier, winograd

Kernel = Any  # What `arrange` returns.

_DENSE_CELLS = 16  # Up to this many cells, one dense product beats XLA's own form.


class Form(NamedTuple):
    """A way to convolve boards, in a layout of its own, as pure functions.

    Attributes:
      arrange: `(kernel [k, k, I, O], board_shape) -> Kernel`, what `apply` multiplies by; k is
        1 or 3.
      apply: `(x, Kernel) -> y`, with zero padding; `x` is in the layout and has I channels, `y`
        the same with O.
      to_layout: brings `[B, H, W, C]` into the layout, which is the same by default.
      from_layout: brings what is in the layout back to `[B, H, W, C]`.
      position_axes: the axes of one position in the layout: its rows, columns and channels.
      per_channel: shapes one number a channel, `[C]`, to be added to what is in the layout.
      restore: `(Kernel, board_shape) -> kernel [k, k, I, O]`, back from what `arrange` made; None
        where that is not needed.
    """

    arrange: Callable[[jax.Array, tuple[int, int]], Kernel]
    apply: Callable[[jax.Array, Kernel], jax.Array]
    to_layout: Callable[[jax.Array], jax.Array] = lambda x: x
    from_layout: Callable[[jax.Array], jax.Array] = lambda x: x
    position_axes: tuple[int, ...] = (-3, -2, -1)
    per_channel: Callable[[jax.Array], jax.Array] = lambda x: x[None, None, None]
    restore: Callable[[Kernel, tuple[int, int]], jax.Array] | None = None


def choose_form(board_shape: tuple[int, int], dtype: Any, platform: str) -> Form:
    """Returns the fastest form measured for a board on CPUs; elsewhere dense or XLA's own.

    Some add numbers up before they are multiplied, so they are for float32 alone.
    """
    is_small = math.prod(board_shape) <= _DENSE_CELLS
    if dtype == jnp.float32 and platform == "cpu":
        if board_shape == (3, 3):
            return FORMS["fourier"]
        if not is_small:
            return FORMS["winograd"]
    return FORMS["dense" if is_small else "xla"]


def _arrange_plain(kernel: jax.Array, board_shape: tuple[int, int]) -> Kernel:
    """A kernel of 3x3 as it is, and one of 1x1 as a matrix `[I, O]`."""
    return kernel.reshape(kernel.shape[2:]) if kernel.shape[0] == 1 else kernel


def _apply_plain(x: jax.Array, kernel: Kernel) -> jax.Array:
    """XLA's own convolution; of 1x1, a product."""
    if kernel.ndim == 2:
        return x @ kernel
    dimensions = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dimensions)


def _arrange_dense(kernel: jax.Array, board_shape: tuple[int, int]) -> Kernel:
    """A kernel of 3x3 as one matrix from board to board, and one of 1x1 as `[I, O]`."""
    size, _, inputs, outputs = kernel.shape
    if size == 1:
        return kernel.reshape(inputs, outputs)
    padded = jnp.pad(kernel.reshape(9, inputs, outputs), ((0, 1), (0, 0), (0, 0)))
    matrix = padded[_taps(board_shape)]  # [cell in, cell out, I, O]
    return matrix.transpose(0, 2, 1, 3).reshape(len(matrix) * inputs, -1)


def _apply_dense(x: jax.Array, kernel: Kernel) -> jax.Array:
    """One product over the whole board, or, of 1x1, over the channels."""
    if kernel.shape[0] == x.shape[-1]:
        return x @ kernel
    batch, height, width, _ = x.shape
    return (x.reshape(batch, -1) @ kernel).reshape(batch, height, width, -1)


def _taps(board_shape: tuple[int, int]) -> np.ndarray:
    """Which of the 9 taps links an input cell to an output cell, `[HW, HW]`; 9 where none does."""
    rows, columns = (axis.ravel() for axis in np.indices(board_shape))
    down = rows[:, None] - rows[None, :] + 1
    right = columns[:, None] - columns[None, :] + 1
    near = (down >= 0) & (down < 3) & (right >= 0) & (right < 3)
    return np.where(near, 3 * down + right, 9)


FORMS = {
    "fourier": Form(
        fourier.arrange,
        fourier.apply,
        to_layout=lambda x: jnp.moveaxis(x, 0, -1),  # [H, W, C, B]
        from_layout=lambda x: jnp.moveaxis(x, -1, 0),
        position_axes=(-4, -3, -2),
        per_channel=lambda x: x[None, None, :, None],
    ),
    "dense": Form(_arrange_dense, _apply_dense),
    "winograd": Form(
        winograd.arrange,
        winograd.apply,
        to_layout=lambda x: jnp.moveaxis(x, 0, 2),  # [H, W, B, C]
        from_layout=lambda x: jnp.moveaxis(x, 2, 0),
        position_axes=(-4, -3, -1),
        restore=winograd.restore,
    ),
    "xla": Form(
        _arrange_plain,
        _apply_plain,
        restore=lambda kernel, _: kernel if kernel.ndim == 4 else kernel[None, None],
    ),
}
