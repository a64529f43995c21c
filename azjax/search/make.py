"""Searches, built from an algorithm, a game and an evaluator.

A search of `B` positions; every line works on all trees of the batch:

    logits, value = evaluate(roots)                  # evaluators.py: one call of the network
    selection = algorithm.select(roots)              # puct.py, gumbel.py, uct.py
    tree = new_tree(selection.logits, value, roots)  # tree.py: only the roots
    for i in range(num_simulations):                 # simulate.py:
        node, action = select(selection, tree)       #   down to an unvisited action
        child = expand(node, action)                 #   play it, evaluate the position
        tree = backup(tree, child)                   #   add its value to all nodes above
    return selection.finish(tree)                    # the action to play, the policy target
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax.games.base import Game, State, batch_keys, check_batch
from azjax.search.algorithm import (
    Algorithm,
    Engine,
    Roots,
    SearchResult,
    Selection,
    choose_engine,
    split_each,
)
from azjax.search.bridge import grow_by_mctx
from azjax.search.evaluators import Evaluator, Function, checked
from azjax.search.simulate import Model, Simulator, evaluate_states, expand, simulate
from azjax.search.tree import Tree, mask_logits, new_tree

Search = Callable[..., SearchResult]


def make_search(
    algorithm: Algorithm, game: Game, evaluate: Evaluator | Function, engine: Engine | None = None
) -> Search:
    """Builds `search(params, keys, states, temperature=0.0, add_noise=False)`.

    The returned function is pure and can be jitted. Its arguments are

    - `params`: passed to the evaluator.
    - `keys`: one key, or `[B]`, one per position.
    - `states`: `[B, ...]`. Results of finished positions are meaningless.
    - `temperature`: a float or `[B]`, 0 or more. PUCT and UCT draw the action from
      `visits ** (1 / temperature)`; 0 means the most visited action.
    - `add_noise`: a bool or `[B]`. PUCT and Gumbel then explore as in self-play.

    It raises ValueError if the states are not a batch of this game, or if an argument or an output
    of the evaluator has the wrong shape. A negative or NaN temperature raises it as well, unless it
    is traced.

    The result for a position depends only on the position and its key, not on the rest of the
    batch. (Only rounding may differ with the batch size, in matrix products.) At every depth, the
    game alone determines which actions are legal. If an evaluator returns the logit -inf for a
    legal action, the prior of the action is zero, but a search may choose it. If it returns the
    value NaN, the result's `value` is NaN. The `action` is legal even if values or logits are NaN.

    Args:
      algorithm: such as `PUCT(num_simulations=50)`.
      game: the rules.
      evaluate: any evaluator.
      engine: the loop that grows the trees, unless the algorithm has its own. `azjax` is the loop
        of this package, and `mctx` is that of `mctx.search`. Both give the same results; tests
        compare them on CPUs, bit for bit. If None, the algorithm's attribute `engine` is used if it
        has one, otherwise `azjax`.

    Raises:
      ValueError: if the algorithm lacks a member, the evaluator is not callable, or the engine is
        unknown.
    """
    engine = choose_engine(algorithm, engine)
    evaluate, count = checked(game, evaluate), algorithm.num_simulations

    def search(params, keys, states, temperature=0.0, add_noise=False) -> SearchResult:
        _check_temperature(temperature)
        model = Model(game, evaluate, params)
        roots, keys_tree = _evaluate_roots(
            model, keys, states, budget=count, temperature=temperature, add_noise=add_noise
        )
        selection = algorithm.select(roots)
        if isinstance(selection, SearchResult):
            return selection
        simulator, tree = _plant(count, model, roots, selection, keys_tree)
        return selection.finish(_grow(engine, simulator, tree, 0, count))

    return search


class Resumable(NamedTuple):
    """A search that grows its tree a few simulations at a time, for players with a time limit.

    `budget` is the planned number of simulations, `int32 []`. Among the package's algorithms,
    only Gumbel uses it.

    Attributes:
      start: `(params, keys, states [B, ...], budget) -> tree`, with only its root.
      grow: `(params, keys, states, budget, tree, done, count) -> tree`; adds `count` simulations
        to a tree that has `done`. Both numbers are traced `int32 []`, so one compiled program
        serves all their values. `done + count` is at most `num_simulations`. The budget may change
        during the first phase of sequential halving, but not later.
      finish: `(params, keys, states, budget, tree) -> SearchResult`.
    """

    start: Callable[..., Tree]
    grow: Callable[..., Tree]
    finish: Callable[..., SearchResult]


def make_resumable(
    algorithm: Algorithm, game: Game, evaluate: Evaluator | Function, engine: Engine | None = None
) -> Resumable:
    """Builds the search of `make_search` as separate steps, without noise.

    Returns:
      Functions for `jit`. All calls for one search must get the same `keys`. With the same budget,
      the final tree does not depend on how its simulations are divided among calls of `grow`. With
      a deterministic evaluator, it equals the tree that the search of `make_search` returns.

    Raises:
      ValueError: see `make_search`; the functions raise it for an algorithm that runs its own loop.
    """
    engine = choose_engine(algorithm, engine)
    evaluate, count = checked(game, evaluate), algorithm.num_simulations

    def begin(params, keys, states, budget):
        model = Model(game, evaluate, params)
        roots, keys_tree = _evaluate_roots(model, keys, states, budget=budget)
        selection = algorithm.select(roots)
        if isinstance(selection, SearchResult):
            raise ValueError(
                f"{algorithm.algorithm} runs its own loop, which cannot stop and continue: use "
                "make_search, a player without a time limit, or an algorithm such as PUCT()"
            )
        return _plant(count, model, roots, selection, keys_tree)

    def start(params, keys, states, budget):
        return begin(params, keys, states, budget)[1]

    def grow(params, keys, states, budget, tree, done, count):
        simulator, _ = begin(params, keys, states, budget)
        tree = tree.replace(extra_data=simulator.selection.extra)
        return _grow(engine, simulator, tree, done, done + count)

    def finish(params, keys, states, budget, tree):
        return begin(params, keys, states, budget)[0].selection.finish(tree)

    return Resumable(start, grow, finish)


def _evaluate_roots(
    model: Model,
    keys: jax.Array,
    states: State,
    *,
    budget: int | jax.Array,
    temperature: Any = 0.0,
    add_noise: Any = False,
) -> tuple[Roots, jax.Array]:
    """Evaluates the roots; returns them, and the keys `[B]` of the evaluations in the trees."""
    game, size = model.game, check_batch(model.game, states)
    temperature = _per_position("temperature", temperature, jnp.float32, size)
    if add_noise is not False:  # False leaves the noise out of the program.
        add_noise = _per_position("add_noise", add_noise, bool, size)
    keys_evaluate, keys_select = split_each(batch_keys(keys, size))
    keys_root, keys_tree = split_each(keys_evaluate)  # Only random evaluators use these.
    logits, value = evaluate_states(model, keys_root, states)
    roots = Roots(
        states=states,
        legal=jax.vmap(game.legal_actions)(states),
        logits=logits,
        value=value,
        keys=keys_select,
        temperature=temperature,
        add_noise=add_noise,
        budget=budget,
        expand=functools.partial(expand, model),
    )
    return roots, keys_tree


def _plant(
    count: int, model: Model, roots: Roots, selection: Selection, keys: jax.Array
) -> tuple[Simulator, Tree]:
    """Returns the simulations' shared inputs, and trees for `count` of them with only roots."""
    tree = new_tree(
        logits=mask_logits(roots.legal, selection.logits),
        value=roots.value,
        states=roots.states,
        legal=roots.legal,
        num_nodes=count + 1,
        extra=selection.extra,
    )
    model = model._replace(prior=selection.prior)
    return Simulator(selection, functools.partial(expand, model), keys), tree


def _grow(engine: Engine, simulator: Simulator, tree: Tree, first: Any, last: Any) -> Tree:
    """Makes the simulations `first` to `last - 1` with the loop of an engine."""
    if engine == "mctx":
        return grow_by_mctx(simulator, tree, first, last)

    def grow_one(i, tree):
        keys = jax.vmap(jax.random.fold_in, (0, None))(simulator.keys, i)
        return simulate(simulator.selection, functools.partial(simulator.expand, keys), tree, i)

    return jax.lax.fori_loop(first, last, grow_one, tree)


def _check_temperature(temperature: Any) -> None:
    """Raises ValueError for temperatures that are negative or NaN, unless they are traced."""
    if not isinstance(temperature, Tracer) and not np.all(np.asarray(temperature) >= 0):
        raise ValueError(f"temperature is {temperature}: use 0 or more")


def _per_position(name: str, value: Any, dtype: Any, size: int) -> jax.Array:
    """Broadcasts a scalar or `[B]` to `[B]`."""
    value = jnp.asarray(value, dtype)
    if value.shape not in ((), (size,)):
        raise ValueError(
            f"{name} has shape {value.shape}: use one for all positions, or a batch of {size}"
        )
    return jnp.broadcast_to(value, (size,))
