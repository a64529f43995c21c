"""Convolutions with 3x3 kernels on small boards.

Library convolutions are made for large pictures. A 3x3 kernel on a 3x3 board takes 49 products with
channel matrices, but only 25 in the form of Winograd (1980; for networks: Lavin and Gray 2016).

In one dimension, take `n` cells and the 3 taps of a kernel, in reverse order, as the coefficients
of two polynomials. The outputs are coefficients of their product, which is determined by its values
at `n + 2` points, the last of which is infinity; each value takes one multiplication. The code uses
the transpose of this algorithm. On a board, the points are pairs, for its rows and its columns.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from azjax.networks.resnet import ResNet

_LONGEST_LINE = 5  # On larger boards, Winograd's form is not always faster than XLA's.
_POINTS = (0, 1, -1, 2, -2, 0.5)  # Powers of larger numbers would round more.


def is_faster(board_shape: tuple[int, int], dtype: Any, platform: str) -> bool:
    """Returns whether Winograd's form was faster than XLA's convolution in measurements on CPUs.

    It is used only for float32: it adds inputs before it multiplies, which is inexact in bfloat16.
    """
    return max(board_shape) <= _LONGEST_LINE and dtype == jnp.float32 and platform == "cpu"


class WinogradConv(nn.Module):
    """`nn.Conv` with zero padding for inputs `[H, W, I, B]`; its kernels are 3x3 or 1x1.

    With the batch first, as in `nn.Conv`, training took 38% more time.
    """

    features: int
    kernel_size: tuple[int, int]
    use_bias: bool = True
    kernel_init: Any = nn.initializers.lecun_normal()
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x):
        """Returns `[H, W, O, B]`."""
        shape = (*self.kernel_size, x.shape[2], self.features)
        kernel = self.param("kernel", self.kernel_init, shape, jnp.float32)
        taps = self.get_variable("params", "taps")  # Those that `add_taps` has made, or None.
        y = convolve(x, kernel, taps)
        if not self.use_bias:
            return y
        bias = self.param("bias", nn.initializers.zeros, (self.features,), jnp.float32)
        return y + bias[None, None, :, None]


class WinogradResNet(ResNet):
    """A `ResNet` of convolutions in Winograd's form, between which the batch is the last axis."""

    make_conv = staticmethod(WinogradConv)
    channels = -2

    def read(self, planes: jax.Array) -> jax.Array:
        """Moves the batch to the end."""
        return jnp.moveaxis(planes, 0, -1)

    def flatten(self, x: jax.Array) -> jax.Array:
        """Returns `[B, N]`."""
        return super().flatten(jnp.moveaxis(x, -1, 0))


def convolve(x: jax.Array, kernel: jax.Array, taps: jax.Array | None = None) -> jax.Array:
    """Convolves `[H, W, I, B]` with a kernel `[k, k, I, O]`; returns `[H, W, O, B]`."""
    height, width, inputs, batch = x.shape
    flat = x.reshape(height * width, inputs, batch)
    if len(kernel) == 1:
        kernel = kernel.reshape(1, inputs, -1).transpose(0, 2, 1)
        y = jnp.broadcast_to(kernel, (len(flat), *kernel.shape[1:])) @ flat
    else:
        cells, _, back = map(jnp.asarray, _transforms((height, width)))
        taps = make_taps(kernel, (height, width)) if taps is None else taps
        points = (cells @ flat.reshape(len(flat), -1)).reshape(-1, inputs, batch)
        y = back @ (taps @ points).reshape(len(taps), -1)
    return y.reshape(height, width, -1, batch)


def make_taps(kernel: jax.Array, board_shape: tuple[int, ...]) -> jax.Array:
    """Transforms a kernel `[3, 3, I, O]` to `[p, O, I]`."""
    taps = jnp.asarray(_transforms(board_shape)[1])
    return jnp.einsum("pt,tio->poi", taps, kernel.reshape(-1, *kernel.shape[2:]))


def add_taps(layers: dict[str, Any], board_shape: tuple[int, int]) -> dict[str, Any]:
    """Adds the transformed kernels to the weights of 3x3 convolutions, `LAYER: {kernel, ...}`."""
    layers = dict(layers)
    for name, weights in layers.items():
        if weights["kernel"].ndim == 4 and len(weights["kernel"]) == 3:
            layers[name] = weights | {"taps": make_taps(weights["kernel"], board_shape)}
    return layers


def _line(length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the matrices of `_transforms` for one line."""

    def evaluate(terms: int) -> np.ndarray:
        finite = np.vander(_POINTS[: length + 1], terms, increasing=True)
        return np.vstack([finite, np.arange(terms) == terms - 1])

    # The transpose of the polynomial product: from `length + 2` cells to `length` outputs.
    cells = np.linalg.inv(evaluate(length + 2)).T
    # The largest factor of a cell becomes 1 at each point, and the taps make up for it.
    largest = abs(cells).max(axis=1, keepdims=True)
    # The first and the last of the cells lie outside the board.
    return (cells / largest)[:, 1:-1], evaluate(3) * largest, evaluate(length).T


def _transforms(board_shape: tuple[int, ...]) -> list[np.ndarray]:
    """Returns float32 matrices for `n` cells and `p` points: `cells [p, n]`, `taps [p, 9]`, `back`.

    Outputs are `back [n, p]` times the product of transformed cells and taps.
    """
    rows, columns = map(_line, board_shape)
    return [np.kron(*pair).astype(np.float32) for pair in zip(rows, columns, strict=True)]
