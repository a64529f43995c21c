"""One simulation in a batch of trees: walk down, expand, back up.

It does what `mctx.search` does, on the same tree, but for all trees of a batch in one loop, which
updates them in place. (`mctx` carries the tree through a vmapped loop, which copies it at every
step.) And a walk ends where a game ends, so that no tree is deeper than the game.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import State
from azjax.search.algorithm import Selection
from azjax.search.tree import NO_PARENT, ROOT, UNVISITED, Tree, legal_actions


class Expansion(NamedTuple):
    """The positions that a simulation has come to, one in each tree.

    Attributes:
      states: `[B, ...]`.
      reward: `float32 [B]`, of the move that led there, to the player who made it.
      discount: `float32 [B]`, see `game.Step`.
      logits: `float32 [B, A]`; `tree.NEVER` where illegal.
      value: `float32 [B]`, for the player to move; 0 where the game is over.
    """

    states: State
    reward: jax.Array
    discount: jax.Array
    logits: jax.Array
    value: jax.Array


class _Walk(NamedTuple):
    """Walks on their way down, one in each tree.

    Attributes:
      depth: `int32 []`, moves made below the root.
      node: `int32 [B]`, where each walk is, or ended.
      action: `int32 [B]`, the action chosen there.
    """

    depth: jax.Array
    node: jax.Array
    action: jax.Array


def simulate(
    selection: Selection,
    expand: Callable[[Any, jax.Array, State], Expansion],
    keys: Any,
    tree: Tree,
    simulation: jax.Array,
) -> Tree:
    """Adds one simulation to every tree `[B, ...]`.

    Args:
      selection: how to choose actions.
      expand: `(keys [B], actions [B], states [B, ...]) -> Expansion`.
      keys: `[B]`, for `expand`; None if it draws nothing.
      tree: the trees.
      simulation: `int32 []`, how many there were before; new nodes get the next number.
    """
    batch = jnp.arange(tree.node_values.shape[0])
    walk = _descend(selection, tree)
    child = tree.children_index[batch, walk.node, walk.action]
    child = jnp.where(child == UNVISITED, simulation + 1, child)
    states = jax.tree.map(lambda leaf: leaf[batch, walk.node], tree.embeddings)
    found = expand(keys, walk.action, states)
    edge = (batch, walk.node, walk.action)
    tree = tree.replace(
        children_index=tree.children_index.at[edge].set(child),
        children_rewards=tree.children_rewards.at[edge].set(found.reward),
        children_discounts=tree.children_discounts.at[edge].set(found.discount),
        parents=tree.parents.at[batch, child].set(walk.node),
        action_from_parent=tree.action_from_parent.at[batch, child].set(walk.action),
        children_prior_logits=tree.children_prior_logits.at[batch, child].set(found.logits),
        raw_values=tree.raw_values.at[batch, child].set(found.value),
        node_values=tree.node_values.at[batch, child].set(found.value),
        node_visits=tree.node_visits.at[batch, child].add(1),
        embeddings=jax.tree.map(
            lambda leaf, new: leaf.at[batch, child].set(new), tree.embeddings, found.states
        ),
    )
    return _back_up(tree, child, walk.depth + 1, found.value)


def _descend(selection: Selection, tree: Tree) -> _Walk:
    """Follows the selection from every root until an unvisited action or a finished game."""
    size = len(tree.node_values)
    batch = jnp.arange(size)
    root = jnp.full(size, ROOT, jnp.int32)

    def below(walk):
        """The next node of each walk, and whether it goes on there."""
        child = tree.children_index[batch, walk.node, walk.action]
        goes_on = jnp.any(jax.vmap(legal_actions)(tree, child), axis=-1)
        return child, (child != UNVISITED) & goes_on

    def step(walk):
        child, moves = below(walk)
        node = jnp.where(moves, child, walk.node)
        chosen = jax.vmap(selection.below)(tree, node)
        return _Walk(walk.depth + 1, node, jnp.where(moves, chosen, walk.action))

    start = _Walk(jnp.int32(0), root, jax.vmap(selection.at_root)(tree, root))
    return jax.lax.while_loop(lambda walk: jnp.any(below(walk)[1]), step, start)


def _back_up(tree: Tree, leaf: jax.Array, depth: jax.Array, value: jax.Array) -> Tree:
    """Adds the leaves' values to all nodes up to the roots; no leaf is deeper than `depth`."""
    size, num_nodes = tree.node_values.shape
    batch = jnp.arange(size)

    def step(_, carry):
        tree, child, below, value = carry
        parent, action = tree.parents[batch, child], tree.action_from_parent[batch, child]
        passed = parent != NO_PARENT
        node = jnp.where(passed, parent, num_nodes)  # Writes to a node that does not exist drop.
        reward = tree.children_rewards[batch, node, action]
        back = reward + tree.children_discounts[batch, node, action] * value
        value = jnp.where(passed, back, value)
        # Every write depends on the read of the same array, so that XLA needs no copy.
        count = tree.node_visits[batch, node]
        visits = count.astype(value.dtype)
        mean = (tree.node_values[batch, node] * visits + value) / (visits + 1.0)
        tree = tree.replace(
            node_values=tree.node_values.at[batch, node].set(mean, mode="drop"),
            node_visits=tree.node_visits.at[batch, node].set(count + 1, mode="drop"),
            children_values=tree.children_values.at[batch, node, action].set(below, mode="drop"),
            children_visits=tree.children_visits.at[batch, node, action].add(1, mode="drop"),
        )
        return tree, jnp.where(passed, parent, child), jnp.where(passed, mean, below), value

    return jax.lax.fori_loop(0, depth, step, (tree, leaf, value, value))[0]
