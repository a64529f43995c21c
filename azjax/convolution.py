"""Convolutions with 3x3 kernels on small boards, in several forms of the same arithmetic.

Library convolutions are made for large pictures. A board of 3 by 3 cells has 49 pairs of cells
that a 3x3 kernel links: as one dense product it costs 81 products of channels by channels, as
a product of spectra 28, since zero padding and the length 4 of the transform leave room for
each other.
"""

import functools
import operator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

Form = Literal["auto", "fourier", "dense", "gather", "xla"]
Kernel = Any  # What `arrange` returns.

_DENSE_CELLS = 16  # Up to this many cells, one dense product beats gathering and XLA's own form.


def choose_form(form: Form, board_shape: tuple[int, int]) -> Form:
    """Returns the form that `auto` stands for, or the form given.

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
    if board_shape == (3, 3) and jax.default_backend() == "cpu":
        return "fourier"
    return "dense" if board_shape[0] * board_shape[1] <= _DENSE_CELLS else "xla"


def to_layout(form: Form, x: jax.Array) -> jax.Array:
    """Brings `[B, H, W, C]` into the form's layout, which is `[H, W, B, C]` for `fourier`."""
    return jnp.moveaxis(x, 0, 2) if form == "fourier" else x


def from_layout(form: Form, x: jax.Array) -> jax.Array:
    """Brings what is in the form's layout back to `[B, H, W, C]`."""
    return jnp.moveaxis(x, 2, 0) if form == "fourier" else x


def position_axes(form: Form) -> tuple[int, int, int]:
    """The axes of one position in the form's layout: its cells and channels."""
    return (-4, -3, -1) if form == "fourier" else (-3, -2, -1)


def arrange(form: Form, kernel: jax.Array, board_shape: tuple[int, int]) -> Kernel:
    """Turns a kernel `[k, k, I, O]`, k being 1 or 3, into what `convolve` multiplies by."""
    size, _, inputs, outputs = kernel.shape
    if size == 1:
        return kernel.reshape(inputs, outputs)
    if form == "xla":
        return kernel
    if form == "fourier":
        return _spectrum(kernel)
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
    if isinstance(kernel, tuple):
        return _multiply_spectra(x, *kernel)
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
# transform of length 4 has the factors 1, -1, i and -i alone, so it is exact and only adds.


def _transforms() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The transform of a 4x4 field in real numbers.

    Four frequencies are real. The other twelve come in conjugate pairs, of which one is kept,
    as its real and its imaginary part.

    Returns:
      `[16, 9]`, spectrum of a board in the corner of the field; `[9, 16]`, the wanted cells
      from a spectrum; `[16, 9]`, spectrum of a kernel, divided by the size of the field.
    """
    field = np.arange(16).reshape(4, 4)
    wave = np.exp(-2j * np.pi * np.outer(np.arange(4), np.arange(4)) / 4)
    waves = np.kron(wave, wave)  # [frequency, cell of the field]
    mirrored = field[-np.arange(4) % 4][:, -np.arange(4) % 4].ravel()
    real = [f for f in range(16) if mirrored[f] == f]
    kept = [f for f in range(16) if mirrored[f] > f]
    board, wanted = field[:3, :3].ravel(), field[1:, 1:].ravel()
    turned = board[::-1]  # A convolutional layer correlates.
    forward = [waves[real].real, *(part for f in kept for part in (waves[f].real, waves[f].imag))]
    back = [waves[real].real]
    back += [part for f in kept for part in (2 * waves[f].real, 2 * waves[f].imag)]
    forward, back = np.vstack(forward), np.vstack(back)
    return forward[:, board], back[:, wanted].T, forward[:, turned] / 16


_TO_SPECTRUM, _TO_BOARD, _KERNEL_TO_SPECTRUM = (np.rint(16 * t) / 16 for t in _transforms())


def _spectrum(kernel: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Transforms a kernel `[3, 3, I, O]`.

    Returns:
      `[4, I, O]` for the real frequencies, and `[6, 2 I, 2 O]` for the pairs: complex
      multiplication as a matrix of four blocks.
    """
    flat = kernel.reshape(9, *kernel.shape[2:])
    spectrum = jnp.einsum("fc,cio->fio", _KERNEL_TO_SPECTRUM.astype(np.float32), flat)
    real, imaginary = spectrum[4::2], spectrum[5::2]
    upper = jnp.concatenate([real, imaginary], axis=-1)
    lower = jnp.concatenate([-imaginary, real], axis=-1)
    return spectrum[:4], jnp.concatenate([upper, lower], axis=-2)


def _multiply_spectra(x: jax.Array, real: jax.Array, pairs: jax.Array) -> jax.Array:
    """Convolves boards `[3, 3, B, I]` with a transformed kernel; returns `[3, 3, B, O]`."""
    cells = [x[i, j] for i in range(3) for j in range(3)]
    spectrum = _add_up(_TO_SPECTRUM, cells)
    product = [spectrum[f] @ real[f] for f in range(4)]
    for f in range(6):
        pair = jnp.concatenate(spectrum[4 + 2 * f : 6 + 2 * f], axis=-1) @ pairs[f]
        product += jnp.split(pair, 2, axis=-1)
    return jnp.stack(_add_up(_TO_BOARD, product)).reshape(3, 3, *product[0].shape)


def _add_up(matrix: np.ndarray, terms: list[jax.Array]) -> list[jax.Array]:
    """Multiplies a matrix of small whole numbers and a list of arrays, by additions."""
    sums = []
    for row in matrix.tolist():
        factors = [(factor, term) for factor, term in zip(row, terms, strict=True) if factor]
        parts = [term if factor == 1 else factor * term for factor, term in factors]
        sums.append(functools.reduce(operator.add, parts))
    return sums
