"""The history of a search, reconstructed from its finished tree."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.search import PUCT, ROOT, Algorithm, Selection, Tree
from azjax.search.algorithm import Expansion
from azjax.search.puct import Terms, puct_action, puct_terms
from azjax.search.simulate import simulate
from azjax.search.tree import new_tree
from azjax.viz.layout import depths_of


class History(NamedTuple):
    """The statistics of a tree before the first of its `K` simulations, and after each.

    Attributes:
      node_visits: `int32 [K + 1, N]`; 0 for nodes that do not exist yet.
      node_values: `float32 [K + 1, N]`, means, for the player to move there.
      children_visits: `int32 [K + 1, N, A]`.
      terms: PUCT's terms of the actions, every leaf `[K + 1, N, A]`; undefined for nodes that do
        not exist yet.
    """

    node_visits: jax.Array
    node_values: jax.Array
    children_visits: jax.Array
    terms: Terms


class Simulation(NamedTuple):
    """One simulation: selection, expansion and evaluation, backup.

    Attributes:
      path: the nodes from the root to the one where the last action was chosen.
      actions: the action chosen in each of them.
      leaf: the node that the last action leads to.
      new: whether this simulation created the leaf; if not, the leaf is a finished game.
      prior: `float32 [A]`, the evaluator's probabilities at the leaf; 0 where illegal.
      value: the evaluator's value of the leaf, for the player to move there; 0 if the game is
        over.
      backup: the value added to each node of `path`, for the player to move there.
    """

    path: tuple[int, ...]
    actions: tuple[int, ...]
    leaf: int
    new: bool
    prior: np.ndarray
    value: float
    backup: tuple[np.float32, ...]


class Trace(NamedTuple):
    """A search of `K` simulations, with up to `K + 1` nodes, as NumPy arrays.

    Attributes:
      simulations: the simulations in order.
      history: the statistics before the first simulation and after each.
      parents: `int [N]`; -1 for the root and for unused numbers.
      actions: `int [N]`, the action that led to each node; -1 for the root.
      depths: `int [N]`; -1 for unused numbers.
      priors: `float32 [N, A]`, 0 where illegal.
      values: `float32 [N]`, the evaluator's, for the player to move.
      rewards: `float32 [N]`, of the action that led there, for the player who took it.
      states: the positions, every leaf `[N, ...]`.
    """

    simulations: tuple[Simulation, ...]
    history: History
    parents: np.ndarray
    actions: np.ndarray
    depths: np.ndarray
    priors: np.ndarray
    values: np.ndarray
    rewards: np.ndarray
    states: Any

    @property
    def nodes(self) -> np.ndarray:
        """The numbers of the existing nodes, in order of creation."""
        return np.flatnonzero(self.depths >= 0)


@functools.lru_cache(maxsize=16)
def _compiled(search: PUCT):
    """Compiles one program for all values of c_puct."""

    def grow(c_puct, tree):
        return _retrace(dataclasses.replace(search, c_puct=c_puct), tree)

    return jax.jit(grow)


def trace(search: Algorithm, tree: Any, row: int = 0) -> Trace:
    """Reconstructs the history of a PUCT search.

    Args:
      search: the algorithm and settings of the search.
      tree: `SearchResult.tree`.
      row: the index in the batch.

    Returns:
      The trace. Its scores, values and visits reproduce the finished tree.

    Raises:
      ValueError: if the search was not PUCT, or the tree belongs to other settings.
    """
    if not isinstance(search, PUCT):
        raise ValueError(f"a search by {search.algorithm} cannot be traced: search with PUCT()")
    tree = jax.tree.map(lambda leaf: leaf[row], tree)
    grown, history = jax.device_get(
        _compiled(dataclasses.replace(search, c_puct=0.0))(search.c_puct, tree)
    )
    tree = jax.device_get(tree)
    same = np.array_equal(grown.node_visits, tree.node_visits)
    if not (same and np.array_equal(grown.children_index, tree.children_index)):
        raise ValueError("this tree belongs to other settings: pass the PUCT of its search")
    depths = depths_of(tree.parents)
    simulations = (_simulation(tree, history, depths, k) for k in range(len(depths) - 1))
    reached = (np.maximum(tree.parents, 0), np.maximum(tree.action_from_parent, 0))
    return Trace(
        simulations=tuple(simulations),
        history=history,
        parents=tree.parents,
        actions=tree.action_from_parent,
        depths=depths,
        priors=history.terms.prior[-1] * (tree.node_visits > 0)[:, None],
        values=tree.raw_values,
        rewards=np.where(depths > 0, tree.children_rewards[reached], 0.0).astype(np.float32),
        states=tree.embeddings,
    )


def _simulation(tree, history: History, depths: np.ndarray, k: int) -> Simulation:
    """Reconstructs simulation `k` from the visits that it added."""
    visited = np.flatnonzero(history.node_visits[k + 1] > history.node_visits[k])
    *path, leaf = visited[np.argsort(depths[visited])].tolist()
    actions = [int(tree.action_from_parent[i]) for i in (*path[1:], leaf)]
    value, backup = tree.raw_values[leaf], []
    for node, action in zip(reversed(path), reversed(actions), strict=True):
        discount = tree.children_discounts[node, action]
        value = np.float32(tree.children_rewards[node, action] + discount * value)
        backup.append(value)
    return Simulation(
        path=tuple(path),
        actions=tuple(actions),
        leaf=leaf,
        new=bool(history.node_visits[k, leaf] == 0),
        prior=np.asarray(history.terms.prior[-1, leaf]),
        value=float(tree.raw_values[leaf]),
        backup=tuple(reversed(backup)),
    )


def _retrace(settings: PUCT, tree: Tree) -> tuple[Tree, History]:
    """Repeats a finished PUCT search on one tree, and keeps the history.

    It runs the code of the search with the finished tree in place of game and evaluator: states
    are node numbers, and evaluations are read from the tree. The tree already includes the noise.
    """
    select = functools.partial(puct_action, settings)
    selection = Selection(tree.children_prior_logits, select, select, finish=lambda tree: tree)
    expand = functools.partial(_expand, tree)
    num_nodes = len(tree.node_visits)

    def grow(grown, k):
        grown = simulate(selection, expand, grown, k)
        return grown, _snapshot(settings, grown)

    number, legal = jnp.full(1, ROOT), ~tree.root_invalid_actions[None]
    logits, value = tree.children_prior_logits[number], tree.raw_values[number]
    root = new_tree(logits, value, number, legal, num_nodes)
    grown, after = jax.lax.scan(grow, root, jnp.arange(num_nodes - 1))
    before = _snapshot(settings, root)
    history = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), before, after)
    return jax.tree.map(lambda leaf: leaf[0], grown), history


def _expand(tree: Tree, actions, nodes) -> Expansion:
    """Reads the results of game and evaluator from the finished tree."""
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
