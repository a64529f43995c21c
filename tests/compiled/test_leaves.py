"""Several leaves a simulation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games import hashing
from azjax.games.base import init_batch
from azjax.search import PUCT, ROOT, Gumbel, leaves, make_search, uniform_evaluator

GAME = games.make("othello:4")  # Its players pass.
WEIGHTS = np.random.default_rng(0).standard_normal((64, GAME.num_actions + 1)).astype(np.float32)
BATCH = 12


def evaluate(params, key, states):
    """A deterministic evaluator without structure."""
    del params, key
    numbers = hashing.contents(states, axes=1).astype(jnp.float32)
    outputs = jnp.tanh(numbers @ WEIGHTS[: numbers.shape[1]] / 8)
    return 2 * outputs[:, :-1], outputs[:, -1]


def draw(params, keys, states):
    """A random evaluator."""
    values = jax.vmap(lambda key: jax.random.uniform(key, minval=-1.0))(keys)
    return jnp.zeros((len(values), GAME.num_actions)), values


def search(algorithm, together, evaluate=evaluate):
    grow = functools.partial(leaves.grow, together=together)
    find = jax.jit(make_search(algorithm, GAME, evaluate, grow))
    return jax.device_get(find(None, jax.random.key(0), init_batch(GAME, BATCH)))


@pytest.mark.compiles(1)
@pytest.mark.parametrize("algorithm", [PUCT, Gumbel])
def test_trees_of_several_leaves_add_up(algorithm):
    tree = search(algorithm(32), together=4).tree
    assert (tree.node_visits[:, ROOT] == 33).all()
    assert (tree.children_visits[:, ROOT].sum(axis=1) == 32).all()
    visits = tree.children_visits
    own = tree.node_visits - visits.sum(axis=2)
    values = np.where(visits > 0, tree.children_values, 0)
    q = tree.children_rewards + tree.children_discounts * values
    total = own * tree.raw_values + (visits * q).sum(axis=2)
    inside = visits.sum(axis=2) > 0
    assert (own[inside] >= 1).all()
    means = total[inside] / tree.node_visits[inside]
    np.testing.assert_allclose(tree.node_values[inside], means, atol=1e-4)


@pytest.mark.compiles(1)
def test_a_leaf_that_is_selected_twice_has_one_value():
    """Of a random evaluator, too: the mean of a node is that of what is below it."""
    result = search(PUCT(32), together=32, evaluate=draw)
    below = np.sum(result.visit_counts * result.q_values, axis=1)
    expected = (result.tree.raw_values[:, ROOT] + below) / 33
    np.testing.assert_allclose(result.value, expected, atol=1e-5)


@pytest.mark.compiles(1)
def test_a_round_of_leaves_sees_those_before_it():
    """Four leaves of one round are four different nodes: one that waits counts as a loss.

    As a draw, the move that the prior prefers would be selected again.
    """

    def prefer(params, keys, states):
        first = jnp.argmax(jax.vmap(GAME.legal_actions)(states), axis=1)
        return 1.5 * jax.nn.one_hot(first, GAME.num_actions), jnp.zeros(len(first))

    result = search(PUCT(4), together=4, evaluate=prefer)
    legal = np.sum(~result.tree.root_invalid_actions, axis=1)
    assert ((result.visit_counts > 0).sum(axis=1) == np.minimum(legal, 4)).all()


def test_leaves_divide_the_simulations(monkeypatch):
    rounds, simulate = [], leaves.simulate

    def spy(roots, selection, count, i, tree):
        rounds.append(count)
        return simulate(roots, selection, count, i, tree)

    monkeypatch.setattr(leaves, "simulate", spy)
    for simulations, together in ((10, 4), (50, 8)):
        grow = functools.partial(leaves.grow, together=together)
        find = make_search(PUCT(simulations), GAME, uniform_evaluator(GAME), grow)
        jax.eval_shape(find, None, jax.random.key(0), init_batch(GAME, 1))
    assert {*rounds} == {2, 5}
