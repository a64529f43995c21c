"""Convolutions with 3x3 kernels on small boards, in several forms of the same arithmetic.

Library convolutions are made for large pictures. On a board of 3 by 3 a 3x3 kernel costs 81
products of channels by channels as one dense matrix, and 28 as a product of spectra. On one of 8
by 8 it costs 576 cell by cell, and 144 in Winograd's form.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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


# A board of 3 by 3 in a cyclic field of 4 by 4. The full product of board and kernel has 5 rows:
# the middle three are wanted, and in 4 cyclic rows only the outer two fall on each other. The
# transform of length 4 has the factors 1, -1, i and -i alone, so it is exact. Of real numbers, 4
# of the 16 frequencies are real, and the other 12 come in conjugate pairs, of which one is kept.
_REAL = ((0, 0), (0, 2), (2, 0), (2, 2))  # Frequencies along rows and columns.
_PAIRS = ((1, 0), (1, 2), (0, 1), (2, 1), (1, 1), (3, 1))


def _transform(places: np.ndarray) -> np.ndarray:
    """The transform from 9 cells of the field to its spectrum in real numbers.

    Returns:
      `float32 [16, 9]`: four real frequencies; real and imaginary parts of the six pairs.
    """
    rows, columns = places // 4, places % 4
    turns = [(row * rows + column * columns) % 4 for row, column in (*_REAL, *_PAIRS)]
    real, imaginary = np.array([1, 0, -1, 0])[turns], np.array([0, -1, 0, 1])[turns]
    pairs = np.stack([real[4:], imaginary[4:]], axis=1).reshape(12, 9)
    return np.concatenate([real[:4], pairs]).astype(np.float32)


_BOARD = np.arange(16).reshape(4, 4)[:3, :3].ravel()
_TO_SPECTRUM = _transform(_BOARD)
# Back it is the transpose, but for a sixteenth, and for the pairs, each of which stands for two:
# kernels carry both factors. What is wanted lies one row and one column further.
_FROM_SPECTRUM = _transform(_BOARD + 5).T
# A convolutional layer correlates, so kernels are turned. A pair multiplies as the matrix
# ((re, -im), (im, re)).
_KERNEL = _transform(_BOARD[::-1]) / 16
_KERNEL_REAL, _RE, _IM = _KERNEL[:4], 2 * _KERNEL[4::2], 2 * _KERNEL[5::2]
_KERNEL_PAIRS = np.stack([np.stack([_RE, -_IM], axis=1), np.stack([_IM, _RE], axis=1)], axis=1)


@jax.jit  # So that layers of one size are traced once.
def _spectrum(kernel: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Transforms a kernel `[3, 3, I, O]`.

    Returns:
      `[4, O, I]` for the real frequencies, and `[6, 2 O, 2 I]` for the pairs: complex
      multiplication as a matrix of four blocks.
    """
    inputs, outputs = kernel.shape[2:]
    flat = kernel.reshape(9, inputs, outputs)
    real = jnp.einsum("fc,cio->foi", _KERNEL_REAL.astype(kernel.dtype), flat)
    pairs = jnp.einsum("fpqc,cio->fpoqi", _KERNEL_PAIRS.astype(kernel.dtype), flat)
    return real, pairs.reshape(6, 2 * outputs, 2 * inputs)


@jax.jit
def _multiply_spectra(x: jax.Array, real: jax.Array, pairs: jax.Array) -> jax.Array:
    """Convolves boards `[3, 3, I, B]` with a transformed kernel; returns `[3, 3, O, B]`.

    Matrix products and nothing else: with the batch last, what one makes is in memory as the
    next one reads it.
    """
    inputs, batch = x.shape[2:]
    cells = x.reshape(9, inputs * batch)
    there, back = jnp.asarray(_TO_SPECTRUM, x.dtype), jnp.asarray(_FROM_SPECTRUM, x.dtype)
    even = real @ (there[:4] @ cells).reshape(4, inputs, batch)
    odd = pairs @ (there[4:] @ cells).reshape(6, 2 * inputs, batch)
    y = back[:, :4] @ even.reshape(4, -1) + back[:, 4:] @ odd.reshape(12, -1)
    return y.reshape(3, 3, -1, batch)


def _arrange_spectrum(kernel: jax.Array, board_shape: tuple[int, int]) -> Kernel:
    """The spectrum of a kernel of 3x3, and one of 1x1 as a matrix `[O, I]`."""
    return _spectrum(kernel) if kernel.shape[0] == 3 else kernel.reshape(kernel.shape[2:]).T


def _apply_spectrum(x: jax.Array, kernel: Kernel) -> jax.Array:
    """One product for each frequency, or, of 1x1, one for each cell."""
    if isinstance(kernel, tuple):
        return _multiply_spectra(x, *kernel)
    return jnp.broadcast_to(kernel, (*x.shape[:2], *kernel.shape)) @ x


