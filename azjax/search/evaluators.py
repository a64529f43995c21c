"""Evaluators: functions that return the priors and values for a search."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from azjax.games.base import Game, State, batch_keys, check_batch, draw_action, play
from azjax.networks.base import Network, check_heads, check_network
from azjax.search.algorithm import Expansion, mask_logits

Function = Callable[[Any, Any, State], tuple[jax.Array, jax.Array]]


@dataclasses.dataclass(frozen=True)
class Evaluator:
    """A callable record: a function that evaluates positions, and whether it is deterministic.

    Wherever an evaluator is expected, a plain function `(params, keys, states)` works as well and
    counts as random.
    """

    # `(params, keys [B], states [B, ...]) -> (logits float32 [B, A], value float32 [B])`:
    # unnormalized log-probabilities of the actions, and the expected outcome in [-1, 1] for the
    # player to move. `params` is the first argument of the search, any pytree; each position has
    # its own key. A search ignores logits of illegal actions and values of finished games. Direct
    # callers may pass a single key; `games.base.batch_keys` makes `[B]` from it.
    function: Function
    # Whether the output depends only on `params` and the position, not on the key. If so, a match
    # or a proof has the same result with every key.
    is_deterministic: bool = False

    def __call__(self, params: Any, keys: Any, states: State) -> tuple[jax.Array, jax.Array]:
        """Returns `(logits, value)`."""
        return self.function(params, keys, states)


def is_deterministic(evaluate: Evaluator | Function) -> bool:
    """Returns whether an evaluator is deterministic; a plain function counts as random."""
    return isinstance(evaluate, Evaluator) and evaluate.is_deterministic


def checked(game: Game, evaluate: Evaluator | Function) -> Evaluator:
    """Returns an evaluator that checks the shapes of the outputs while tracing."""
    if not callable(evaluate):
        raise ValueError(
            f"the evaluator is of type {type(evaluate).__name__}: use one of "
            "azjax.search.evaluators, or a function (params, keys, states) -> (logits, value)"
        )

    def function(params, keys, states):
        outputs = evaluate(params, keys, states)
        check_heads(outputs, check_batch(game, states), game, "the evaluator")
        return outputs

    return Evaluator(function, is_deterministic(evaluate))


def evaluate_states(
    game: Game, evaluate: Evaluator, params: Any, keys: jax.Array, states: State
) -> tuple[jax.Array, jax.Array]:
    """Returns logits `float32 [B, A]` and values `float32 [B]` of states `[B, ...]`.

    Logits are `NEVER` where illegal, and values are 0 where the game is over.
    """
    logits, value, *_ = evaluate(params, keys, states)
    legal = jax.vmap(game.legal_actions)(states)
    over = jax.vmap(game.is_over)(states)
    return mask_logits(legal, logits), jnp.where(over, 0.0, value).astype(jnp.float32)


def play_and_evaluate(
    game: Game, evaluate: Evaluator, params: Any, keys: Any, actions: jax.Array, states: State
) -> Expansion:
    """Plays one action `[B]` in each state `[B, ...]` and evaluates the position after it."""
    step = jax.vmap(functools.partial(play, game))(states, actions)
    logits, value = evaluate_states(game, evaluate, params, keys, step.state)
    return Expansion(step.state, step.reward, step.discount, logits, value)


@functools.lru_cache(maxsize=32)
def network_evaluator(game: Game, network: Network) -> Evaluator:
    """Makes an evaluator from a network; its `params` are the result of `network.fold`."""
    check_network(game, network)

    def evaluate(params, keys, states):
        del keys
        check_batch(game, states)
        if params is None:
            raise ValueError(
                "params is None, and the evaluator is a network: pass the network's parameters, "
                "such as player.params or network.fold(variables)"
            )
        planes = jax.vmap(lambda state: game.observe(state, network.encoding))(states)
        logits, value, *_ = network.infer(params, planes)
        return logits, value

    return Evaluator(evaluate, is_deterministic=True)


@functools.lru_cache(maxsize=32)
def uniform_evaluator(game: Game) -> Evaluator:
    """Makes an evaluator with equal logits and value 0 everywhere; it ignores `params`."""

    def evaluate(params, keys, states):
        del params, keys
        batch = check_batch(game, states)
        shape = batch, game.num_actions
        return jnp.zeros(shape, jnp.float32), jnp.zeros(batch, jnp.float32)

    return Evaluator(evaluate, is_deterministic=True)


@functools.lru_cache(maxsize=32)
def rollout_evaluator(game: Game) -> Evaluator:
    """Makes an evaluator with equal logits and the outcome of a random game; ignores `params`.

    The value is NaN if a game lasts longer than `max_plies`.
    """

    def move(uniform, carry):
        ply, states, total, weight = carry
        action = jax.vmap(functools.partial(draw_action, game))(uniform[:, ply], states)
        step = jax.vmap(functools.partial(play, game))(states, action)
        return ply + 1, step.state, total + weight * step.reward, weight * step.discount

    def continues(carry):  # `play` does not change finished games.
        ply, states, _, _ = carry
        return (ply < game.max_plies) & jnp.any(~jax.vmap(game.is_over)(states))

    def evaluate(params, keys, states):
        del params
        batch = check_batch(game, states)
        draw = functools.partial(jax.random.uniform, shape=(game.max_plies,), dtype=jnp.float32)
        uniform = jax.vmap(draw)(batch_keys(keys, batch))
        start = jnp.int32(0), states, jnp.zeros(batch, jnp.float32), jnp.ones(batch, jnp.float32)
        _, ends, total, _ = jax.lax.while_loop(continues, functools.partial(move, uniform), start)
        value = jnp.where(jax.vmap(game.is_over)(ends), total, jnp.nan)
        return jnp.zeros((batch, game.num_actions), jnp.float32), value

    return Evaluator(evaluate)
