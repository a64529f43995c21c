"""Searches, built from an algorithm, a game and an evaluator."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from azjax.evaluators import Evaluator, checked
from azjax.game import Game, State, batch_keys, check_batch, play
from azjax.search.algorithm import Algorithm, Roots, SearchResult, Selection, check_algorithm
from azjax.search.simulate import Expansion, simulate
from azjax.search.tree import ROOT, UNVISITED, Tree, mask_logits, new_tree

Search = Callable[..., SearchResult]

_MOST_ROWS = 8192  # Larger batches fill an accelerator, so that fewer calls save little.
_ROWS_PER_CALL = 128  # The evaluations that take as long as the start of a call.


def make_search(algorithm: Algorithm, game: Game, evaluate: Evaluator) -> Search:
    """Builds `search(params, keys, states, temperature=0.0, add_noise=False)`.

    Args:
      algorithm: such as `PUCT(num_simulations=50)`.
      game: the rules. Finished positions may be among a batch; their results mean nothing.
      evaluate: any evaluator; `params` are handed to it.

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
      ValueError: if the algorithm lacks a member, or the evaluator cannot be called.
    """
    check_algorithm(algorithm)
    evaluate = checked(game, evaluate)

    def search(params, keys, states, temperature=0.0, add_noise=False) -> SearchResult:
        _check_temperature(temperature)
        asked = keys, states, temperature, add_noise, algorithm.num_simulations
        selection, tree, grow_one, grow_first = _begin(algorithm, game, evaluate, params, *asked)
        done, tree = grow_first(tree)
        return selection.finish(jax.lax.fori_loop(done, algorithm.num_simulations, grow_one, tree))

    return search


class Resumable(NamedTuple):
    """A search that grows its tree a few simulations at a time, for players with a clock.

    `budget` is the number of simulations expected, `int32 []`; of the package's algorithms
    only Gumbel asks for it.

    Attributes:
      start: `(params, keys, states [B, ...], budget) -> tree`, with nothing but its root.
      grow: `(params, keys, states, budget, tree, done, count) -> tree`; after `done`
        simulations it makes `count` more, both `int32 []`, so that no number compiles anew.
        `done + count` is at most `num_simulations`. The budget may change while sequential
        halving still considers all its actions.
      finish: `(params, keys, states, budget, tree) -> SearchResult`.
    """

    start: Callable[..., Tree]
    grow: Callable[..., Tree]
    finish: Callable[..., SearchResult]


def make_resumable(algorithm: Algorithm, game: Game, evaluate: Evaluator) -> Resumable:
    """Builds the search of `make_search`, without noise, in steps.

    Returns:
      Functions to be jitted. Their calls for one search get the same `keys`. Grown to the
      end in any steps, the tree of a deterministic evaluator is that of `make_search`.

    Raises:
      ValueError: as `make_search` does.
    """
    check_algorithm(algorithm)
    evaluate = checked(game, evaluate)

    def begin(params, keys, states, budget):
        return _begin(algorithm, game, evaluate, params, keys, states, 0.0, False, budget)

    def start(params, keys, states, budget):
        return begin(params, keys, states, budget)[1]

    def grow(params, keys, states, budget, tree, done, count):
        selection, _, grow_one, _ = begin(params, keys, states, budget)
        tree = tree.replace(extra_data=selection.extra)
        return jax.lax.fori_loop(done, done + count, grow_one, tree)

    def finish(params, keys, states, budget, tree):
        return begin(params, keys, states, budget)[0].finish(tree)

    return Resumable(start, grow, finish)


def _begin(
    algorithm, game, evaluate, params, keys, states, temperature, add_noise, budget
) -> tuple[Selection, Tree, Callable[[Any, Tree], Tree], Callable[[Tree], tuple[Any, Tree]]]:
    """Evaluates the roots; returns how to select, trees of roots alone, and what grows them.

    These are `(simulation, tree) -> tree`, with the number of the simulation to make, and `tree ->
    (done, tree)`, which makes the first ones together, if that is worth it, and counts them.
    """
    size = check_batch(game, states)
    temperature = _per_position("temperature", temperature, jnp.float32, size)
    if add_noise is not False:  # Without noise, what makes it is not even traced.
        add_noise = _per_position("add_noise", add_noise, bool, size)
    keys_evaluate, keys_select = _split(batch_keys(keys, size))
    keys_root, keys_tree = _split(keys_evaluate)  # Only random evaluators use these.
    legal = jax.vmap(game.legal_actions)(states)
    logits, value = _evaluate(game, evaluate, params, keys_root, states)
    selection = algorithm.select(
        Roots(states, legal, logits, value, keys_select, temperature, add_noise, budget)
    )
    room = algorithm.num_simulations + 1
    prior = mask_logits(legal, selection.logits)
    tree = new_tree(prior, value, states, legal, room, selection.extra)
    expand = functools.partial(_expand, game, evaluate, selection, params)

    def grow_one(i, tree):
        keys = jax.vmap(jax.random.fold_in, (0, None))(keys_tree, i)
        return simulate(selection, expand, keys, tree, i)

    def grow_first(tree):
        return _grow_first(selection, expand, keys_tree, tree)

    return selection, tree, grow_one, grow_first


def most_rows() -> int:
    """Returns how many positions the first simulations may evaluate together.

    None on CPUs: there one call saves little time, and its program takes longer to compile.
    """
    return 0 if jax.default_backend() == "cpu" else _MOST_ROWS


def _grow_first(selection: Selection, expand, keys, tree: Tree) -> tuple[Any, Tree]:
    """Makes the simulations of `Selection.first` with one call of the evaluator.

    In every tree it makes as many as are known in all of them. The call evaluates all `K`: where
    the others cost more than the calls that it saves, none is made.

    Returns:
      How many simulations there are now, `int32 []`, and the trees.
    """
    if selection.first is None:
        return 0, tree
    size, length = selection.first.shape
    if length < 2 or size * length > most_rows():
        return 0, tree
    over = jnp.all(tree.root_invalid_actions, axis=-1, keepdims=True)  # Nothing happens there.
    known = jnp.sum((selection.first != UNVISITED) | over, axis=-1, dtype=jnp.int32)
    count = jnp.min(known)
    actions = jnp.maximum(selection.first, 0).T

    def grow(tree):
        numbers = jnp.arange(length, dtype=jnp.int32)
        draws = jax.vmap(jax.vmap(jax.random.fold_in, (0, None)), (None, 0))(keys, numbers)
        states = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf[:, ROOT], (length, size, *leaf.shape[2:])),
            tree.embeddings,
        )
        asked = draws, actions, states  # [K, B, ...], which the evaluator gets as one batch.
        asked = jax.tree.map(lambda leaf: leaf.reshape(length * size, *leaf.shape[2:]), asked)
        found = expand(*asked)
        found = jax.tree.map(lambda leaf: leaf.reshape(length, size, *leaf.shape[1:]), found)

        def grow_one(i, tree):
            answer = jax.tree.map(lambda leaf: leaf[i], found)
            return simulate(selection, lambda *_: answer, None, tree, i)

        return jax.lax.fori_loop(jnp.int32(0), count, grow_one, tree)

    is_worth_it = (length - count) * size <= _ROWS_PER_CALL * (count - 1)
    tree = jax.lax.cond(is_worth_it, grow, lambda tree: tree, tree)
    return jnp.where(is_worth_it, count, 0), tree


def _split(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits each of the keys `[B]` in two."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]


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


def _expand(game, evaluate, selection, params, keys, actions, states) -> Expansion:
    """Plays one action in each game and evaluates what comes after."""
    step = jax.vmap(functools.partial(play, game))(states, actions)
    if not selection.prior:
        logits, value = _evaluate(game, evaluate, params, keys, step.state)
        return Expansion(step.state, step.reward, step.discount, logits, value)
    keys_evaluate, keys_prior = _split(keys)
    logits, value = _evaluate(game, evaluate, params, keys_evaluate, step.state)
    legal = jax.vmap(game.legal_actions)(step.state)
    logits = mask_logits(legal, selection.prior(keys_prior, logits))
    return Expansion(step.state, step.reward, step.discount, logits, value)


def _evaluate(
    game: Game, evaluate: Evaluator, params: Any, keys: jax.Array, states: State
) -> tuple[jax.Array, jax.Array]:
    """Evaluates states, with illegal actions excluded and finished games worth 0."""
    logits, value, *_ = evaluate(params, keys, states)
    legal = jax.vmap(game.legal_actions)(states)
    over = jax.vmap(game.is_over)(states)
    return mask_logits(legal, logits), jnp.where(over, 0.0, value)
