"""Winograd's convolutions (1980; for networks Lavin and Gray 2016), for boards of any size.

Boards fall into tiles of up to 6 by 6. Along a line, m outputs of 3 taps are the coefficients of a
product of polynomials, read backwards, which m + 2 points determine, the last one infinity.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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


def arrange(kernel: jax.Array, board_shape: tuple[int, int]) -> Any:
    """A kernel of 3x3 as one matrix `[I, O]` for each pair of numbers, and one of 1x1 as one."""
    if kernel.shape[0] == 1:
        return kernel.reshape(kernel.shape[2:])
    rows, columns = (_line(length).taps for length in board_shape)
    return jnp.einsum("ra,cb,abio->rcio", rows, columns, kernel)


def apply(x: jax.Array, kernel: Any) -> jax.Array:
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


def restore(kernel: Any, board_shape: tuple[int, int]) -> jax.Array:
    """The kernel that was arranged, but for rounding."""
    if kernel.ndim == 2:
        return kernel[None, None]
    rows, columns = (np.linalg.pinv(_line(length).taps) for length in board_shape)
    return jnp.einsum("ar,bc,rcio->abio", rows, columns, kernel)