# Winograd (1980), for networks Lavin and Gray (2016): boards fall into tiles of up to 6 by 6. Along
# a line, m outputs of 3 taps are the coefficients of a product of polynomials, read backwards,
# which m + 2 points determine, the last one infinity.
_LONGEST_TILE = 6
_POINTS = (0, 1, -1, 2, -2, 0.5, -0.5)


class _Line(NamedTuple):
    """Matrices for lines of `n` cells in `t` tiles, which `s` numbers stand for; all float32.

    Attributes:
      cells: `[s, n]`, for what is convolved.
      taps: `[s, 3]`, for the kernel.
      back: `[n, s]`, for the product of both.
    """

    cells: np.ndarray
    taps: np.ndarray
    back: np.ndarray


@functools.cache
def _line(length: int) -> _Line:
    """The matrices for lines of a length, in as few tiles as possible, all of one size."""
    tiles = -(-length // _LONGEST_TILE)
    size = -(-length // tiles)
    places = size + 2

    def evaluate(terms):
        finite = np.vander(_POINTS[: places - 1], terms, increasing=True)
        return np.vstack([finite, np.arange(terms) == terms - 1])

    inward = np.linalg.inv(evaluate(places)).T  # By transposition of the polynomials' product.
    largest = abs(inward).max(axis=1, keepdims=True)
    # Tiles overlap by two cells, of which the first and the last lie beyond the board.
    cells = np.zeros((tiles, places, tiles * size + 2))
    back = np.zeros((tiles * size, tiles, places))
    for tile in range(tiles):
        first = tile * size
        cells[tile, :, first : first + places] = inward / largest
        back[first : first + size, tile] = evaluate(size).T
    return _Line(
        cells.reshape(tiles * places, -1)[:, 1 : length + 1].astype(np.float32),
        np.tile(evaluate(3) * largest, (tiles, 1)).astype(np.float32),
        back.reshape(tiles * size, -1)[:length].astype(np.float32),
    )


def _arrange_winograd(kernel: jax.Array, board_shape: tuple[int, int]) -> Kernel:
    """A kernel of 3x3 as one matrix `[I, O]` for each pair of numbers, and one of 1x1 as one."""
    if kernel.shape[0] == 1:
        return kernel.reshape(kernel.shape[2:])
    rows, columns = (_line(length).taps for length in board_shape)
    return jnp.einsum("ra,cb,abio->rcio", rows, columns, kernel)


def _apply_winograd(x: jax.Array, kernel: Kernel) -> jax.Array:
    """Convolves boards `[H, W, B, I]`: matrix products and nothing else; `[H, W, B, O]`."""
    if kernel.ndim == 2:
        return x @ kernel
    height, width, batch, inputs = x.shape
    outputs = kernel.shape[-1]
    rows, columns = (jax.tree.map(jnp.asarray, _line(length)) for length in (height, width))
    spread = (rows.cells @ x.reshape(height, -1)).reshape(-1, width, batch * inputs)
    spread = (columns.cells @ spread).reshape(*kernel.shape[:2], batch, inputs)
    product = (spread @ kernel).reshape(len(kernel), -1, batch * outputs)
    product = (columns.back @ product).reshape(len(kernel), -1)
    return (rows.back @ product).reshape(height, width, batch, outputs)


def _restore_winograd(kernel: Kernel, board_shape: tuple[int, int]) -> jax.Array:
    """The kernel that was arranged, but for rounding."""
    if kernel.ndim == 2:
        return kernel[None, None]
    rows, columns = (np.linalg.pinv(_line(length).taps) for length in board_shape)
    return jnp.einsum("ar,bc,rcio->abio", rows, columns, kernel)


FORMS = {
    "fourier": Form(
        _arrange_spectrum,
        _apply_spectrum,
        to_layout=lambda x: jnp.moveaxis(x, 0, -1),  # [H, W, C, B]
        from_layout=lambda x: jnp.moveaxis(x, -1, 0),
        position_axes=(-4, -3, -2),
        per_channel=lambda x: x[None, None, :, None],
    ),
    "dense": Form(_arrange_dense, _apply_dense),
    "winograd": Form(
        _arrange_winograd,
        _apply_winograd,
        to_layout=lambda x: jnp.moveaxis(x, 0, 2),  # [H, W, B, C]
        from_layout=lambda x: jnp.moveaxis(x, 2, 0),
        position_axes=(-4, -3, -1),
        restore=_restore_winograd,
    ),
    "xla": Form(
        _arrange_plain,
        _apply_plain,
        restore=lambda kernel, _: kernel if kernel.ndim == 4 else kernel[None, None],
    ),
}
