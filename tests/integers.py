"""Small networks of integers, with random weights and biases, and random positions."""

import functools
from typing import NamedTuple

import jax
import numpy as np

import guard
from azjax import games
from azjax.games.base import Game, State, random_action
from azjax.networks import MLPConfig, Network, make_network
from experiments.quantize import Quantized, quantize


class Case(NamedTuple):
    game: Game
    network: Network  # Of floats.
    variables: dict
    made: Quantized


@functools.cache
def positions(name: str, count: int = 64, seed: int = 0) -> State:
    """Positions of `count` random games that are not over, on the host."""
    game = games.make(name)

    def play(key):
        def move(state, key):
            return game.step(state, random_action(game, key, state))[0], (
                state,
                game.is_over(state),
            )

        return jax.lax.scan(move, game.init(), jax.random.split(key, game.max_plies))[1]

    with guard.sharing():
        keys = jax.random.split(jax.random.key(seed), count)
        states, over = jax.device_get(jax.jit(jax.vmap(play))(keys))
    return jax.tree.map(lambda leaf: leaf[~over], states)


def random_like(tree, seed: int):
    """Normal numbers: kernels that keep the size of their inputs, and biases."""
    rng = np.random.default_rng(seed)

    def draw(leaf):
        size = 0.5 if len(leaf.shape) == 1 else 1.5 / np.sqrt(leaf.shape[0])
        return (size * rng.normal(size=leaf.shape)).astype(leaf.dtype)

    return jax.tree.map(draw, tree)


@functools.cache
def make_case(name: str, symmetric: bool = True, hidden=(16, 16), seed: int = 0) -> Case:
    game = games.make(name)
    config = MLPConfig(hidden=hidden, head_hidden=8, symmetric=symmetric)
    with guard.sharing():
        network = make_network(config, game)
        variables = random_like(jax.eval_shape(network.init, jax.random.key(0)), seed)
        value = variables["params"]["value"]
        value["kernel"] *= 0.2  # Its outputs are far from -1 and 1.
        return Case(game, network, variables, quantize(game, network, variables, positions(name)))


def observe(game: Game, states: State, encoding: str = "relative") -> np.ndarray:
    with guard.sharing():
        return np.asarray(jax.jit(jax.vmap(lambda state: game.observe(state, encoding)))(states))
