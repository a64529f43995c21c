"""Evaluators: what a search asks about a position.

All are `(params, key, states [B, ...]) -> (logits [B, A], value [B])`: unnormalised move
preferences, and the expected outcome in [-1, 1] for the player to move. Logits of illegal
actions and values of finished games are ignored by the search.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from azjax.game import Game, State, check_batch, legal_action_at, play
from azjax.network import Network
from azjax.oracle import Solution, make_index

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
        batch = check_batch(game, states)
        return jnp.zeros((batch, game.num_actions)), jnp.zeros(batch)

    return evaluate


def rollout_evaluator(game: Game) -> Evaluator:
    """All actions alike, and the outcome of one random game; ignores `params`."""

    def evaluate(params, key, states):
        del params
        batch = check_batch(game, states)
        keys = jax.random.split(key, batch)
        values = jax.vmap(lambda key, state: rollout(game, key, state))(keys, states)
        return jnp.zeros((batch, game.num_actions)), values

    return evaluate


def rollout(game: Game, key: jax.Array, state: State) -> jax.Array:
    """Plays one random game from a state to the end.

    Returns:
      `float32 []`, the outcome for the player to move; 0 if the game is over.
    """

    def move(carry, uniform):
        state, total, weight = carry
        step = play(game, state, legal_action_at(game.legal_actions(state), uniform))
        return (step.state, total + weight * step.reward, weight * step.discount), None

    uniform = jax.random.uniform(key, (game.max_plies,))
    (_, total, _), _ = jax.lax.scan(move, (state, jnp.zeros(()), jnp.ones(())), uniform)
    return total


def exact_evaluator(game: Game, solution: Solution) -> Evaluator:
    """The truth, looked up: logits 0 for optimal actions and -10 for others.

    It is for agents, tests and reports: learning never sees it. Ignores `params`.
    """
    index = make_index(game, solution)

    def evaluate(params, key, states):
        del params, key
        row = index(states)
        logits = jnp.where(jnp.asarray(solution.optimal)[row], 0.0, -10.0)
        return logits, jnp.asarray(solution.values)[row]

    return evaluate
