"""An MLP in Flax."""

import dataclasses
import functools
from typing import Annotated, Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax._settings import Range, check
from azjax.games.base import Game
from azjax.networks import equivariant
from azjax.networks.base import DEEPEST, WIDEST, DType, Network, Plain
from azjax.networks.modules import from_settings


@dataclasses.dataclass(frozen=True)
class MLPConfig:
    """An MLP: fully connected layers."""

    kind: Literal["mlp"] = "mlp"
    """Network. `resnet`: residual blocks (AlphaZero); `mlp`: fully connected layers. For the
    settings of the other kind: --network.kind resnet --help."""
    encoding: str = "relative"
    """Input planes. `absolute`: X, O and side to move; `relative`: the mover's stones and
    the opponent's. AlphaZero: relative, with history."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the shared layers."""
    head_hidden: Annotated[int, Range(1, WIDEST)] = 64
    """Width of the hidden layer in each head."""
    evaluation_dtype: DType = "float32"
    """Arithmetic of evaluations in the search. `bfloat16`: less exact, faster on hardware that
    supports it; `auto`: bfloat16 on such hardware."""
    learning_dtype: DType = "float32"
    """Arithmetic of the layers in training; parameters and losses are float32."""
    symmetric: bool = False
    """Share weights among the game's symmetries: symmetric copies of a position get symmetric
    outputs. Needs 1/2 to 1/4 of the multiplications."""

    def __post_init__(self):
        check("network", self)
        widths = self.hidden
        if not 1 <= len(widths) <= DEEPEST or not 1 <= min(widths) <= max(widths) <= WIDEST:
            raise ValueError(
                f"network.hidden is {widths}: use 1 to {DEEPEST} widths, each 1 to {WIDEST}"
            )


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
        x = planes.reshape(planes.shape[0], -1)
        for width in self.hidden:
            x = nn.relu(dense(width)(x))
        policy = nn.relu(dense(self.head_hidden, name="policy_hidden")(x))
        value = nn.relu(dense(self.head_hidden, name="value_hidden")(x))
        logits = dense(self.num_actions, name="policy")(policy).astype(jnp.float32)
        value = dense(1, name="value")(value)[:, 0].astype(jnp.float32)
        return logits, jnp.tanh(value)


def make(config: MLPConfig, game: Game, platform: str) -> Network:
    """Builds the MLP for a game."""
    plain = functools.partial(Plain, "mlp", len(config.hidden), False)
    if config.symmetric and game.num_symmetries > 1:
        layers = tuple((f"Dense_{i}", width) for i, width in enumerate(config.hidden))
        return equivariant.make(config, game, platform, layers, _trunk, plain)

    def module(dtype):
        return MLP(config.hidden, config.head_hidden, game.num_actions, dtype)

    return from_settings(
        config,
        game,
        platform,
        module,
        fold=dict,
        infer=lambda dtype: module(dtype).apply,
        plain=lambda folded: plain(folded["params"]),
    )


def _trunk(config: MLPConfig, layer: equivariant.Apply, x: Any) -> Any:
    for i in range(len(config.hidden)):
        x = jax.tree.map(nn.relu, layer(f"Dense_{i}", x))
    return x
