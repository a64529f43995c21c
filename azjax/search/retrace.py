# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false, reportIndexIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
"""A finished search grown again from its tree alone, one simulation at a time.

The same code runs as in the search itself, with the finished tree in the place of game and
evaluator: node numbers are the states, and what stands in the tree is their evaluation.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.search.plan import Plan, SearchConfig
from azjax.search.puct import Terms, puct_action, puct_terms
from azjax.search.tree import simulate


class History(NamedTuple):
    """What a tree was like before the first of its `K` simulations, and after each.

    Attributes:
      node_visits: `int32 [K + 1, N]`; a node that does not exist yet has none.
      node_values: `float32 [K + 1, N]`, means, for the player to move there.
      children_visits: `int32 [K + 1, N, A]`.
      terms: what PUCT sees of the actions, every leaf `[K + 1, N, A]`. In a node that does not
        exist yet they mean nothing.
    """

    node_visits: jax.Array
    node_values: jax.Array
    children_visits: jax.Array
    terms: Terms


def retrace(config: SearchConfig, tree: mctx.Tree) -> tuple[mctx.Tree, History]:
    """Grows the tree of a finished PUCT search again; pure, to be jitted.

    Args:
      config: what the search was made with. Its noise is in the tree already.
      tree: one tree as `SearchResult.tree` holds it, without the batch axis.

    Returns:
      The tree grown anew, with node numbers as embeddings, whose visits and values equal
      those of `tree` if this is how it grew; and its history.

    Raises:
      ValueError: if the search was not PUCT.
    """
    if config.algorithm != "puct":
        raise ValueError(
            f"a search by {config.algorithm} cannot be traced: search with algorithm='puct'"
        )
    select = functools.partial(puct_action, config)
    plan = Plan(None, None, select, select, lambda tree: None)
    remember = functools.partial(_remember, tree)
    num_nodes = len(tree.node_visits)

    def grow(grown, k):
        grown = simulate(plan, remember, num_nodes, None, jax.random.key(0), grown, k)
        return grown, _snapshot(config, grown)

    root = _only_root(tree)
    grown, after = jax.lax.scan(grow, root, jnp.arange(num_nodes - 1))
    before = _snapshot(config, root)
    history = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), before, after)
    return jax.tree.map(lambda leaf: leaf[0], grown), history


def _only_root(tree: mctx.Tree) -> mctx.Tree:
    """Forgets everything but the evaluated root; adds a batch axis."""
    numbers = jnp.arange(len(tree.node_visits))
    is_root = numbers == tree.ROOT_INDEX
    tree = tree.replace(
        node_visits=is_root.astype(tree.node_visits.dtype),
        node_values=jnp.where(is_root, tree.raw_values, 0.0),
        parents=jnp.full_like(tree.parents, tree.NO_PARENT),
        action_from_parent=jnp.full_like(tree.action_from_parent, tree.NO_PARENT),
        children_index=jnp.full_like(tree.children_index, tree.UNVISITED),
        children_visits=jnp.zeros_like(tree.children_visits),
        children_values=jnp.zeros_like(tree.children_values),
        children_rewards=jnp.zeros_like(tree.children_rewards),
        children_discounts=jnp.zeros_like(tree.children_discounts),
        embeddings=numbers,
    )
    return jax.tree.map(lambda leaf: leaf[None], tree)


def _remember(tree: mctx.Tree, params, key, actions, nodes):
    """Answers what game and evaluator answered, from what they left in the finished tree."""
    del params, key
    children = tree.children_index[nodes, actions]
    output = mctx.RecurrentFnOutput(
        reward=tree.children_rewards[nodes, actions],
        discount=tree.children_discounts[nodes, actions],
        prior_logits=tree.children_prior_logits[children],
        value=tree.raw_values[children],
    )
    return output, children


def _snapshot(config: SearchConfig, grown: mctx.Tree) -> History:
    tree = jax.tree.map(lambda leaf: leaf[0], grown)
    nodes = jnp.arange(len(tree.node_visits))
    terms = jax.vmap(functools.partial(puct_terms, config), in_axes=(None, 0))(tree, nodes)
    return History(tree.node_visits, tree.node_values, tree.children_visits, terms)
