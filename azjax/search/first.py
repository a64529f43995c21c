"""Evaluation of the first simulations of a search in one call.

This is possible if the root actions that they visit are known in advance. On an accelerator, one
call with many positions takes less time than several calls with few.
"""

import jax
import jax.numpy as jnp

from azjax.search.algorithm import Expansion
from azjax.search.simulate import Simulator, simulate
from azjax.search.tree import ROOT, UNVISITED, Tree

_ROWS_PER_CALL = 128  # Starting a call takes about as long as evaluating this many (an estimate).


def grow_first(simulator: Simulator, tree: Tree) -> tuple[jax.Array | int, Tree]:
    """Makes the simulations of `Selection.first` with one call of the evaluator.

    `Selection.first` has up to `K` actions for each tree. All trees make the same number of
    simulations here: that of the tree with the fewest actions. The call evaluates `K` actions for
    each tree, also those that are not used. If these cost more than the saved calls, no simulation
    is made here.

    Args:
      simulator: shared inputs of the simulations.
      tree: the trees, with only their roots.

    Returns:
      The number of simulations made, `int32 []`, and the trees.
    """
    selection = simulator.selection
    if selection.first is None:
        return 0, tree
    size, length = selection.first.shape
    over = jnp.all(tree.root_invalid_actions, axis=-1, keepdims=True)  # Any action will do.
    known = jnp.sum((selection.first != UNVISITED) | over, axis=-1, dtype=jnp.int32)
    count = jnp.min(known)
    actions = jnp.maximum(selection.first, 0).T

    def grow(tree):
        expansions = _expand_together(simulator, tree, actions)

        def grow_one(i, tree):
            expansion = jax.tree.map(lambda leaf: leaf[i], expansions)
            return simulate(selection, lambda *_: expansion, tree, i)

        return jax.lax.fori_loop(jnp.int32(0), count, grow_one, tree)

    is_worth_it = (length - count) * size <= _ROWS_PER_CALL * (count - 1)
    tree = jax.lax.cond(is_worth_it, grow, lambda tree: tree, tree)
    return jnp.where(is_worth_it, count, 0), tree


def _expand_together(simulator: Simulator, tree: Tree, actions: jax.Array) -> Expansion:
    """Expands the roots by `K` actions each, `[K, B]`; leaves are `[K, B, ...]`."""
    length, size = actions.shape
    numbers = jnp.arange(length, dtype=jnp.int32)
    keys = jax.vmap(jax.vmap(jax.random.fold_in, (0, None)), (None, 0))(simulator.keys, numbers)
    states = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf[:, ROOT], (length, size, *leaf.shape[2:])),
        tree.embeddings,
    )
    flat = jax.tree.map(
        lambda leaf: leaf.reshape(length * size, *leaf.shape[2:]), (keys, actions, states)
    )
    expansion = simulator.expand(*flat)
    return jax.tree.map(lambda leaf: leaf.reshape(length, size, *leaf.shape[1:]), expansion)
