"""Policy-value networks in Flax, and the form of their parameters that the search uses.

Two kinds: the residual tower of AlphaGo Zero (Silver et al. 2017, Methods, "Neural network
architecture") and a plain multilayer perceptron. Training works on Flax variables; before
each search `Network.fold` turns them, once, into the arrays that inference needs: BatchNorm
disappears into the convolutions, and a 3x3 convolution becomes one matrix product over the
whole board where the board is small enough for that to be the fastest form.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from azjax.game import Encoding, Game
from azjax.settings import check_choices, check_range

Variables = Any  # Flax variables: {"params": ..., "batch_stats": ...}.
Folded = Any  # The inference form of the variables.
Convolution = Literal["auto", "dense", "gather", "xla"]

_DENSE_CELLS = 16  # Up to this many cells, one dense product beats the other forms.


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """Which network, and how large."""

    kind: Literal["tower", "mlp"] = "tower"
    """`tower`: residual convolutions (the papers); `mlp`: fully connected layers."""
    encoding: Encoding = "relative"
    """Input planes. `absolute`: X, O and side to move; `relative`: the mover's stones and
    the opponent's. AlphaZero: relative, with history."""
    channels: int = 64
    """Tower: channels of each convolution. AlphaZero: 256."""
    blocks: int = 2
    """Tower: residual blocks. AlphaZero: 19."""
    norm: Literal["batch", "layer", "none"] = "batch"
    """Tower: normalisation after each convolution. AlphaZero: batch."""
    value_hidden: int = 64
    """Tower: width of the value head's hidden layer. AlphaZero: 256."""
    hidden: tuple[int, ...] = (128, 128, 64)
    """MLP: widths of the shared layers."""
    head_hidden: int = 32
    """MLP: width of the hidden layer in each head."""
    convolution: Convolution = "auto"
    """Tower: how 3x3 convolutions are computed. `dense`: one product over the whole board;
    `gather`: nine-cell patches times a matrix; `xla`: XLA's convolution; `auto`: dense up
    to 16 cells, XLA's beyond."""

    def __post_init__(self):
        check_choices("network", self)
        check_range("network", self, "channels value_hidden head_hidden", 1)
        check_range("network", self, "blocks", 0)
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"network.hidden is {self.hidden}: use one or more widths >= 1")


class Network(NamedTuple):
    """A policy-value network as pure functions.

    Attributes:
      init: `key -> variables`.
      apply: `(variables, planes [B, H, W, C], train) -> (logits [B, A], value [B],
        batch_stats)`; values are tanh outputs for the player to move. With `train` set,
        normalisation uses the batch and the returned `batch_stats` are the updated ones.
      fold: `variables -> folded`, the inference form.
      infer: `(folded, planes) -> (logits [B, A], value [B])`, equal to `apply` without
        `train`.
    """

    init: Callable[[jax.Array], Variables]
    apply: Callable[[Variables, jax.Array, bool], tuple[jax.Array, jax.Array, Any]]
    fold: Callable[[Variables], Folded]
    infer: Callable[[Folded, jax.Array], tuple[jax.Array, jax.Array]]


def make_network(config: NetworkConfig, game: Game, axis_name: str | None = None) -> Network:
    """Builds the network for a game.

    Args:
      config: kind and sizes.
      game: gives the planes' shape and the number of actions.
      axis_name: the mesh axis over which BatchNorm statistics are averaged in training.
    """
    planes = jax.eval_shape(lambda: game.observe(game.init(), config.encoding))
    if config.kind == "mlp":
        module: Any = MLP(config.hidden, config.head_hidden, game.num_actions)
        fold, infer = _keep, module.apply
    else:
        form = _choose_form(config.convolution, game.board_shape)
        module = Tower(config, game.num_actions, form, axis_name)
        fold = functools.partial(_fold_tower, config, game.board_shape, form)
        infer = functools.partial(_infer_tower, form)

    def init(key):
        return module.init(key, jnp.zeros((1, *planes.shape), planes.dtype))

    def apply(variables, x, train):
        if not train:
            logits, value = module.apply(variables, x)
            return logits, value, variables.get("batch_stats", {})
        (logits, value), updated = module.apply(variables, x, train=True, mutable=["batch_stats"])
        return logits, value, updated.get("batch_stats", {})

    return Network(init, apply, fold, infer)


def _keep(variables: Variables) -> Folded:
    """The MLP's variables are their own inference form."""
    return variables


class MLP(nn.Module):
    """Shared layers with ReLU, then one hidden layer in each head."""

    hidden: tuple[int, ...]
    head_hidden: int
    num_actions: int

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        x = planes.reshape(len(planes), -1).astype(jnp.float32)
        for width in self.hidden:
            x = nn.relu(nn.Dense(width)(x))
        policy = nn.relu(nn.Dense(self.head_hidden, name="policy_hidden")(x))
        value = nn.relu(nn.Dense(self.head_hidden, name="value_hidden")(x))
        logits = nn.Dense(self.num_actions, name="policy")(policy)
        return logits, jnp.tanh(nn.Dense(1, name="value")(value)[:, 0])


