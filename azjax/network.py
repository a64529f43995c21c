"""Policy-value networks in Flax, and the form of their parameters that the search uses.

Two kinds: the residual tower of AlphaGo Zero (Silver et al. 2017, Methods, "Neural network
architecture") and a plain multilayer perceptron. Training works on Flax variables; before
each search `Network.fold` turns them, once, into the arrays that inference needs: BatchNorm
disappears into the convolutions, and these become the matrix products that are fastest for the
board (see `convolution.py`).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax.convolution import (
    Form,
    arrange,
    choose_form,
    convolve,
    from_layout,
    per_channel,
    position_axes,
    to_layout,
)
from azjax.game import Encoding, Game
from azjax.settings import check_range, check_types

Variables = Any  # Flax variables: {"params": ..., "batch_stats": ...}.
Folded = Any  # The inference form of the variables.
WIDEST, DEEPEST = 65_536, 100  # Every layer is traced one by one.


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
    evaluation_dtype: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the search's evaluations; learning is in float32. `bfloat16`: less exact,
    and faster where the hardware has it."""
    convolution: Form = "auto"
    """Tower: how 3x3 convolutions are computed. `fourier`: as products of spectra, on boards
    of 3 by 3; `dense`: one product over the whole board; `gather`: nine-cell patches times a
    matrix; `xla`: XLA's convolution; `auto`: the fastest measured for the board."""

    def __post_init__(self):
        check_types("network", self)
        check_range("network", self, "channels value_hidden head_hidden", 1, WIDEST)
        check_range("network", self, "blocks", 0, DEEPEST)
        widths = self.hidden
        if not 1 <= len(widths) <= DEEPEST or not 1 <= min(widths) <= max(widths) <= WIDEST:
            raise ValueError(
                f"network.hidden is {widths}: use 1 to {DEEPEST} widths, each 1 to {WIDEST}"
            )


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
    dtype = jnp.dtype(config.evaluation_dtype)
    if config.kind == "mlp":
        module: Any = MLP(config.hidden, config.head_hidden, game.num_actions)
        rearrange, infer = _keep, module.clone(dtype=dtype).apply
    else:
        form = choose_form(config.convolution, game.board_shape, dtype)
        module = Tower(config, game.num_actions, form, axis_name)
        rearrange = functools.partial(_fold_tower, config, game.board_shape, form)
        infer = functools.partial(_infer_tower, form)

    def init(key):
        return module.init(key, jnp.zeros((1, *planes.shape), planes.dtype))

    def apply(variables, x, train):
        if not train:
            logits, value = module.apply(variables, x)
            return logits, value, variables.get("batch_stats", {})
        (logits, value), updated = module.apply(variables, x, train=True, mutable=["batch_stats"])
        return logits, value, updated.get("batch_stats", {})

    def fold(variables):
        return jax.tree.map(lambda weights: weights.astype(dtype), rearrange(variables))

    return Network(init, apply, jax.jit(fold), infer)


def _keep(variables: Variables) -> Folded:
    """The MLP's variables are their own inference form."""
    return variables


class MLP(nn.Module):
    """Shared layers with ReLU, then one hidden layer in each head."""

    hidden: tuple[int, ...]
    head_hidden: int
    num_actions: int
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        dense = functools.partial(nn.Dense, dtype=self.dtype)
        x = planes.reshape(len(planes), -1)
        for width in self.hidden:
            x = nn.relu(dense(width)(x))
        policy = nn.relu(dense(self.head_hidden, name="policy_hidden")(x))
        value = nn.relu(dense(self.head_hidden, name="value_hidden")(x))
        logits = dense(self.num_actions, name="policy")(policy).astype(jnp.float32)
        value = dense(1, name="value")(value)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)


