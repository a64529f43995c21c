"""The search tree of mctx, with its fields as a protocol for type checkers."""

from typing import Any, Protocol

import chex
import jax
import jax.numpy as jnp
import mctx

from azjax.games.base import State

ROOT = 0
UNVISITED = -1
NO_PARENT = -1
NEVER = float(jnp.finfo(jnp.float32).min)  # The logit of an illegal action; -inf would give NaN.
_LARGEST = 1e30  # Logits of legal actions are clipped to this; sums of two stay above `NEVER`.


class Tree(Protocol):
    """`B` search trees of `N` nodes; node 0 is the root. Functions for one tree get no axis `B`."""

    node_visits: jax.Array  # `int32 [B, N]`; 0 for a node that does not exist yet.
    raw_values: jax.Array  # `float32 [B, N]`, the evaluator's values.
    node_values: jax.Array  # `float32 [B, N]`, means over the visits, for the player to move there.
    # `int32 [B, N]`; `NO_PARENT` at the root and for a node that does not exist yet.
    parents: jax.Array
    action_from_parent: jax.Array  # `int32 [B, N]`; -1 where there is no parent.
    children_index: jax.Array  # `int32 [B, N, A]`, the node after each action; -1 where unvisited.
    children_prior_logits: jax.Array  # `float32 [B, N, A]`; `NEVER` exactly where illegal.
    children_visits: jax.Array  # `int32 [B, N, A]`.
    children_rewards: jax.Array  # `float32 [B, N, A]`, to the player to move.
    children_discounts: jax.Array  # `float32 [B, N, A]`, see `games.base.Step`.
    # `float32 [B, N, A]`, `node_values` of the node after each action, for the player to move in
    # that node.
    children_values: jax.Array
    embeddings: Any  # The states, leaves `[B, N, ...]`.
    root_invalid_actions: jax.Array  # `bool [B, A]`, True = not allowed.
    extra_data: Any  # `Selection.extra`, leaves `[B, ...]`.

    def replace(self, **changes: Any) -> "Tree":
        """Returns the tree with some fields replaced."""
        ...

    def qvalues(self, indices: Any) -> jax.Array:
        """Returns `reward + discount * value` of each action in node `indices` of each tree."""
        ...


def mask_logits(legal: jax.Array, logits: jax.Array) -> jax.Array:
    """Returns logits `float32 [..., A]` that are `NEVER` exactly where an action is illegal.

    Logits of legal actions are clipped to [-1e30, 1e30], so an evaluator's -inf gives a prior of
    zero, but does not make a legal action illegal. NaN is kept.
    """
    clipped = jnp.clip(logits.astype(jnp.float32), -_LARGEST, _LARGEST)
    return jnp.where(legal, clipped, NEVER)


def legal_actions(tree: Tree, node: jax.Array) -> jax.Array:
    """Returns `bool [A]`, the legal actions in one node of one tree; none in a finished game."""
    return tree.children_prior_logits[node] != NEVER


def new_tree(
    logits: jax.Array,
    value: jax.Array,
    states: State,
    legal: jax.Array,
    num_nodes: int,
    extra: Any = None,
) -> Tree:
    """Makes trees with room for `num_nodes` that contain only their roots, visited once."""
    size, num_actions = logits.shape
    chex.assert_shape([legal, value], [(size, num_actions), (size,)])
    chex.assert_tree_shape_prefix((states, extra), (size,))
    node, edge = (size, num_nodes), (size, num_nodes, num_actions)

    def with_root(root):
        leaf = jnp.zeros((size, num_nodes, *root.shape[1:]), root.dtype)
        return leaf.at[:, ROOT].set(root)

    make: Any = mctx.Tree
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
        embeddings=jax.tree.map(with_root, states),
        root_invalid_actions=~legal,
        extra_data=extra,
    )