class Tower(nn.Module):
    """Stem, residual blocks, and the two heads of the AlphaGo Zero paper."""

    config: NetworkConfig
    num_actions: int
    form: Convolution
    axis_name: str | None = None

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        channels = self.config.channels

        def layer(x, name, features=channels, size=3):
            use_bias = self.config.norm == "none"
            x = BoardConv(features, size, use_bias, self.form, name=name)(x)
            return self._norm(x, f"{name}_norm", train)

        x = nn.relu(layer(planes.astype(jnp.float32), "stem"))
        for i in range(self.config.blocks):
            y = nn.relu(layer(x, f"block{i}_a"))
            x = nn.relu(x + layer(y, f"block{i}_b"))
        policy = nn.relu(layer(x, "policy_conv", features=2, size=1))
        value = nn.relu(layer(x, "value_conv", features=1, size=1))
        logits = nn.Dense(self.num_actions, name="policy")(policy.reshape(len(x), -1))
        hidden = nn.Dense(self.config.value_hidden, name="value_hidden")
        value = nn.relu(hidden(value.reshape(len(x), -1)))
        return logits, jnp.tanh(nn.Dense(1, name="value")(value)[:, 0])

    def _norm(self, x, name, train):
        if self.config.norm == "batch":
            axis = self.axis_name if train else None
            return nn.BatchNorm(not train, momentum=0.9, axis_name=axis, name=name)(x)
        return _layer_norm(name)(x) if self.config.norm == "layer" else x


def _layer_norm(name=None) -> Any:
    """Normalisation over the whole board and all channels of one position."""
    return nn.LayerNorm(reduction_axes=(-3, -2, -1), name=name)


class BoardConv(nn.Module):
    """A 1x1 or 3x3 convolution with zero padding, computed in the chosen form."""

    features: int
    size: int
    use_bias: bool
    form: Convolution

    @nn.compact
    def __call__(self, x):
        """Convolves `x [B, H, W, I]`; returns `[B, H, W, features]`."""
        shape = (self.size, self.size, x.shape[-1], self.features)
        kernel = self.param("kernel", nn.initializers.he_normal(), shape)
        y = _convolve(self.form, x, _arrange_kernel(self.form, kernel, x.shape[1:3]))
        return y + self.param("bias", nn.initializers.zeros, shape[-1:]) if self.use_bias else y


def _choose_form(convolution: Convolution, board_shape: tuple[int, int]) -> Convolution:
    if convolution != "auto":
        return convolution
    return "dense" if board_shape[0] * board_shape[1] <= _DENSE_CELLS else "xla"


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


def _arrange_kernel(form: Convolution, kernel: jax.Array, board_shape: tuple[int, int]):
    """Turns a kernel `[k, k, I, O]` into the array that `_convolve` multiplies by."""
    size, _, inputs, outputs = kernel.shape
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


def _convolve(form: Convolution, x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolves `x [B, H, W, I]` with an arranged kernel; returns `[B, H, W, O]`."""
    batch, height, width, _ = x.shape
    if kernel.ndim == 4:
        dimensions = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dimensions)
    if kernel.shape[0] == x.shape[-1]:  # 1x1
        return x @ kernel
    if form == "gather":
        cells = jnp.pad(x.reshape(batch, height * width, -1), ((0, 0), (0, 1), (0, 0)))
        return (cells[:, _neighbours((height, width))].reshape(batch, height, width, -1)) @ kernel
    return (x.reshape(batch, -1) @ kernel).reshape(batch, height, width, -1)


def _neighbours(board_shape: tuple[int, int]) -> np.ndarray:
    """The nine cells around each cell, `int [HW, 9]`; `HW` stands for off the board."""
    taps, cells = _taps(board_shape), board_shape[0] * board_shape[1]
    around = np.full((cells, 9), cells)
    source, target = np.nonzero(taps < 9)
    around[target, taps[source, target]] = source
    return around


def _fold_tower(config: NetworkConfig, board_shape, form: Convolution, variables: Variables):
    """Folds BatchNorm into the convolutions and arranges the kernels, once per search."""
    params = variables["params"]

    def fold(name):
        kernel, norm = params[name]["kernel"], params.get(f"{name}_norm", {})
        bias = params[name].get("bias", jnp.zeros(kernel.shape[-1]))
        if config.norm == "batch":
            stats = variables["batch_stats"][f"{name}_norm"]
            scale = norm["scale"] * jax.lax.rsqrt(stats["var"] + 1e-5)
            kernel, bias, norm = kernel * scale, norm["bias"] - stats["mean"] * scale, {}
        return {"kernel": _arrange_kernel(form, kernel, board_shape), "bias": bias, "norm": norm}

    blocks = [(fold(f"block{i}_a"), fold(f"block{i}_b")) for i in range(config.blocks)]
    convolutions = {name: fold(name) for name in ("stem", "policy_conv", "value_conv")}
    dense = {name: params[name] for name in ("policy", "value_hidden", "value")}
    return {"blocks": blocks, **convolutions, **dense}


def _infer_tower(form: Convolution, folded: Folded, planes: jax.Array):
    """The tower's forward pass on folded parameters."""

    def layer(x, weights):
        x = _convolve(form, x, weights["kernel"]) + weights["bias"]
        return _layer_norm().apply({"params": weights["norm"]}, x) if weights["norm"] else x

    def dense(x, weights):
        return x @ weights["kernel"] + weights["bias"]

    x = nn.relu(layer(planes.astype(jnp.float32), folded["stem"]))
    for first, second in folded["blocks"]:
        x = nn.relu(x + layer(nn.relu(layer(x, first)), second))
    policy = nn.relu(layer(x, folded["policy_conv"])).reshape(len(x), -1)
    value = nn.relu(layer(x, folded["value_conv"])).reshape(len(x), -1)
    value = dense(nn.relu(dense(value, folded["value_hidden"])), folded["value"])
    return dense(policy, folded["policy"]), jnp.tanh(value[:, 0])
