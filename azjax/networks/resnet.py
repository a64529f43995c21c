"""The residual tower of AlphaGo Zero in Flax."""

import dataclasses
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax.networks.base import DEEPEST, WIDEST, DType, Folded, Variables
from azjax.networks.convolution import Form
from azjax.settings import check_range, check_types

DENSE = ("policy", "value_hidden", "value")  # The tower's layers after its convolutions.


@dataclasses.dataclass(frozen=True)
class TowerConfig:
    """A residual tower of convolutions with BatchNorm, as in the papers."""

    kind: Literal["tower"] = "tower"
    """Which network. `tower`: residual convolutions (the papers); `mlp`: fully connected
    layers. Settings of the other one: --network.kind mlp --help."""
    encoding: str = "relative"
    """Input planes. `absolute`: X, O and side to move; `relative`: the mover's stones and
    the opponent's. AlphaZero: relative, with history."""
    channels: int = 64
    """Channels of each convolution. AlphaZero: 256."""
    blocks: int = 2
    """Residual blocks. AlphaZero: 19."""
    value_hidden: int = 64
    """Width of the value head's hidden layer. AlphaZero: 256."""
    evaluation_dtype: DType = "float32"
    """Arithmetic of the search's evaluations; learning is in float32. `bfloat16`: less exact,
    and faster where the hardware has it; `auto`: there."""

    def __post_init__(self):
        check_types("network", self)
        check_range("network", self, "channels value_hidden", 1, WIDEST)
        check_range("network", self, "blocks", 0, DEEPEST)


class Tower(nn.Module):
    """Stem, residual blocks and two heads (Silver et al. 2017, Methods, "Neural network")."""

    channels: int
    blocks: int
    value_hidden: int
    num_actions: int
    form: Form
    axis_name: str | None = None

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        heads = {"policy_conv": 2, "value_conv": 1}
        widths = dict(zip(DENSE, (self.num_actions, self.value_hidden, 1), strict=True))

        def layer(name, x):
            features, size = heads.get(name, self.channels), 1 if name in heads else 3
            x = BoardConv(features, size, self.form, name=name)(x)
            axis = self.axis_name if train else None
            look = {"momentum": 0.9, "axis_name": axis, "name": f"{name}_norm"}
            return nn.BatchNorm(not train, self.form.position_axes[-1], **look)(x)

        def dense(name, x):
            return nn.Dense(widths[name], name=name)(x)

        return _tower(self.form, self.blocks, planes.astype(jnp.float32), layer, dense)


def _tower(form: Form, blocks: int, planes, layer, dense) -> tuple[jax.Array, jax.Array]:
    """The tower's forward pass; `layer` and `dense` are functions of a name and an input."""

    def head(name):
        x = form.from_layout(nn.relu(layer(name, trunk)))
        return x.reshape(len(x), -1)

    trunk = nn.relu(layer("stem", form.to_layout(planes)))
    for i in range(blocks):
        inner = nn.relu(layer(f"block{i}_a", trunk))
        trunk = nn.relu(trunk + layer(f"block{i}_b", inner))
    logits = dense("policy", head("policy_conv")).astype(jnp.float32)
    value = dense("value", nn.relu(dense("value_hidden", head("value_conv"))))
    return logits, jnp.tanh(value[:, 0].astype(jnp.float32))


class BoardConv(nn.Module):
    """A 1x1 or 3x3 convolution with zero padding, computed in the chosen form."""

    features: int
    size: int
    form: Form

    @nn.compact
    def __call__(self, x):
        """Convolves `x` in the form's layout, with I channels; returns `features` channels."""
        height, width, inputs = (x.shape[axis] for axis in self.form.position_axes)
        shape = (self.size, self.size, inputs, self.features)
        kernel = self.param("kernel", nn.initializers.he_normal(), shape, jnp.float32)
        return self.form.apply(x, self.form.arrange(kernel, (height, width)))


def fold_tower(form: Form, board_shape: tuple[int, int], variables: Variables) -> Folded:
    """Folds BatchNorm into the convolutions and arranges the kernels, once per search."""
    params = variables["params"]

    def fold(name):
        norm, stats = params[f"{name}_norm"], variables["batch_stats"][f"{name}_norm"]
        scale = norm["scale"] * jax.lax.rsqrt(stats["var"] + 1e-5)
        kernel = form.arrange(params[name]["kernel"] * scale[None, None, None], board_shape)
        return {"kernel": kernel, "bias": norm["bias"] - stats["mean"] * scale}

    names = (name for name in params if not name.endswith("_norm"))
    return {name: params[name] if name in DENSE else fold(name) for name in names}


def infer_tower(
    form: Form, blocks: int, folded: Folded, planes: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The tower's forward pass on folded parameters, with the same results."""

    def layer(name, x):
        weights = folded[name]
        return form.apply(x, weights["kernel"]) + form.per_channel(weights["bias"])

    def dense(name, x):
        return x @ folded[name]["kernel"] + folded[name]["bias"][None]

    return _tower(form, blocks, planes.astype(folded["stem"]["bias"].dtype), layer, dense)
