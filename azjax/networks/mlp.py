"""An MLP in Flax."""

import dataclasses
import functools
from typing import Any, Literal

import flax.linen as nn
import jax.numpy as jnp

from azjax._settings import check
from azjax.games.base import Game
from azjax.networks.base import DEEPEST, WIDEST, Folded, Network, Plain, SharedConfig
from azjax.networks.modules import casting, wrap


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
    """Shared layers with ReLU, then one hidden layer in each head.

    Subclasses override `dense` and `relu` for units of another form.
    """

    config: MLPConfig
    num_actions: int
    dtype: Any = jnp.float32

    relu = staticmethod(nn.relu)

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        config, dense, relu = self.config, self.dense, self.relu
        x = planes.reshape(planes.shape[0], -1)
        for i, width in enumerate(config.hidden):
            x = relu(dense(f"Dense_{i}", x, width))
        policy = relu(dense("policy_hidden", x, config.head_hidden))
        value = relu(dense("value_hidden", x, config.head_hidden))
        logits = dense("policy", policy, self.num_actions).astype(jnp.float32)
        value = dense("value", value, 1)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)

    def dense(self, name: str, x: Any, features: int) -> Any:
        """Computes a dense layer."""
        return nn.Dense(features, dtype=self.dtype, name=name)(x)


def make(config: MLPConfig, game: Game, dtype: jnp.dtype, learning_dtype: jnp.dtype) -> Network:
    """Makes an MLP without shared weights; see `make_network`."""
    module = functools.partial(MLP, config, game.num_actions)
    network = wrap(game, module(jnp.float32), config.encoding, module(learning_dtype))
    return network._replace(
        fold=casting(network.fold, dtype),
        infer=module(dtype).apply,
        plain=functools.partial(plain, config),
    )


def plain(config: MLPConfig, folded: Folded) -> Plain:
    """Returns folded weights in the form of `Plain`."""
    return Plain("mlp", len(config.hidden), False, folded["params"])
