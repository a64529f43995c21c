"""An MLP in Flax."""

import dataclasses
import functools
from typing import Any, Literal

import flax.linen as nn
import jax.numpy as jnp

from azjax._settings import check
from azjax.networks.base import DEEPEST, WIDEST, Layer, SharedConfig


@dataclasses.dataclass(frozen=True)
class MLPConfig(SharedConfig):
    """An MLP: fully connected layers."""

    kind: Literal["mlp"] = "mlp"
    """Network. `resnet`: residual blocks (AlphaZero); `mlp`: fully connected layers. For the
    settings of the other kind: --network.kind resnet --help."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the shared layers."""

    def __post_init__(self):
        check("network", self)
        widths = self.hidden
        if not 1 <= len(widths) <= DEEPEST or not 1 <= min(widths) <= max(widths) <= WIDEST:
            raise ValueError(
                f"network.hidden is {widths}: use 1 to {DEEPEST} widths, each 1 to {WIDEST}"
            )


class MLP(nn.Module):
    """Shared layers with ReLU, then one hidden layer in each head."""

    config: MLPConfig
    num_actions: int
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        dense = functools.partial(nn.Dense, dtype=self.dtype)
        x = planes.reshape(planes.shape[0], -1)
        for width in self.config.hidden:
            x = nn.relu(dense(width)(x))
        policy = nn.relu(dense(self.config.head_hidden, name="policy_hidden")(x))
        value = nn.relu(dense(self.config.head_hidden, name="value_hidden")(x))
        logits = dense(self.num_actions, name="policy")(policy).astype(jnp.float32)
        value = dense(1, name="value")(value)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)


def list_layers(count: int) -> tuple[Layer, ...]:
    """Lists the layers before the heads."""
    return tuple(Layer(f"Dense_{i}", "hidden" if i else "planes") for i in range(count))
