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
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax.games.base import Game, batch_keys, check_batch
from azjax.search import leaves, paths, simulate, with_mctx
from azjax.search.algorithm import Algorithm, Roots, SearchResult, Tree, check_algorithm, split_each
from azjax.search.evaluators import Evaluator, Function, checked, evaluate_states, play_and_evaluate

Engine = Literal["azjax", "paths", "mctx"]


def make_search(
    algorithm: Algorithm, game: Game, evaluate: Evaluator | Function, engine: Engine | None = None
) -> Callable[..., SearchResult]:
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
    batch. (Only rounding may differ with the batch size, in matrix products, and random draws by
    keys of JAX's kind `rbg`.) At every depth, the
    game alone determines which actions are legal. If an evaluator returns the logit -inf for a
    legal action, the prior of the action is zero, but a search may choose it. If it returns the
    value NaN, the result's `value` is NaN. The `action` is legal even if values or logits are NaN.

    Args:
      algorithm: such as `PUCT(num_simulations=50)`.
      game: the rules.
      evaluate: any evaluator.
      engine: how the trees grow; the results are the same. `azjax` is the loop of this package,
        `paths` its form without loops inside a simulation, and `mctx` the loop of `mctx.search`. If
        None, `default_engine` of the default backend. It has no effect on an algorithm with its
        own loop. `paths` leaves searches that continue a tree, or have several leaves, to `azjax`.
    """
    check_algorithm(algorithm)
    evaluate, count = checked(game, evaluate), algorithm.num_simulations
    engine = default_engine(jax.default_backend()) if engine is None else engine
    grow = _choose_loop(game, engine, count, getattr(algorithm, "leaves", 1))

    def search(params, keys, states, temperature=0.0, add_noise=False, tree=None) -> SearchResult:
        if not isinstance(temperature, Tracer) and not np.all(np.asarray(temperature) >= 0):
            raise ValueError(f"temperature is {temperature}: use 0 or more")
        size = check_batch(game, states)
        if tree is not None and len(tree.node_visits) != size:
            raise ValueError(
                f"tree has {len(tree.node_visits)} trees for {size} positions: pass as many"
            )
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
            expand=functools.partial(play_and_evaluate, game, evaluate, params),
            tree=tree,
        )
        selection = algorithm.select(roots)
        has_loop = isinstance(selection, SearchResult)
        if tree is not None and (has_loop or engine == "mctx"):
            raise ValueError(
                f"{algorithm.algorithm} in the engine {engine!r} cannot continue a tree: leave "
                "tree out, or use an algorithm such as PUCT() with the engine 'azjax'"
            )
        return selection if has_loop else selection.finish(grow(roots, selection, count))

    return search


def default_engine(platform: str) -> Engine:
    """Returns the engine of a platform: on a GPU, each step of a `while` loop waits for the host.

    This is by the number of kernels and waits; it was not timed on a GPU.
    """
    return "azjax" if platform in ("cpu", "tpu") else "paths"


def _choose_loop(game: Game, engine: str, count: int, together: int) -> Callable[..., Tree]:
    loops = {
        "azjax": simulate.grow,
        "paths": functools.partial(paths.grow, max_plies=game.max_plies),
        "mctx": with_mctx.grow,
    }
    if engine not in loops:
        raise ValueError(f"the search's engine is {engine!r}: use {' or '.join(map(repr, loops))}")
    if together == 1:
        return loops[engine]
    if engine == "mctx":
        raise ValueError(
            f"the search's leaves are {together}, and the engine 'mctx' evaluates one position at "
            "a time: use 1, or the engine 'azjax'"
        )
    divisors = (number for number in range(together, 0, -1) if count % number == 0)
    return functools.partial(leaves.grow, leaves=next(divisors))


def _per_position(name: str, value: Any, dtype: Any, size: int) -> jax.Array:
    value = jnp.asarray(value, dtype)
    if value.shape not in ((), (size,)):
        raise ValueError(
            f"{name} has shape {value.shape}: use one for all positions, or a batch of {size}"
        )
    return jnp.broadcast_to(value, (size,))
