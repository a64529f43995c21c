"""Convolutions with 3x3 kernels on small boards, in several forms of the same arithmetic.

Library convolutions are made for large pictures. A board of 3 by 3 cells has 49 pairs of cells
that a 3x3 kernel links: as one dense product it costs 81 products of channels by channels, as
a product of spectra 28, since zero padding and the length 4 of the transform leave room for
each other.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

Form = Literal["auto", "fourier", "dense", "gather", "xla"]
Kernel = Any  # What `arrange` returns.

_DENSE_CELLS = 16  # Up to this many cells, one dense product beats gathering and XLA's own form.


def choose_form(form: Form, board_shape: tuple[int, int], dtype=jnp.float32) -> Form:
    """Returns the form that `auto` stands for, or the form given.

    Spectra add numbers up before they are multiplied, so `auto` uses them in float32 alone.

    Raises:
      ValueError: if the form is not for boards of this shape.
    """
    if form == "fourier" and board_shape != (3, 3):
        raise ValueError(
            "network.convolution is 'fourier', which is for boards of 3 by 3, and this one has "
            f"{board_shape[0]} by {board_shape[1]}: use 'auto'"
        )
    if form != "auto":
        return form
    if board_shape == (3, 3) and dtype == jnp.float32 and jax.default_backend() == "cpu":
        return "fourier"
    return "dense" if board_shape[0] * board_shape[1] <= _DENSE_CELLS else "xla"


def to_layout(form: Form, x: jax.Array) -> jax.Array:
    """Brings `[B, H, W, C]` into the form's layout, which is `[H, W, C, B]` for `fourier`."""
    return jnp.moveaxis(x, 0, -1) if form == "fourier" else x


def from_layout(form: Form, x: jax.Array) -> jax.Array:
    """Brings what is in the form's layout back to `[B, H, W, C]`."""
    return jnp.moveaxis(x, -1, 0) if form == "fourier" else x


def position_axes(form: Form) -> tuple[int, int, int]:
    """The axes of one position in the form's layout: its rows, columns and channels."""
    return (-4, -3, -2) if form == "fourier" else (-3, -2, -1)


def per_channel(form: Form, x: jax.Array) -> jax.Array:
    """Shapes one number a channel, `[C]`, to be added to what is in the form's layout."""
    return x[:, None] if form == "fourier" else x


def arrange(form: Form, kernel: jax.Array, board_shape: tuple[int, int]) -> Kernel:
    """Turns a kernel `[k, k, I, O]`, k being 1 or 3, into what `convolve` multiplies by."""
    size, _, inputs, outputs = kernel.shape
    if form == "fourier":
        return _spectrum(kernel) if size == 3 else kernel.reshape(inputs, outputs).T
    if size == 1:
        return kernel.reshape(inputs, outputs)
    if form == "xla":
        return kernel
    flat = kernel.reshape(9, inputs, outputs)
    if form == "gather":
        return flat.reshape(9 * inputs, outputs)
    cells = board_shape[0] * board_shape[1]
    padded = jnp.concatenate([flat, jnp.zeros((1, inputs, outputs), kernel.dtype)])
    matrix = padded[_taps(board_shape)]  # [cell in, cell out, I, O]
    return matrix.transpose(0, 2, 1, 3).reshape(cells * inputs, cells * outputs)


def convolve(form: Form, x: jax.Array, kernel: Kernel) -> jax.Array:
    """Convolves with zero padding.

    Args:
      form: how.
      x: in the form's layout, with I channels.
      kernel: from `arrange`.

    Returns:
      The same with O channels.
    """
    if form == "fourier":
        return _multiply_spectra(x, *kernel) if isinstance(kernel, tuple) else _mix(kernel, x)
    if kernel.ndim == 4:
        dimensions = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dimensions)
    if kernel.shape[0] == x.shape[-1]:  # 1x1
        return x @ kernel
    batch, height, width, _ = x.shape
    if form == "gather":
        cells = jnp.pad(x.reshape(batch, height * width, -1), ((0, 0), (0, 1), (0, 0)))
        return (cells[:, _neighbours((height, width))].reshape(batch, height, width, -1)) @ kernel
    return (x.reshape(batch, -1) @ kernel).reshape(batch, height, width, -1)


def _taps(board_shape: tuple[int, int]) -> np.ndarray:
    """Which of the 9 taps links an input cell to an output cell; 9 where none does.

    Returns:
      `int [HW, HW]`, input cell first.
    """
    rows, columns = (axis.ravel() for axis in np.indices(board_shape))
    down = rows[:, None] - rows[None, :] + 1
    right = columns[:, None] - columns[None, :] + 1
    near = (down >= 0) & (down < 3) & (right >= 0) & (right < 3)
    return np.where(near, 3 * down + right, 9)


def _neighbours(board_shape: tuple[int, int]) -> np.ndarray:
    """The nine cells around each cell, `int [HW, 9]`; `HW` stands for off the board."""
    taps, cells = _taps(board_shape), board_shape[0] * board_shape[1]
    around = np.full((cells, 9), cells)
    source, target = np.nonzero(taps < 9)
    around[target, taps[source, target]] = source
    return around


# A board of 3 by 3 in a cyclic field of 4 by 4. The full product of board and kernel has 5 rows:
# the middle three are wanted, and in 4 cyclic rows only the outer two fall on each other. The
# transform of length 4 has the factors 1, -1, i and -i alone, so it is exact. Of real numbers, 4
# of the 16 frequencies are real, and the other 12 come in conjugate pairs, of which one is kept.

_REAL = ((0, 0), (0, 2), (2, 0), (2, 2))  # Frequencies along rows and columns.
_PAIRS = ((1, 0), (1, 2), (0, 1), (2, 1), (1, 1), (3, 1))


def _transform(places: np.ndarray) -> np.ndarray:
    """The transform from some places of the field to its spectrum in real numbers.

    Args:
      places: `int [9]`, cells of the field, counted row by row.

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


def _mix(kernel: jax.Array, x: jax.Array) -> jax.Array:
    """Convolves boards `[3, 3, I, B]` with a 1x1 kernel `[O, I]`; returns `[3, 3, O, B]`."""
    return jnp.broadcast_to(kernel, (*x.shape[:2], *kernel.shape)) @ x
