"""The loop of a search: each simulation selects, expands and backs up, in all trees of a batch.

The vmapped loop of `mctx.search` copies a tree at every step; here one loop updates all trees of a
batch in place. Selection stops at finished games, so a tree is never deeper than the longest game.
"""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx

from azjax.games.base import State
from azjax.search.algorithm import (
    NEVER,
    NO_PARENT,
    ROOT,
    UNVISITED,
    Expansion,
    Roots,
    Selection,
    Tree,
    legal_actions,
    mask_logits,
    split_each,
)


def grow(roots: Roots, selection: Selection, num_simulations: int) -> Tree:
    """Returns the trees after all simulations."""
    tree = init(roots, selection, num_simulations)
    one = functools.partial(simulate, roots, selection)
    return jax.lax.fori_loop(0, num_simulations, one, tree)


def init(roots: Roots, selection: Selection, num_simulations: int) -> Tree:
    """Makes trees with room for `num_simulations` that contain only their roots, visited once."""
    logits, value = mask_logits(roots.legal, selection.logits), roots.value
    size, num_actions = logits.shape
    chex.assert_tree_shape_prefix((value, roots.states, selection.extra), (size,))
    node = size, 1 + num_simulations
    edge = *node, num_actions

    def with_root(root):
        leaf = jnp.zeros((*node, *root.shape[1:]), root.dtype)
        return leaf.at[:, ROOT].set(root)

    make: Any = mctx.Tree  # Type checkers do not see its fields.
    return make(
        node_visits=with_root(jnp.ones(size, jnp.int32)),
        raw_values=with_root(value),
        node_values=with_root(value),
        parents=jnp.full(node, NO_PARENT, jnp.int32),
        action_from_parent=jnp.full(node, -1, jnp.int32),
        children_index=jnp.full(edge, UNVISITED, jnp.int32),
        children_prior_logits=with_root(logits),
        children_visits=jnp.zeros(edge, jnp.int32),
        children_rewards=jnp.zeros(edge, value.dtype),
        children_discounts=jnp.zeros(edge, value.dtype),
        children_values=jnp.zeros(edge, value.dtype),
        embeddings=jax.tree.map(with_root, roots.states),
        root_invalid_actions=~roots.legal,
        extra_data=selection.extra,
    )


class Edge(NamedTuple):
    """An action in one node of each tree."""

    depth: jax.Array  # int32 [], moves from the roots to the deepest of the nodes.
    node: jax.Array  # int32 [B]
    action: jax.Array  # int32 [B], chosen there.


def simulate(roots: Roots, selection: Selection, i: jax.Array, tree: Tree) -> Tree:
    """Adds simulation number `i []` to every tree; a new node gets the number `i + 1`."""
    edge = descend(selection, tree)
    batch = jnp.arange(edge.node.shape[0])
    states = jax.tree.map(lambda leaf: leaf[batch, edge.node], tree.embeddings)
    expansion = expand(roots, selection, i, edge.action, states)
    # The node after each edge may be a finished game that an earlier simulation reached.
    at_edge = batch, edge.node, edge.action
    child = tree.children_index[at_edge]
    child = jnp.where(child == UNVISITED, i + 1, child)
    tree = add_leaf(tree, edge, child, expansion)
    return backup(tree, child, expansion.value, edge.depth + 1)


def descend(selection: Selection, tree: Tree) -> Edge:
    """Chooses actions from every root down to an unvisited action or a finished game.

    A tree keeps its edge from then on, until the choice has ended in all trees.
    """
    size = tree.node_values.shape[0]
    batch = jnp.arange(size)
    root = jnp.full(size, ROOT, jnp.int32)

    def follow(edge):
        """Returns the nodes `[B]` after the edges, and in which trees selection continues."""
        child = tree.children_index[batch, edge.node, edge.action]
        has_moves = jnp.any(jax.vmap(legal_actions)(tree, child), axis=-1)
        return child, (child != UNVISITED) & has_moves

    def choose(edge):
        child, continues = follow(edge)
        node = jnp.where(continues, child, edge.node)
        action = jax.vmap(selection.below)(tree, node)
        return Edge(edge.depth + 1, node, jnp.where(continues, action, edge.action))

    first = Edge(jnp.int32(0), root, jax.vmap(selection.at_root)(tree, root))
    return jax.lax.while_loop(lambda edge: jnp.any(follow(edge)[1]), choose, first)


def expand(
    roots: Roots, selection: Selection, i: jax.Array, actions: jax.Array, states: State
) -> Expansion:
    """Plays actions `[B]` in states `[B, ...]` and evaluates; `i` is `[]` or `[B]`."""
    keys = roots.keys_expand
    keys = jax.vmap(jax.random.fold_in)(keys, jnp.broadcast_to(i, keys.shape))
    if selection.prior is None:
        return roots.expand(keys, actions, states)
    keys, keys_prior = split_each(keys)
    expansion = roots.expand(keys, actions, states)
    logits = selection.prior(keys_prior, expansion.logits)
    return expansion._replace(logits=mask_logits(expansion.logits != NEVER, logits))


def add_leaf(tree: Tree, edge: Edge, child: jax.Array, expansion: Expansion) -> Tree:
    """Writes the nodes `child [B]` after the edges, and counts a visit there."""
    batch = jnp.arange(child.shape[0])
    at_edge, at_child = (batch, edge.node, edge.action), (batch, child)
    return tree.replace(
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


def backup(tree: Tree, leaf: jax.Array, value: jax.Array, depth: jax.Array) -> Tree:
    """Adds the leaves' values `[B]` to all nodes above them; leaves are at most `depth` deep.

    On the way up, `value = reward + discount * value`, and a node's mean becomes
    `(mean * count + value) / (count + 1)`. The edge to a node has the same mean.
    """
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
        # Every write depends on the read of the same array, so XLA needs no copy.
        count = tree.node_visits[batch, node]
        mean = update_mean(tree.node_values[batch, node], count, value)
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


def update_mean(mean: jax.Array, count: jax.Array, value: jax.Array) -> jax.Array:
    """Returns the mean after one more value; `count` values are in `mean`."""
    visits = count.astype(value.dtype)
    return (mean * visits + value) / (visits + 1.0)
