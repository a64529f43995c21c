"""UCT: its rule at every node, the order of first visits, and ties."""

import jax
import numpy as np
from scipy.stats import chisquare

from azjax.search import UCT
from azjax.search.uct import random_order, uct_action
from guard import sharing
from tables import AS_IN_TRAINING, bench, repeat, run

EMPTY = (0,) * 9
FORK = (1, 0, 0, 0, -1, 0, 0, 0, 1)
LATE = (1, -1, 1, -1, -1, 1, 0, 0, 0)  # Three cells left.


def test_every_node_follows_the_ucb1_formula():
    """With 60 constants, so that a slightly different bound changes the choice in many nodes."""
    states = repeat(FORK, LATE)
    tree = run(UCT(), bench("tic_tac_toe").random_table(), states, luck=1.0).tree
    constants = np.linspace(0.05, 6, 60, dtype=np.float32)

    def choose(exploration, tree, node):
        return uct_action(UCT(exploration=exploration), tree, node)

    at_nodes = jax.vmap(jax.vmap(choose, (None, None, 0)), (None, 0, None))
    at_nodes = jax.vmap(at_nodes, (0, None, None))
    with sharing():
        compiled = jax.jit(at_nodes, compiler_options=AS_IN_TRAINING)
        chosen = np.asarray(compiled(constants, tree, np.arange(33)))
    states, visits = tree.embeddings, tree.children_visits
    legal = (states.board == 0) & ~states.over[..., None]
    complete = (tree.node_visits > 0) & ((visits > 0) | ~legal).all(axis=-1) & legal.any(axis=-1)
    b, node = np.nonzero(complete)
    n, legal = visits[b, node], legal[b, node]
    total = n.sum(axis=-1, keepdims=True) + (node > 0)[:, None]  # Plus its own rollout.
    mean = (tree.children_rewards + tree.children_discounts * tree.children_values)[b, node]
    bound = np.sqrt(np.log(total + 1) / np.maximum(n, 1))
    score = np.where(legal, mean + constants[:, None, None] * bound, -99)
    best = np.sort(score, axis=-1)
    clear = best[..., -1] - best[..., -2] > 1e-4
    assert clear.sum() > 5000
    np.testing.assert_array_equal(chosen[:, b, node][clear], score.argmax(-1)[clear])


def test_untried_actions_are_tried_in_uniformly_random_order():
    """At the root and below it, counted over many positions."""
    table, start = bench("tic_tac_toe").constant_table(0), repeat(EMPTY)
    trees = [run(UCT(), table, start, seed=seed).tree for seed in range(16)]
    index = np.concatenate([tree.children_index[:, 0] for tree in trees])
    tried = np.argsort(index, axis=1)
    for place in range(9):
        assert chisquare(np.bincount(tried[:, place], minlength=9)).pvalue > 1e-4
    pairs = np.bincount(tried[:, 0] * 9 + tried[:, 1], minlength=81)
    assert chisquare(np.delete(pairs, np.arange(9) * 10)).pvalue > 1e-4
    below = [t.action_from_parent[t.parents == t.children_index[:, :1, 0]] for t in trees]
    counts = np.bincount(np.concatenate(below), minlength=9)
    assert counts[0] == 0 and chisquare(counts[1:]).pvalue > 1e-4  # Below action 0.
    orders = random_order(jax.random.split(jax.random.key(1), 4096), np.zeros((4096, 9)))
    assert chisquare(np.bincount(orders.argmax(axis=1), minlength=9)).pvalue > 1e-4


def test_the_order_of_first_visits_does_not_depend_on_the_evaluator():
    """Below the root, the order and the evaluation of a position have keys of their own."""
    table, start = bench("tic_tac_toe").constant_table(0), repeat(EMPTY)
    tree = run(UCT(), table, start, luck=1.0).tree
    values = tree.raw_values[:, 1:10].ravel()  # The first nine nodes below the root.
    first = tree.children_prior_logits[:, 1:10].max(axis=-1).ravel()
    assert abs(np.corrcoef(values, first)[0, 1]) < 0.15
