"""Evaluation of positions for a search, and what an action leads to."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from azjax.games.base import Game, State, play
from azjax.search.evaluators import Evaluator
from azjax.search.simulate import Expansion
from azjax.search.tree import mask_logits


def evaluate_states(
    game: Game, evaluate: Evaluator, params: Any, keys: jax.Array, states: State
) -> tuple[jax.Array, jax.Array]:
    """Evaluates states, with illegal actions excluded and finished games worth 0."""
    logits, value, *_ = evaluate(params, keys, states)
    legal = jax.vmap(game.legal_actions)(states)
    over = jax.vmap(game.is_over)(states)
    return mask_logits(legal, logits), jnp.where(over, 0.0, value)


def expand(
    game: Game,
    evaluate: Evaluator,
    prior: Callable[[jax.Array, jax.Array], jax.Array] | None,
    params: Any,
    keys: jax.Array,
    actions: jax.Array,
    states: State,
) -> Expansion:
    """Plays one action in each game and evaluates what comes after; see `Selection.prior`."""
    step = jax.vmap(functools.partial(play, game))(states, actions)
    if prior is None:
        logits, value = evaluate_states(game, evaluate, params, keys, step.state)
        return Expansion(step.state, step.reward, step.discount, logits, value)
    keys_evaluate, keys_prior = split_each(keys)
    logits, value = evaluate_states(game, evaluate, params, keys_evaluate, step.state)
    legal = jax.vmap(game.legal_actions)(step.state)
    logits = mask_logits(legal, prior(keys_prior, logits))
    return Expansion(step.state, step.reward, step.discount, logits, value)


def split_each(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits each of the keys `[B]` in two."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]
