"""Custom networks: a transformer over the cells, and a residual MLP.

`from_module` makes a network from any Flax module that takes planes `[B, H, W, C]` and returns
`(logits [B, A], value [B])`. On the command line: `--network examples/networks.py:transformer`.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp

import azjax
from azjax.games import Game
from azjax.networks import Network, from_module
from azjax.runs import make_parts, presets
from azjax.training import init, iteration


class Transformer(nn.Module):
    """Attention between cells: one token per cell, with a learned position embedding."""

    num_actions: int
    width: int = 32
    layers: int = 2

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])`."""
        x = nn.Dense(self.width)(planes.reshape(len(planes), -1, planes.shape[-1]) * 1.0)
        x += self.param("place", nn.initializers.normal(0.02), x.shape[1:])
        for _ in range(self.layers):
            x += nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            hidden = nn.relu(nn.Dense(2 * self.width)(nn.LayerNorm()(x)))
            x += nn.Dense(self.width)(hidden)
        x = nn.LayerNorm()(x).reshape(len(x), -1)
        return nn.Dense(self.num_actions)(x), jnp.tanh(nn.Dense(1)(x)[:, 0])


class ResidualMLP(nn.Module):
    """Fully connected layers with shortcuts."""

    num_actions: int
    width: int = 128
    layers: int = 3

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])`."""
        x = nn.Dense(self.width)(planes.reshape(len(planes), -1) * 1.0)
        for _ in range(self.layers):
            x += nn.Dense(self.width)(nn.relu(nn.LayerNorm()(x)))
        return nn.Dense(self.num_actions)(x), jnp.tanh(nn.Dense(1)(x)[:, 0])


def transformer(game: Game) -> Network:
    """Returns the transformer for a game's first encoding."""
    return from_module(game, Transformer(game.num_actions), game.encodings[0])


def residual_mlp(game: Game) -> Network:
    """Returns the residual MLP for a game's first encoding."""
    return from_module(game, ResidualMLP(game.num_actions), game.encodings[0])


if __name__ == "__main__":
    game = azjax.make("tic_tac_toe")
    parts = make_parts(presets.smoke(presets.get("default")), game, transformer(game))
    state, step = init(parts, jax.random.key(0)), jax.jit(functools.partial(iteration, parts))
    for _ in range(5):
        state, metrics = step(state)
        print(f"iteration {state.iteration}: loss {metrics.losses['loss']:.3f}")
