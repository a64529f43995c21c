"""Evaluators: what a search asks about a position.

All are `(params, key, states [B, ...]) -> (logits [B, A], value [B])`: unnormalised move
preferences, and the expected outcome in [-1, 1] for the player to move. Logits of illegal
actions and values of finished games are ignored by the search.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.game import Game, State, play, random_action
from azjax.network import Network
from azjax.oracle import Solution

Evaluator = Callable[[Any, Any, State], tuple[jax.Array, jax.Array]]


def network_evaluator(game: Game, network: Network, encoding) -> Evaluator:
    """The network's own judgement; `params` are the folded parameters."""

    def evaluate(params, key, states):
        del key
        planes = jax.vmap(lambda state: game.observe(state, encoding))(states)
        return network.infer(params, planes)

    return evaluate


def uniform_evaluator(game: Game) -> Evaluator:
    """All actions alike and every position even; ignores `params`."""

    def evaluate(params, key, states):
        del params, key
        batch = game.player(states).shape[0]
        return jnp.zeros((batch, game.num_actions)), jnp.zeros(batch)

    return evaluate


def rollout_evaluator(game: Game) -> Evaluator:
    """All actions alike, and the outcome of one random game; ignores `params`."""

    def rollout(key, state):
        def move(carry, key_ply):
            state, total, weight = carry
            step = play(game, state, random_action(game, key_ply, state))
            return (step.state, total + weight * step.reward, weight * step.discount), None

        keys = jax.random.split(key, game.max_plies)
        start = (state, jnp.zeros(()), jnp.ones(()))
        (_, total, _), _ = jax.lax.scan(move, start, keys)
        return total

    def evaluate(params, key, states):
        del params
        batch = game.player(states).shape[0]
        values = jax.vmap(rollout)(jax.random.split(key, batch), states)
        return jnp.zeros((batch, game.num_actions)), values

    return evaluate


def exact_evaluator(game: Game, solution: Solution) -> Evaluator:
    """The truth, looked up: logits 0 for optimal actions and -10 for others.

    It is for agents, tests and reports: learning never sees it. Ignores `params`.
    """
    columns = [np.asarray(leaf) for leaf in jax.tree.leaves(solution.states)]
    flat = np.concatenate([c.reshape(len(c), -1).astype(np.int32) for c in columns], axis=1)
    flat, first = np.unique(flat, axis=0, return_index=True)  # One may stand at two plies.
    weights = np.random.default_rng(0).integers(1, 2**31, flat.shape[1], dtype=np.uint32)
    hashes = (flat.astype(np.uint32) * weights).sum(axis=1, dtype=np.uint32)
    order, hashes = first[np.argsort(hashes)], np.sort(hashes)
    if len(np.unique(hashes)) != len(hashes):
        raise ValueError(f"two positions of {game.name} have the same hash: change the seed")

    def evaluate(params, key, states):
        del params, key
        leaves = jax.tree.leaves(states)
        cells = jnp.concatenate([x.reshape(len(x), -1).astype(jnp.int32) for x in leaves], axis=1)
        key_of = jnp.sum(cells.astype(jnp.uint32) * weights, axis=1, dtype=jnp.uint32)
        index = jnp.asarray(order)[jnp.searchsorted(hashes, key_of)]
        logits = jnp.where(jnp.asarray(solution.optimal)[index], 0.0, -10.0)
        return logits, jnp.asarray(solution.values)[index]

    return evaluate
