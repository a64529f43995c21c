"""Searches, built from an algorithm, a game and an evaluator.

A search of `B` positions; every line works on all trees of the batch together:

    logits, value = evaluate(roots)                  # expand.py: one call of the network
    selection = algorithm.select(roots)              # puct.py, gumbel.py, uct.py
    tree = new_tree(selection.logits, value, roots)  # tree.py: roots alone
    for i in range(num_simulations):                 # simulate.py:
        node, action = select(selection, tree)       #   down to an action without a node
        child = expand(node, action)                 #   play it, evaluate the position
        tree = backup(tree, child)                   #   add its value to all nodes above
    return selection.finish(tree)                    # the action to play, the policy to learn
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax.games.base import Game, State, batch_keys, check_batch
from azjax.search.algorithm import Algorithm, Engine, Roots, SearchResult, choose_engine
from azjax.search.bridge import grow_by_mctx
from azjax.search.evaluators import Evaluator, checked
from azjax.search.expand import Model, evaluate_states, expand, split_each
from azjax.search.first import grow_first
from azjax.search.simulate import Simulator, simulate
from azjax.search.tree import Tree, mask_logits, new_tree

Search = Callable[..., SearchResult]


def make_search(
    algorithm: Algorithm, game: Game, evaluate: Evaluator, engine: Engine | None = None
) -> Search:
    """Builds `search(params, keys, states, temperature=0.0, add_noise=False)`.

    Args:
      algorithm: such as `PUCT(num_simulations=50)`.
      game: the rules. Finished positions may be among a batch; their results mean nothing.
      evaluate: any evaluator; `params` are handed to it.
      engine: which loop grows the trees: `azjax`, this package's own, or `mctx`, that of
        `mctx.search`. The results are the same, on CPUs bit for bit. None: the algorithm's
        `engine`, or `azjax`.

    Returns:
      A function of `params`, `keys` (one, or `[B]`, one per position), `states [B, ...]`, and
      `temperature`, a float or `[B]`, by which PUCT and UCT draw the action from
      `visits ** (1 / temperature)` (0: the most visited). Where `add_noise`, a bool or `[B]`, is
      set, PUCT and Gumbel explore as in self-play. It raises ValueError if the states are no batch
      of this game; the keys, temperature or `add_noise` do not go with it; a temperature is below 0
      or NaN, where it is not traced; or the evaluator's outputs have other shapes.

      A result depends on its own position and key alone, not on the batch around it, but for the
      rounding of a network whose products depend on the number of rows. An action is legal
      because the rules allow it, at every depth: where an evaluator returns -inf for a legal
      action, its prior is almost zero; where it returns NaN, the `value` of that row is NaN and
      its `action` still legal.

    Raises:
      ValueError: if the algorithm lacks a member, the evaluator cannot be called, or the engine is
        unknown.
    """
    engine = choose_engine(algorithm, engine)
    evaluate, count = checked(game, evaluate), algorithm.num_simulations

    def search(params, keys, states, temperature=0.0, add_noise=False) -> SearchResult:
        _check_temperature(temperature)
        simulator, tree = _begin(
            algorithm,
            Model(game, evaluate, params),
            keys,
            states,
            budget=count,
            temperature=temperature,
            add_noise=add_noise,
        )
        done, tree = grow_first(simulator, tree) if engine == "azjax" else (0, tree)
        return simulator.selection.finish(_grow(engine, simulator, tree, done, count))

    return search


class Resumable(NamedTuple):
    """A search that grows its tree a few simulations at a time, for players with a clock.

    `budget` is the number of simulations expected, `int32 []`; of the package's algorithms
    only Gumbel asks for it.

    Attributes:
      start: `(params, keys, states [B, ...], budget) -> tree`, with nothing but its root.
      grow: `(params, keys, states, budget, tree, done, count) -> tree`; after `done`
        simulations it makes `count` more, both `int32 []`, so that no number compiles again.
        `done + count` is at most `num_simulations`. The budget may change while sequential
        halving still considers all its actions.
      finish: `(params, keys, states, budget, tree) -> SearchResult`.
    """

    start: Callable[..., Tree]
    grow: Callable[..., Tree]
    finish: Callable[..., SearchResult]


def make_resumable(
    algorithm: Algorithm, game: Game, evaluate: Evaluator, engine: Engine | None = None
) -> Resumable:
    """Builds the search of `make_search`, without noise, in steps; by either engine.

    Returns:
      Functions to be jitted. Their calls for one search get the same `keys`. Grown to the
      end in any steps, the tree of a deterministic evaluator is that of `make_search`.

    Raises:
      ValueError: as `make_search` does.
    """
    engine = choose_engine(algorithm, engine)
    evaluate = checked(game, evaluate)

    def begin(params, keys, states, budget):
        return _begin(algorithm, Model(game, evaluate, params), keys, states, budget=budget)

    def start(params, keys, states, budget):
        return begin(params, keys, states, budget)[1]

    def grow(params, keys, states, budget, tree, done, count):
        simulator, _ = begin(params, keys, states, budget)
        tree = tree.replace(extra_data=simulator.selection.extra)
        return _grow(engine, simulator, tree, done, done + count)

    def finish(params, keys, states, budget, tree):
        return begin(params, keys, states, budget)[0].selection.finish(tree)

    return Resumable(start, grow, finish)


def _begin(
    algorithm: Algorithm,
    model: Model,
    keys: jax.Array,
    states: State,
    *,
    budget: int | jax.Array,
    temperature: Any = 0.0,
    add_noise: Any = False,
) -> tuple[Simulator, Tree]:
    """Evaluates the roots; returns what simulations need, and trees of roots alone."""
    game, size = model.game, check_batch(model.game, states)
    temperature = _per_position("temperature", temperature, jnp.float32, size)
    if add_noise is not False:  # Without noise, what makes it is not even traced.
        add_noise = _per_position("add_noise", add_noise, bool, size)
    keys_evaluate, keys_select = split_each(batch_keys(keys, size))
    keys_root, keys_tree = split_each(keys_evaluate)  # Only random evaluators use these.
    legal = jax.vmap(game.legal_actions)(states)
    logits, value = evaluate_states(model, keys_root, states)
    roots = Roots(
        states=states,
        legal=legal,
        logits=logits,
        value=value,
        keys=keys_select,
        temperature=temperature,
        add_noise=add_noise,
        budget=budget,
    )
    selection = algorithm.select(roots)
    tree = new_tree(
        logits=mask_logits(legal, selection.logits),
        value=value,
        states=states,
        legal=legal,
        num_nodes=algorithm.num_simulations + 1,
        extra=selection.extra,
    )
    model = model._replace(prior=selection.prior)
    return Simulator(selection, functools.partial(expand, model), keys_tree), tree


def _grow(engine: Engine, simulator: Simulator, tree: Tree, first: Any, last: Any) -> Tree:
    """Makes the simulations `first` to `last - 1`, by the loop of an engine."""
    if engine == "mctx":
        return grow_by_mctx(simulator, tree, first, last)

    def grow_one(i, tree):
        keys = jax.vmap(jax.random.fold_in, (0, None))(simulator.keys, i)
        return simulate(simulator.selection, functools.partial(simulator.expand, keys), tree, i)

    return jax.lax.fori_loop(first, last, grow_one, tree)


def _check_temperature(temperature: Any) -> None:
    """Refuses temperatures below 0 or NaN; traced ones go unchecked."""
    if not isinstance(temperature, Tracer) and not np.all(np.asarray(temperature) >= 0):
        raise ValueError(f"temperature is {temperature}: use 0 or more")


def _per_position(name: str, value: Any, dtype: Any, size: int) -> jax.Array:
    """Returns an argument that is one for all positions, or `[B]`, as an array `[B]`."""
    value = jnp.asarray(value, dtype)
    if value.shape not in ((), (size,)):
        raise ValueError(
            f"{name} has shape {value.shape}: use one for all positions, or a batch of {size}"
        )
    return jnp.broadcast_to(value, (size,))
