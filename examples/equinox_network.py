"""A network in Equinox: a `Network` is a record of functions, so any library can fill it.

`init` must return only arrays, because its output is trained, averaged and saved. Activation
functions stay in `static`. Needs `pip install equinox`. On the command line:
`--network examples/equinox_network.py:mlp`.
"""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp

import azjax
from azjax.games import Game
from azjax.networks import Network, observed_planes
from azjax.runs import make_parts, presets
from azjax.training import init, iteration


class MLP(eqx.Module):
    """Fully connected layers, for one position."""

    trunk: eqx.nn.MLP
    policy: eqx.nn.Linear
    value: eqx.nn.Linear

    def __init__(self, inputs: int, num_actions: int, key: jax.Array, width: int = 128):
        """Draws the weights."""
        keys = jax.random.split(key, 3)
        self.trunk = eqx.nn.MLP(inputs, width, width, depth=2, key=keys[0])
        self.policy = eqx.nn.Linear(width, num_actions, key=keys[1])
        self.value = eqx.nn.Linear(width, 1, key=keys[2])

    def __call__(self, planes: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns `(logits [A], value [])` for planes `[H, W, C]`."""
        x = jax.nn.relu(self.trunk(planes.ravel() * 1.0))
        return self.policy(x), jnp.tanh(self.value(x)[0])


def mlp(game: Game) -> Network:
    """Returns the network for a game's first encoding."""
    one = observed_planes(game, game.encodings[0])
    make = functools.partial(MLP, math.prod(one.shape), game.num_actions)
    static = eqx.partition(make(jax.random.key(0)), eqx.is_inexact_array)[1]

    def infer(variables, planes):
        return jax.vmap(eqx.combine(variables["params"], static))(planes)

    return Network(
        encoding=game.encodings[0],
        init=lambda key: {"params": eqx.filter(make(key), eqx.is_inexact_array)},
        train=lambda variables, planes, axis_name: (infer(variables, planes), {}),
        infer=infer,
        made_for=(*one.shape, game.num_actions),
    )


if __name__ == "__main__":
    game = azjax.make("tic_tac_toe")
    parts = make_parts(presets.smoke(presets.get("default")), game, mlp(game))
    state, step = init(parts, jax.random.key(0)), jax.jit(functools.partial(iteration, parts))
    for _ in range(5):
        state, metrics = step(state)
        print(f"iteration {state.iteration}: loss {metrics.losses['loss']:.3f}")
