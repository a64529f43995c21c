"""Convolutions of boards of 3 by 3 as products of spectra.

The board is in a cyclic field of 4 by 4. The full product of board and kernel has 5 rows: the
middle three are wanted, and in 4 cyclic rows only the outer two fall on each other. The transform
of length 4 has the factors 1, -1, i and -i alone, so it is exact. Of real numbers, 4 of the 16
frequencies are real, and the other 12 come in conjugate pairs, of which one is kept.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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


def arrange(kernel: jax.Array, board_shape: tuple[int, int]) -> Any:
    """The spectrum of a kernel of 3x3, and one of 1x1 as a matrix `[O, I]`."""
    return _spectrum(kernel) if kernel.shape[0] == 3 else kernel.reshape(kernel.shape[2:]).T


def apply(x: jax.Array, kernel: Any) -> jax.Array:
    """Convolves boards `[3, 3, I, B]`: one product for each frequency; of 1x1, for each cell."""
    if isinstance(kernel, tuple):
        return _multiply_spectra(x, *kernel)
    return jnp.broadcast_to(kernel, (*x.shape[:2], *kernel.shape)) @ x
