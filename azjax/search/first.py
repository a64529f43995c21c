"""The first simulations of a search, where it is known in advance which actions they visit.

They are then evaluated in one call. An accelerator that waits for small batches waits less often.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from azjax.games.base import State
from azjax.search.algorithm import Selection
from azjax.search.simulate import Expansion, simulate
from azjax.search.tree import ROOT, UNVISITED, Tree

_ROWS_PER_CALL = 128  # The evaluations that take as long as the start of a call.


def grow_first(
    selection: Selection,
    expand: Callable[[jax.Array, jax.Array, State], Expansion],
    keys: jax.Array,
    tree: Tree,
) -> tuple[jax.Array | int, Tree]:
    """Makes the simulations of `Selection.first` with one call of the evaluator.

    In every tree it makes as many as are known in all of them. The call evaluates all `K`: where
    the others cost more than the calls that it saves, none is made.

    Args:
      selection: how to choose actions.
      expand: `(keys [B], actions [B], states [B, ...]) -> Expansion`.
      keys: `[B]`, to be folded with the number of each simulation for `expand`.
      tree: the trees, of roots alone.

    Returns:
      How many simulations there are now, `int32 []`, and the trees.
    """
    if selection.first is None:
        return 0, tree
    size, length = selection.first.shape
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
