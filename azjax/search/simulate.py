"""One simulation in a batch of trees: select, expand, back up.

The trees and the results are those of `mctx.search`. Its vmapped loop copies a tree at every step;
here one loop updates all trees of a batch in place. Selection ends at finished games, so no tree is
deeper than its game.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import State
from azjax.search.algorithm import Selection
from azjax.search.tree import NO_PARENT, ROOT, UNVISITED, Tree, legal_actions


class Expansion(NamedTuple):
    """The positions that a simulation has reached, one in each tree.

    Attributes:
      states: `[B, ...]`.
      reward: `float32 [B]`, of the move that led there, to the player who made it.
      discount: `float32 [B]`, see `game.Step`.
      logits: `float32 [B, A]`; `tree.NEVER` where illegal.
      value: `float32 [B]`, for the player to move; 0 where the game is over.
    """

    states: State  # [B, ...]
    reward: jax.Array  # float32 [B]
    discount: jax.Array  # float32 [B]
    logits: jax.Array  # float32 [B, A]
    value: jax.Array  # float32 [B]


class Simulator(NamedTuple):
    """What all simulations of a search have in common.

    Attributes:
      selection: how to choose actions.
      expand: `(keys [B], actions [B], states [B, ...]) -> Expansion`: plays and evaluates.
      keys: `[B]`; simulation `i` expands with `fold_in(key, i)`.
    """

    selection: Selection
    expand: Callable[[jax.Array, jax.Array, State], Expansion]
    keys: jax.Array  # [B]


class _Edge(NamedTuple):
    """An action in a node, in each tree.

    Attributes:
      depth: `int32 []`, moves between the roots and the deepest of the nodes.
      node: `int32 [B]`.
      action: `int32 [B]`, the action chosen there.
    """

    depth: jax.Array  # int32 []
    node: jax.Array  # int32 [B]
    action: jax.Array  # int32 [B]


def simulate(
    selection: Selection,
    expand: Callable[[jax.Array, State], Expansion],
    tree: Tree,
    simulation: jax.Array,
) -> Tree:
    """Adds one simulation to every tree `[B, ...]`.

    Args:
      selection: how to choose actions.
      expand: `(actions [B], states [B, ...]) -> Expansion`: plays and evaluates.
      tree: the trees.
      simulation: `int32 []`, the simulations made before; a new node gets the next number.
    """
    edge = _select(selection, tree)
    batch = jnp.arange(len(edge.node))
    expansion = expand(
        edge.action, jax.tree.map(lambda leaf: leaf[batch, edge.node], tree.embeddings)
    )
    tree, child = _insert(tree, edge, expansion, simulation + 1)
    return _backup(tree, child, expansion.value, edge.depth + 1)


def _select(selection: Selection, tree: Tree) -> _Edge:
    """Chooses actions from every root down to an unvisited action or a finished game."""
    size = len(tree.node_values)
    batch = jnp.arange(size)
    root = jnp.full(size, ROOT, jnp.int32)

    def follow(edge):
        """The nodes `[B]` that the edges lead to, and in which trees selection goes on there."""
        child = tree.children_index[batch, edge.node, edge.action]
        has_moves = jnp.any(jax.vmap(legal_actions)(tree, child), axis=-1)
        return child, (child != UNVISITED) & has_moves

    def descend(edge):
        child, goes_on = follow(edge)
        node = jnp.where(goes_on, child, edge.node)
        action = jax.vmap(selection.below)(tree, node)
        return _Edge(edge.depth + 1, node, jnp.where(goes_on, action, edge.action))

    first = _Edge(jnp.int32(0), root, jax.vmap(selection.at_root)(tree, root))
    return jax.lax.while_loop(lambda edge: jnp.any(follow(edge)[1]), descend, first)


def _insert(
    tree: Tree, edge: _Edge, expansion: Expansion, new: jax.Array
) -> tuple[Tree, jax.Array]:
    """Writes what expansion found into the trees.

    Returns:
      The trees, and the nodes `[B]` that the edges lead to: number `new`, or that of the finished
      game that a simulation has reached before.
    """
    batch = jnp.arange(len(edge.node))
    at_edge = batch, edge.node, edge.action
    child = tree.children_index[at_edge]
    child = jnp.where(child == UNVISITED, new, child)
    at_child = batch, child
    tree = tree.replace(
        children_index=tree.children_index.at[at_edge].set(child),
        children_rewards=tree.children_rewards.at[at_edge].set(expansion.reward),
        children_discounts=tree.children_discounts.at[at_edge].set(expansion.discount),
        parents=tree.parents.at[at_child].set(edge.node),
        action_from_parent=tree.action_from_parent.at[at_child].set(edge.action),
        children_prior_logits=tree.children_prior_logits.at[at_child].set(expansion.logits),
        raw_values=tree.raw_values.at[at_child].set(expansion.value),
        node_values=tree.node_values.at[at_child].set(expansion.value),
        node_visits=tree.node_visits.at[at_child].add(1),
        embeddings=jax.tree.map(
            lambda leaf, state: leaf.at[at_child].set(state), tree.embeddings, expansion.states
        ),
    )
    return tree, child


def _backup(tree: Tree, leaf: jax.Array, value: jax.Array, depth: jax.Array) -> Tree:
    """Adds the leaves' values `[B]` to all nodes up to the roots; no leaf is below `depth`."""
    size, num_nodes = tree.node_values.shape
    batch = jnp.arange(size)

    def step(_, carry):
        tree, child, child_value, value = carry
        parent, action = tree.parents[batch, child], tree.action_from_parent[batch, child]
        has_parent = parent != NO_PARENT
        node = jnp.where(has_parent, parent, num_nodes)  # Writes out of bounds are dropped.
        reward = tree.children_rewards[batch, node, action]
        returned = reward + tree.children_discounts[batch, node, action] * value
        value = jnp.where(has_parent, returned, value)
        # Every write depends on the read of the same array, so that XLA needs no copy.
        count = tree.node_visits[batch, node]
        visits = count.astype(value.dtype)
        mean = (tree.node_values[batch, node] * visits + value) / (visits + 1.0)
        edge = batch, node, action
        tree = tree.replace(
            node_values=tree.node_values.at[batch, node].set(mean, mode="drop"),
            node_visits=tree.node_visits.at[batch, node].set(count + 1, mode="drop"),
            children_values=tree.children_values.at[edge].set(child_value, mode="drop"),
            children_visits=tree.children_visits.at[edge].add(1, mode="drop"),
        )
        child_value = jnp.where(has_parent, mean, child_value)
        return tree, jnp.where(has_parent, parent, child), child_value, value

    return jax.lax.fori_loop(0, depth, step, (tree, leaf, value, value))[0]
