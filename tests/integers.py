"""Small networks of integers with random weights and biases, their reference, random positions."""

import functools
from typing import NamedTuple

import jax
import numpy as np

import guard
from azjax import games
from azjax.games.base import Game, State, random_action
from azjax.networks import MLPConfig, Network, make_network
from azjax.networks.integers import VALUES
from azjax.networks.symmetric import make_group
from azjax.runs import player as players
from experiments.quantize import Quantized, add_player, quantize


class Case(NamedTuple):
    game: Game
    network: Network  # Of floats.
    variables: dict
    made: Quantized


def random_game(game: Game, key: jax.Array) -> tuple[State, jax.Array]:
    """Returns the positions and the actions of a random game, `[max_plies, ...]`."""

    def move(state, key):
        action = random_action(game, key, state)
        return game.step(state, action)[0], (state, action)

    return jax.lax.scan(move, game.init(), jax.random.split(key, game.max_plies))[1]


@functools.cache
def positions(name: str, count: int = 64, seed: int = 0) -> State:
    """Positions of `count` random games that are not over, on the host."""
    game = games.make(name)
    keys = jax.random.split(jax.random.key(seed), count)
    with guard.sharing():
        states, _ = jax.device_get(jax.jit(jax.vmap(functools.partial(random_game, game)))(keys))
        over = jax.device_get(jax.vmap(jax.vmap(game.is_over))(states))
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


def forget():
    """Clears the cache of the players that come with azjax."""
    players._load_pretrained.cache_clear()


def add_untrained(name: str, overrides=None):
    """Writes an untrained player into the folder of those that come with azjax; returns its path.

    Use it with the fixture `folder`.
    """
    about = {"game": name, "encoding": "relative", "symmetric": True, "iteration": 7, "alone": True}
    about |= {"search": {"algorithm": "puct", "num_simulations": 5}, "training": {"moves": 12345}}
    path = add_player(name, about, make_case(name).made.variables, overrides)
    forget()
    return path


def observe(game: Game, states: State, encoding: str = "relative") -> np.ndarray:
    with guard.sharing():
        return np.asarray(jax.jit(jax.vmap(lambda state: game.observe(state, encoding)))(states))


def evaluate(game, symmetric, variables, planes):
    """Evaluates a quantized network with Python's rules for integers, position by position.

    Returns the logits `[N, A]` and values `[N]`.
    """
    params = {k: {p: np.asarray(a) for p, a in v.items()} for k, v in variables["params"].items()}
    symmetries = game.symmetries
    cells = symmetries.cells if symmetric else np.arange(np.prod(planes[0].shape[:2]))[None]
    moves = symmetries.actions if symmetric else np.arange(game.num_actions)[None]
    group = make_group(game, symmetric)

    def product(x, kernel):
        return (x.astype(float) @ kernel.astype(float)).astype(int)  # Exact below 2 ** 53.

    def hidden(name, x, orders):
        """The copies of a layer: copy 0, for the inputs as every symmetry turns them."""
        layer = params[name]
        outputs = []
        for order in orders:
            parts = x.reshape(len(x), len(order), -1)[:, order].reshape(len(x), -1)
            total = product(parts, layer["kernel"]) + layer["bias"]
            outputs.append(np.clip(total >> layer["shift"].astype(int), 0, 127))
        return np.concatenate(outputs, axis=1)

    x = hidden("Dense_0", planes.reshape(len(planes), -1).astype(int), group.cells)
    for name in sorted(name for name in params if name.startswith("Dense_"))[1:]:
        x = hidden(name, x, group.copies)
    policy, value = (hidden(name, x, group.copies) for name in ("policy_hidden", "value_hidden"))
    copies = len(group.copies)
    kernel, total = params["policy"]["kernel"], params["policy"]["bias"].astype(int)
    for part, order in zip(np.split(policy, copies, axis=1), group.actions, strict=True):
        total = total + product(part, kernel[:, order])
    total >>= int(params["policy"]["shift"])
    ranks = 1 << (game.num_actions - 1).bit_length()
    logits = np.zeros(total.shape, np.float32)
    for row, board in enumerate(planes.reshape(len(planes), cells.shape[1], -1).astype(int)):
        turned = [tuple(board[order].ravel()) for order in cells]
        best = [moved for copy, moved in zip(turned, moves, strict=True) if copy == min(turned)]
        rank = np.min([np.argsort(moved) for moved in best], axis=0)
        logits[row] = (total[row] * ranks - rank) * params["policy"]["scale"]
    found = value @ np.tile(params["value"]["kernel"].astype(int), (copies, 1))
    index = (found[:, 0] + int(params["value"]["bias"][0])) >> int(params["value"]["shift"])
    index = np.clip(index, -VALUES, VALUES)
    return logits, params["value"]["table"][index + VALUES]
