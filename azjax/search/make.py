"""Searches, built from an algorithm, a game and an evaluator.

A search of `B` positions; every line works on all trees of the batch:

    logits, value = evaluate(roots)                  # evaluators.py: one call of the network
    selection = algorithm.select(roots)              # puct.py, gumbel.py, uct.py
    tree = init(roots, selection)                    # simulate.py: only the roots
    for i in range(num_simulations):
        node, action = select(selection, tree)       #   down to an unvisited action
        child = expand(node, action)                 #   play it, evaluate the position
        tree = backup(tree, child)                   #   add its value to all nodes above
    return selection.finish(tree)                    # the action to play, the policy target
"""

import functools
from collections.abc import Callable
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax.games.base import Game, State, batch_keys, check_batch
from azjax.search import leaves
from azjax.search.algorithm import (
    Algorithm,
    Engine,
    Roots,
    SearchResult,
    check_algorithm,
    split_each,
)
from azjax.search.evaluators import Evaluator, Function, checked
from azjax.search.paths import grow
from azjax.search.simulate import evaluate_states, expand, init, simulate
from azjax.search.with_mctx import grow_by_mctx

Search = Callable[..., SearchResult]


def make_search(
    algorithm: Algorithm, game: Game, evaluate: Evaluator | Function, engine: Engine | None = None
) -> Search:
    """Builds `search(params, keys, states, temperature=0.0, add_noise=False, tree=None)`.

    The returned function is pure and can be jitted. Its arguments are

    - `params`: passed to the evaluator.
    - `keys`: one key, or `[B]`, one per position.
    - `states`: `[B, ...]`. Results of finished positions are meaningless.
    - `temperature`: a float or `[B]`, 0 or more. PUCT and UCT draw the action from
      `visits ** (1 / temperature)`; 0 means the most visited action.
    - `add_noise`: a bool or `[B]`. PUCT and Gumbel then explore as in self-play.
    - `tree`: trees of earlier searches that this search continues; see `reroot`.

    It raises ValueError if an argument or an output of the evaluator has the wrong shape, or a
    temperature is negative or NaN, unless it is traced.

    The result for a position depends only on the position and its key, not on the rest of the
    batch. (Only rounding may differ with the batch size, in matrix products.) At every depth, the
    game alone determines which actions are legal. If an evaluator returns the logit -inf for a
    legal action, the prior of the action is zero, but a search may choose it. If it returns the
    value NaN, the result's `value` is NaN. The `action` is legal even if values or logits are NaN.

    Args:
      algorithm: such as `PUCT(num_simulations=50)`.
      game: the rules.
      evaluate: any evaluator.
      engine: how the trees grow, unless the algorithm has its own loop; the results are the same.
        `azjax` is the loop of this package, `paths` its form without loops inside a simulation, for
        accelerators, and `mctx` the loop of `mctx.search`. If None, the algorithm's attribute
        `engine` is used if it has one, otherwise `azjax`.
    """
    check_algorithm(algorithm)
    count = algorithm.num_simulations
    engine = getattr(algorithm, "engine", "azjax") if engine is None else engine
    if engine not in get_args(Engine):
        known = " or ".join(map(repr, get_args(Engine)))
        raise ValueError(f"the search's engine is {engine!r}: use {known}")
    together = getattr(algorithm, "leaves", 1)
    if together > 1 and (engine == "mctx" or count % together):
        raise ValueError(
            f"the search's leaves are {together}, for {count} simulations in the engine "
            f"{engine!r}: use a divisor of the simulations, and the engine 'azjax'"
        )
    evaluate = checked(game, evaluate)

    def search(params, keys, states, temperature=0.0, add_noise=False, tree=None) -> SearchResult:
        if not isinstance(temperature, Tracer) and not np.all(np.asarray(temperature) >= 0):
            raise ValueError(f"temperature is {temperature}: use 0 or more")
        roots = _evaluate_roots(
            game, evaluate, params, keys, states, temperature=temperature, noise=add_noise
        )._replace(tree=tree)
        if tree is not None and engine == "mctx":
            raise ValueError("the engine 'mctx' cannot continue a tree: use the engine 'azjax'")
        selection = algorithm.select(roots)
        if isinstance(selection, SearchResult):
            if tree is not None:
                raise ValueError(
                    f"{algorithm.algorithm} runs its own loop, which cannot continue a tree: leave "
                    "tree out, or use an algorithm such as PUCT() with the engine 'azjax'"
                )
            return selection
        if engine == "mctx":
            grown = grow_by_mctx(roots, selection, count)
        elif engine == "paths" and tree is None and together == 1:
            grown = grow(roots, selection, count, game.max_plies)
        else:
            one = functools.partial(simulate, roots, selection)
            if together > 1:
                one = functools.partial(leaves.simulate, roots, selection, together)
            grown = init(roots, selection, count)
            grown = jax.lax.fori_loop(0, count // together, one, grown)
        return selection.finish(grown)

    return search


def _evaluate_roots(
    game: Game,
    evaluate: Evaluator,
    params: Any,
    keys: jax.Array,
    states: State,
    *,
    temperature: Any,
    noise: Any,
) -> Roots:
    size = check_batch(game, states)

    def per_position(name, value, dtype):
        value = jnp.asarray(value, dtype)
        if value.shape not in ((), (size,)):
            raise ValueError(
                f"{name} has shape {value.shape}: use one for all positions, or a batch of {size}"
            )
        return jnp.broadcast_to(value, (size,))

    if noise is not False:  # False leaves the noise out of the program.
        noise = per_position("add_noise", noise, bool)
    keys_evaluate, keys_select = split_each(batch_keys(keys, size))
    keys_root, keys_expand = split_each(keys_evaluate)  # Only random evaluators use these.
    logits, value = evaluate_states(game, evaluate, params, keys_root, states)
    return Roots(
        states=states,
        legal=jax.vmap(game.legal_actions)(states),
        logits=logits,
        value=value,
        keys=keys_select,
        temperature=per_position("temperature", temperature, jnp.float32),
        add_noise=noise,
        keys_expand=keys_expand,
        expand=functools.partial(expand, game, evaluate, params),
    )
