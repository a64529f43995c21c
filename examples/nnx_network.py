"""A network in Flax NNX: a residual MLP.

`from_nnx` takes a function `rngs -> module`; each seed gives new weights. On the command line:
`--network examples/nnx_network.py:residual_mlp`.
"""

import functools
import math

import jax
import jax.numpy as jnp
from flax import nnx

import azjax
from azjax.games import Game
from azjax.networks import Network, observed_planes
from azjax.runs import make_parts, presets
from azjax.training import init, iteration


class ResidualMLP(nnx.Module):
    """Fully connected layers with shortcuts."""

    def __init__(self, inputs: int, num_actions: int, rngs: nnx.Rngs, width=128, layers=3):
        """Draws the weights."""
        self.stem = nnx.Linear(inputs, width, rngs=rngs)
        self.norms = nnx.List([nnx.LayerNorm(width, rngs=rngs) for _ in range(layers)])
        self.layers = nnx.List([nnx.Linear(width, width, rngs=rngs) for _ in range(layers)])
        self.policy = nnx.Linear(width, num_actions, rngs=rngs)
        self.value = nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, planes: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns `(logits [B, A], value [B])` for planes `[B, H, W, C]`."""
        x = self.stem(planes.reshape(len(planes), -1) * 1.0)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x += layer(nnx.relu(norm(x)))
        return self.policy(x), jnp.tanh(self.value(x)[:, 0])


def residual_mlp(game: Game) -> Network:
    """Returns the network for a game's last encoding, such as `relative`."""
    encoding = game.encodings[-1]
    inputs = math.prod(observed_planes(game, encoding).shape)
    return azjax.from_nnx(game, lambda rngs: ResidualMLP(inputs, game.num_actions, rngs), encoding)


if __name__ == "__main__":
    game = azjax.make("tic_tac_toe")
    parts = make_parts(presets.smoke(presets.get("default")), game, residual_mlp(game))
    state, step = init(parts, jax.random.key(0)), jax.jit(functools.partial(iteration, parts))
    for _ in range(5):
        state, metrics = step(state)
        print(f"iteration {state.iteration}: loss {metrics.losses['loss']:.3f}")
