"""Searches, built from an algorithm, a game and an evaluator.

A search of `B` positions; every line works on all trees of the batch:

    logits, value = evaluate(roots)                  # evaluators.py: one call of the network
    selection = algorithm.select(roots)              # puct.py, gumbel.py, uct.py
    tree = init(roots, selection)                    # simulate.py: only the roots
    for i in range(num_simulations):
        node, action = descend(selection, tree)      #   down to an unvisited action
        child = expand(node, action)                 #   play it, evaluate the position
        tree = backup(tree, child)                   #   add its value to all nodes above
    return selection.finish(tree)                    # the action to play, the policy target
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax.games.base import Game, batch_keys, check_batch
from azjax.search import paths, simulate
from azjax.search.algorithm import (
    Algorithm,
    Roots,
    SearchResult,
    Selection,
    Tree,
    check_algorithm,
    next_outcome,
    split_each,
)
from azjax.search.evaluators import Evaluator, Function, checked, evaluate_states, play_and_evaluate

Grow = Callable[[Roots, Selection, int], Tree]
"""`(roots, selection, num_simulations) -> tree`: how trees grow."""


def make_search(
    algorithm: Algorithm, game: Game, evaluate: Evaluator | Function, grow: Grow | None = None
) -> Callable[..., SearchResult]:
    """Builds `search(params, keys, states, temperature=0.0, add_noise=False)`.

    The returned function is pure and can be jitted. Its arguments are

    - `params`: passed to the evaluator.
    - `keys`: one key, or `[B]`, one per position.
    - `states`: `[B, ...]`. Results of finished positions are meaningless. Where nature is to move,
      only the value has a meaning; `MctxGumbel` visits outcomes there without their probabilities.
    - `temperature`: a float or `[B]`, 0 or more. PUCT and UCT draw the action from
      `visits ** (1 / temperature)`; 0 means the most visited action.
    - `add_noise`: a bool or `[B]`. PUCT and Gumbel then explore as in self-play.

    It raises ValueError if an argument or an output of the evaluator has the wrong shape, or a
    temperature is negative or NaN, unless it is traced.

    The result for a position depends only on the position and its key, not on the rest of the
    batch. (Only rounding may differ with the batch size, in matrix products, and random draws by
    keys of JAX's kind `rbg`.) At every depth, the
    game alone determines which actions are legal. If an evaluator returns the logit -inf for a
    legal action, the prior of the action is zero, but a search may choose it. If it returns the
    value NaN, the result's `value` is NaN. The `action` is legal even if values or logits are NaN.

    Args:
      algorithm: such as `PUCT(num_simulations=50)`.
      game: the rules.
      evaluate: any evaluator.
      grow: how trees grow: `simulate.grow` or `paths.grow`. By default, the one of this platform.
        An algorithm with its own loop does not use it.
    """
    check_algorithm(algorithm)
    evaluate = checked(game, evaluate)
    grow = grow or default_grow(jax.default_backend())

    def search(params, keys, states, temperature=0.0, add_noise=False) -> SearchResult:
        if not isinstance(temperature, Tracer) and not np.all(np.asarray(temperature) >= 0):
            raise ValueError(f"temperature is {temperature}: use 0 or more")
        size = check_batch(game, states)
        if add_noise is not False:  # False leaves the noise out of the program.
            add_noise = _per_position("add_noise", add_noise, bool, size)
        keys_evaluate, keys_select = split_each(batch_keys(keys, size))
        keys_root, keys_expand = split_each(keys_evaluate)  # Only random evaluators use these.
        logits, value = evaluate_states(game, evaluate, params, keys_root, states)
        roots = Roots(
            states=states,
            legal=jax.vmap(game.legal_actions)(states),
            logits=logits,
            value=value,
            keys=keys_select,
            temperature=_per_position("temperature", temperature, jnp.float32, size),
            add_noise=add_noise,
            keys_expand=keys_expand,
            params=params,
            expand=functools.partial(play_and_evaluate, game, evaluate, params),
            max_plies=game.max_plies,
            chance=game.chance,
        )
        return search_roots(algorithm, roots, grow)

    return search


def search_roots(algorithm: Algorithm, roots: Roots, grow: Grow) -> SearchResult:
    """Searches from evaluated positions; `roots.expand` plays and evaluates below them."""
    selection = algorithm.select(roots)
    if isinstance(selection, SearchResult):  # The algorithm has its own loop.
        return selection
    if roots.chance is not None:
        selection = selection._replace(
            at_root=_with_chance(roots.chance, selection.at_root),
            below=_with_chance(roots.chance, selection.below),
        )
    return selection.finish(grow(roots, selection, algorithm.num_simulations))


def _with_chance(chance: Callable, select: Callable) -> Callable:
    def select_or_throw(tree, node):
        is_chance, outcome = next_outcome(chance, tree, node)
        return jnp.where(is_chance, outcome, select(tree, node))

    return select_or_throw


def default_grow(platform: str) -> Grow:
    """Returns how trees grow on a platform; on a GPU, a `while` loop waits for the host."""
    return simulate.grow if platform in ("cpu", "tpu") else paths.grow


def _per_position(name: str, value: Any, dtype: Any, size: int) -> jax.Array:
    value = jnp.asarray(value, dtype)
    if value.shape not in ((), (size,)):
        raise ValueError(
            f"{name} has shape {value.shape}: use one for all positions, or a batch of {size}"
        )
    return jnp.broadcast_to(value, (size,))
