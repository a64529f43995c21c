"""Reuse of a search tree: the subtree below the move made is where the next search continues.

The next search equals one that never stopped, with three exceptions. The prior of its root is made
again, with new noise. At a root with noise, and always in Gumbel AlphaZero, old visits count for
values but not for exploration, which they would suppress. And a subtree larger than the room for it
loses its youngest nodes: their values stay in the nodes above, but the actions to them are
unvisited again.
"""

import jax
import jax.numpy as jnp

from azjax._settings import Positive, checked
from azjax.games.base import where
from azjax.search.algorithm import NO_PARENT, ROOT, UNVISITED, Tree


def resume(tree: Tree, kept: Tree) -> Tree:
    """Returns new trees `[B, M + N]` that start with the nodes of those kept, `[B, M]`.

    The logits of the roots stay those of the new trees. Where a kept tree is empty, the new one
    stays as it is.
    """
    kept = kept.replace(root_invalid_actions=tree.root_invalid_actions, extra_data=None)
    grown = jax.tree.map(lambda new, old: new.at[:, : old.shape[1]].set(old), tree, kept)
    logits = tree.children_prior_logits[:, ROOT]
    logits = grown.children_prior_logits.at[:, ROOT].set(logits)
    return where(kept.node_visits[:, ROOT] > 0, grown.replace(children_prior_logits=logits), tree)


def reroot(tree: Tree, action: jax.Array, room: int) -> Tree:
    """Returns the subtrees below one action of each root, for `search(..., tree=...)`.

    Args:
      tree: the trees of a search, `[B, N]` nodes.
      action: `int32 [B]`, the move made at each root.
      room: `M`, how many nodes to keep at most.

    Returns:
      Trees of `M` nodes. A tree is empty, with 0 visits of its root, where the action has no visit
      or ends the game. The next search ignores empty trees.
    """
    room = checked("room", room, Positive)
    batch = jnp.arange(tree.node_visits.shape[0])
    child = tree.children_index[batch, ROOT, action]
    goes_on = jnp.any(~tree.root_invalid_actions, axis=-1) & (child != UNVISITED)
    goes_on &= tree.children_discounts[batch, ROOT, action] != 0
    goes_on &= (action >= 0) & (action < tree.num_actions)
    return jax.vmap(_subtree, (0, 0, 0, None))(tree, child, goes_on, room)


def _subtree(tree: Tree, top: jax.Array, goes_on: jax.Array, room: int) -> Tree:
    """Returns what is below node `top []` of one tree, which moves to `ROOT`."""
    num_nodes = tree.parents.shape[0]
    node = jnp.arange(num_nodes, dtype=jnp.int32)
    # In the end: `top` above the nodes of its subtree, and the root above all others.
    above = jnp.where((tree.parents == NO_PARENT) | (node == top), node, tree.parents)
    for _ in range(max(num_nodes - 1, 1).bit_length()):
        above = above[above]
    belongs = goes_on & (above == top) & (tree.node_visits > 0)
    number = jnp.cumsum(belongs, dtype=jnp.int32) - 1  # A parent has a lower number than its child.
    belongs &= number < room
    to = jnp.where(belongs, number, room)  # Writes out of bounds are dropped.

    def move(leaf, empty=0):
        moved = jnp.full((room, *leaf.shape[1:]), empty, leaf.dtype)
        return moved.at[to].set(leaf, mode="drop")

    def renumber(index, none):
        known = (index >= 0) & belongs[index]
        return jnp.where(known, number[index], none)

    stays = (tree.children_index >= 0) & belongs[tree.children_index]

    def move_edges(leaf):
        return move(jnp.where(stays, leaf, 0))

    return tree.replace(
        node_visits=move(tree.node_visits),
        raw_values=move(tree.raw_values),
        node_values=move(tree.node_values),
        parents=move(
            jnp.where(node == top, NO_PARENT, renumber(tree.parents, NO_PARENT)), NO_PARENT
        ),
        action_from_parent=move(jnp.where(node == top, -1, tree.action_from_parent), -1),
        children_index=move(renumber(tree.children_index, UNVISITED), UNVISITED),
        children_prior_logits=move(tree.children_prior_logits),
        children_visits=move_edges(tree.children_visits),
        children_rewards=move_edges(tree.children_rewards),
        children_discounts=move_edges(tree.children_discounts),
        children_values=move_edges(tree.children_values),
        embeddings=jax.tree.map(move, tree.embeddings),
        extra_data=None,
    )