class Tower(nn.Module):
    """Stem, residual blocks, and the two heads of the AlphaGo Zero paper."""

    config: NetworkConfig
    num_actions: int
    form: Form
    axis_name: str | None = None

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        channels = self.config.channels

        def layer(x, name, features=channels, size=3):
            use_bias = self.config.norm == "none"
            x = BoardConv(features, size, use_bias, self.form, name=name)(x)
            return self._norm(x, f"{name}_norm", train)

        x = to_layout(self.form, planes.astype(jnp.float32))
        x = nn.relu(layer(x, "stem"))
        for i in range(self.config.blocks):
            y = nn.relu(layer(x, f"block{i}_a"))
            x = nn.relu(x + layer(y, f"block{i}_b"))
        policy = nn.relu(layer(x, "policy_conv", features=2, size=1))
        value = nn.relu(layer(x, "value_conv", features=1, size=1))
        policy, value = (_flatten(self.form, head) for head in (policy, value))
        logits = nn.Dense(self.num_actions, name="policy")(policy)
        hidden = nn.Dense(self.config.value_hidden, name="value_hidden")
        value = nn.relu(hidden(value))
        return logits, jnp.tanh(nn.Dense(1, name="value")(value)[:, 0])

    def _norm(self, x, name, train):
        if self.config.norm == "batch":
            axis = self.axis_name if train else None
            channels = position_axes(self.form)[-1]
            norm = nn.BatchNorm(not train, channels, momentum=0.9, axis_name=axis, name=name)
            return norm(x)
        return _layer_norm(self.form, name)(x) if self.config.norm == "layer" else x


def _layer_norm(form: Form, name=None) -> Any:
    """Normalisation over the whole board and all channels of one position."""
    axes = position_axes(form)
    return nn.LayerNorm(reduction_axes=axes, feature_axes=axes[-1], name=name)


def _flatten(form: Form, x: jax.Array) -> jax.Array:
    """Returns `[B, HWC]` for what is in the form's layout."""
    x = from_layout(form, x)
    return x.reshape(len(x), -1)


class BoardConv(nn.Module):
    """A 1x1 or 3x3 convolution with zero padding, computed in the chosen form."""

    features: int
    size: int
    use_bias: bool
    form: Form

    @nn.compact
    def __call__(self, x):
        """Convolves `x` in the form's layout, with I channels; returns `features` channels."""
        *board_shape, inputs = (x.shape[axis] for axis in position_axes(self.form))
        shape = (self.size, self.size, inputs, self.features)
        kernel = self.param("kernel", nn.initializers.he_normal(), shape)
        y = convolve(self.form, x, arrange(self.form, kernel, tuple(board_shape)))
        if not self.use_bias:
            return y
        return y + per_channel(self.form, self.param("bias", nn.initializers.zeros, shape[-1:]))


def _fold_tower(config: NetworkConfig, board_shape, form: Form, variables: Variables):
    """Folds BatchNorm into the convolutions and arranges the kernels, once per search."""
    params = variables["params"]

    def fold(name):
        kernel, norm = params[name]["kernel"], params.get(f"{name}_norm", {})
        bias = params[name].get("bias", jnp.zeros(kernel.shape[-1]))
        if config.norm == "batch":
            stats = variables["batch_stats"][f"{name}_norm"]
            scale = norm["scale"] * jax.lax.rsqrt(stats["var"] + 1e-5)
            kernel, bias, norm = kernel * scale, norm["bias"] - stats["mean"] * scale, {}
        return {"kernel": arrange(form, kernel, board_shape), "bias": bias, "norm": norm}

    blocks = [(fold(f"block{i}_a"), fold(f"block{i}_b")) for i in range(config.blocks)]
    convolutions = {name: fold(name) for name in ("stem", "policy_conv", "value_conv")}
    dense = {name: params[name] for name in ("policy", "value_hidden", "value")}
    return {"blocks": blocks, **convolutions, **dense}


def _infer_tower(form: Form, folded: Folded, planes: jax.Array):
    """The tower's forward pass on folded parameters."""

    def layer(x, weights):
        x = convolve(form, x, weights["kernel"]) + per_channel(form, weights["bias"])
        norm = weights["norm"]
        return _layer_norm(form).apply({"params": norm}, x) if norm else x

    def dense(x, weights):
        return x @ weights["kernel"] + weights["bias"]

    x = to_layout(form, planes.astype(folded["stem"]["bias"].dtype))
    x = nn.relu(layer(x, folded["stem"]))
    for first, second in folded["blocks"]:
        x = nn.relu(x + layer(nn.relu(layer(x, first)), second))
    policy = _flatten(form, nn.relu(layer(x, folded["policy_conv"])))
    value = _flatten(form, nn.relu(layer(x, folded["value_conv"])))
    value = dense(nn.relu(dense(value, folded["value_hidden"])), folded["value"])
    logits = dense(policy, folded["policy"]).astype(jnp.float32)
    return logits, jnp.tanh(value[:, 0].astype(jnp.float32))
