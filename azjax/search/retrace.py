"""A finished search grown again from its tree alone, one simulation at a time.

The same code runs as in the search itself, with the finished tree in the place of game and
evaluator: node numbers are the states, and what stands in the tree is their evaluation.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.search.algorithm import Selection
from azjax.search.puct import PUCT, Terms, puct_action, puct_terms
from azjax.search.simulate import Expansion, simulate
from azjax.search.tree import ROOT, Tree, new_tree


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


def retrace(settings: PUCT, tree: Tree) -> tuple[Tree, History]:
    """Grows the tree of a finished PUCT search again; pure, to be jitted.

    Args:
      settings: what the search was made with. Its noise is in the tree already.
      tree: one tree of a `SearchResult`, without the batch axis.

    Returns:
      The tree grown anew, with node numbers as embeddings, equal to `tree` if this is how it
      grew; and its history.
    """
    select = functools.partial(puct_action, settings)
    selection = Selection(tree.children_prior_logits, select, select, finish=lambda tree: tree)
    remember = functools.partial(_remember, tree)
    num_nodes = len(tree.node_visits)

    def grow(grown, k):
        grown = simulate(selection, remember, num_nodes, jax.random.key(0), grown, k)
        return grown, _snapshot(settings, grown)

    number, legal = jnp.full(1, ROOT), ~tree.root_invalid_actions[None]
    logits, value = tree.children_prior_logits[number], tree.raw_values[number]
    root = new_tree(logits, value, number, legal, num_nodes)
    grown, after = jax.lax.scan(grow, root, jnp.arange(num_nodes - 1))
    before = _snapshot(settings, root)
    history = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), before, after)
    return jax.tree.map(lambda leaf: leaf[0], grown), history


def _remember(tree: Tree, key, actions, nodes) -> Expansion:
    """Answers what game and evaluator answered, from what they left in the finished tree."""
    del key
    children = tree.children_index[nodes, actions]
    return Expansion(
        states=children,
        reward=tree.children_rewards[nodes, actions],
        discount=tree.children_discounts[nodes, actions],
        logits=tree.children_prior_logits[children],
        value=tree.raw_values[children],
    )


def _snapshot(settings: PUCT, grown: Tree) -> History:
    tree = jax.tree.map(lambda leaf: leaf[0], grown)
    nodes = jnp.arange(len(tree.node_visits))
    terms = jax.vmap(functools.partial(puct_terms, settings), in_axes=(None, 0))(tree, nodes)
    return History(tree.node_visits, tree.node_values, tree.children_visits, terms)
