"""Evaluation of positions for a search, and what an action leads to."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import Game, State, play
from azjax.search.evaluators import Evaluator
from azjax.search.simulate import Expansion
from azjax.search.tree import mask_logits


class Model(NamedTuple):
    """A game and an evaluator, as a search sees them.

    Attributes:
      game: the rules.
      evaluate: any evaluator.
      params: for the evaluator.
      prior: see `Selection.prior`; None keeps the evaluator's logits.
    """

    game: Game
    evaluate: Evaluator
    params: Any
    prior: Callable[[jax.Array, jax.Array], jax.Array] | None = None


def evaluate_states(model: Model, keys: jax.Array, states: State) -> tuple[jax.Array, jax.Array]:
    """Returns logits `float32 [B, A]` and values `float32 [B]` of states `[B, ...]`.

    Logits are `tree.NEVER` where illegal, and values are 0 where the game is over.
    """
    logits, value, *_ = model.evaluate(model.params, keys, states)
    legal = jax.vmap(model.game.legal_actions)(states)
    over = jax.vmap(model.game.is_over)(states)
    return mask_logits(legal, logits), jnp.where(over, 0.0, value)


def expand(model: Model, keys: jax.Array, actions: jax.Array, states: State) -> Expansion:
    """Plays one action `[B]` in each state `[B, ...]` and evaluates what follows."""
    step = jax.vmap(functools.partial(play, model.game))(states, actions)
    if model.prior is None:
        logits, value = evaluate_states(model, keys, step.state)
    else:
        keys_evaluate, keys_prior = split_each(keys)
        logits, value = evaluate_states(model, keys_evaluate, step.state)
        legal = jax.vmap(model.game.legal_actions)(step.state)
        logits = mask_logits(legal, model.prior(keys_prior, logits))
    return Expansion(step.state, step.reward, step.discount, logits, value)


def split_each(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits each of the keys `[B]` in two."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]
