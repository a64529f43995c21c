"""Searches play legal actions for any evaluator, and do not depend on the rest of the batch."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.base import init_batch, where
from azjax.players import (
    alpha_beta_agent,
    minimax_agent,
    network_agent,
    sampled,
    search_agent,
)
from azjax.search import NEVER, PUCT, UCT, Gumbel, make_search
from azjax.search.evaluators import rollout_evaluator, uniform_evaluator
from tables import bench

HURT = 3  # The row of a batch whose evaluator is broken.
ROWS = 8


FAULTS = {
    "all logits -inf": lambda logits, values: (jnp.full_like(logits, -jnp.inf), values),
    "all logits lowest": lambda logits, values: (jnp.full_like(logits, NEVER), values),
    "logits NaN": lambda logits, values: (jnp.full_like(logits, jnp.nan), values),
    "one logit NaN": lambda logits, values: (logits.at[:, 4].set(jnp.nan), values),
    "one logit inf": lambda logits, values: (logits.at[:, 2].set(jnp.inf), values),
    "values NaN": lambda logits, values: (logits, jnp.full_like(values, jnp.nan)),
    "some values NaN": lambda logits, values: (logits, jnp.where(values > 0, jnp.nan, values)),
}
SETTINGS = [PUCT(num_simulations=60), Gumbel(num_simulations=60), UCT(num_simulations=60)]


def broken_evaluator(params, keys, states):
    """Returns the outputs of a table, with a fault in the marked rows."""
    table, fault, is_hurt = params
    sound = bench("tic_tac_toe").evaluate(table, keys, states)
    hurt = jax.lax.switch(fault, list(FAULTS.values()), *sound)
    return where(is_hurt, hurt, sound)


def without_hurt(result):
    return jax.tree.map(lambda leaf: np.delete(leaf, HURT, axis=0), result)


@pytest.mark.parametrize("config", SETTINGS, ids=lambda config: config.algorithm)
def test_no_evaluator_makes_a_search_play_an_illegal_action(tic_tac_toe, solution, config):
    """This holds at any depth; the other positions of the batch are not affected."""
    late = solution.decisions[solution.legal[solution.decisions].sum(axis=1) == 5][:ROWS]
    states, legal = jax.tree.map(lambda leaf: leaf[late], solution.states), solution.legal[late]
    table = jax.tree.map(jnp.asarray, bench("tic_tac_toe").random_table())
    search = make_search(config, tic_tac_toe, broken_evaluator)

    @jax.jit
    def run(fault, is_hurt):
        keys = jax.random.split(jax.random.key(0), ROWS)
        searched = search((table, fault, is_hurt), keys, states, 0.0, True)
        allowed = jax.vmap(jax.vmap(tic_tac_toe.legal_actions))(searched.tree.embeddings)
        return searched, jnp.any((searched.tree.children_visits > 0) & ~allowed)

    sound, _ = run(0, np.zeros(ROWS, bool))
    for number, name in enumerate(FAULTS):
        searched, visits_illegal = run(number, np.arange(ROWS) == HURT)
        assert not visits_illegal, name
        assert legal[np.arange(ROWS), searched.action].all(), name
        assert not (np.asarray(searched.action_weights) > 0)[~legal].any(), name
        assert (searched.visit_counts.sum(axis=1) == 60).all(), name
        others = (
            jax.tree.map(lambda leaf: np.delete(leaf, HURT, axis=0), r) for r in (sound, searched)
        )
        jax.tree.map(np.testing.assert_array_equal, *others)
        assert np.isnan(searched.value[HURT]) == ("values NaN" in name), name


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize(
    "make_agent",
    [
        network_agent,
        lambda game, evaluate, params: sampled(network_agent(game, evaluate, params)),
        lambda game, evaluate, params: sampled(
            search_agent(game, Gumbel(num_simulations=4), evaluate, params)
        ),
        lambda game, evaluate, params: minimax_agent(game, 1, evaluate, params),
        lambda game, evaluate, params: alpha_beta_agent(game, 1, evaluate, params),
    ],
    ids=["network", "network, sampled", "gumbel, sampled", "minimax", "alpha-beta"],
)
def test_no_evaluator_makes_a_player_play_an_illegal_action(tic_tac_toe, make_agent, value):
    def evaluate(params, keys, states):
        return jnp.full((len(states.board), 9), params), jnp.full(len(states.board), params)

    states = init_batch(tic_tac_toe, 1)
    for action in (0, 1, 2):
        states = jax.vmap(tic_tac_toe.step)(states, jnp.full(1, action))[0]
    agent = make_agent(tic_tac_toe, evaluate, jnp.float32(value))
    decision = jax.jit(agent.act)(agent.params, jax.random.key(0), states)
    assert decision.action[0] >= 3


@pytest.mark.parametrize("config", [PUCT(), Gumbel()], ids=lambda config: config.algorithm)
def test_a_logit_of_minus_infinity_is_a_prior_of_almost_zero(tic_tac_toe, config):
    def evaluate(params, keys, states):
        return jnp.broadcast_to(params, (len(states.board), 9)), jnp.zeros(len(states.board))

    @jax.jit
    def run(logits):
        search = make_search(config, tic_tac_toe, evaluate)
        return search(logits, jax.random.key(0), init_batch(tic_tac_toe, 1))

    logits = np.zeros(9, np.float32)
    logits[[0, 5]] = -np.inf
    prior = run(logits).prior[0]
    np.testing.assert_allclose(prior, (logits == 0) / 7, atol=1e-6)
    np.testing.assert_array_equal(run(np.full(9, -np.inf)).prior[0], run(np.zeros(9)).prior[0])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("config", SETTINGS, ids=lambda config: config.algorithm)
def test_a_result_does_not_depend_on_the_batch_around_it(tic_tac_toe, some_states, config):
    """Therefore it does not depend on the number of devices that share a batch."""
    search = jax.jit(make_search(config, tic_tac_toe, rollout_evaluator(tic_tac_toe)))
    states = jax.tree.map(lambda leaf: leaf[: 2 * ROWS], some_states)
    keys = jax.random.split(jax.random.key(0), 2 * ROWS)
    whole = search(None, keys, states)
    half = search(None, *jax.tree.map(lambda leaf: leaf[ROWS:], (keys, states)))
    for field in ("action", "visit_counts", "value", "action_weights"):
        np.testing.assert_array_equal(getattr(whole, field)[ROWS:], getattr(half, field))


@pytest.mark.parametrize("config", SETTINGS, ids=lambda config: config.algorithm)
def test_a_search_does_not_rely_on_the_length_of_the_longest_game(tic_tac_toe, config):
    """A record whose `max_plies` is too small gives the same search."""
    states = init_batch(tic_tac_toe, 2)

    @functools.partial(jax.jit, static_argnums=0)
    def visits(game):
        search = make_search(config, game, uniform_evaluator(tic_tac_toe))
        return search(None, jax.random.key(0), states).visit_counts

    np.testing.assert_array_equal(visits(tic_tac_toe._replace(max_plies=1)), visits(tic_tac_toe))
