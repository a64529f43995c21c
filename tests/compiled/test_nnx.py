"""Networks from NNX modules: weights, modes, averages; `test_networks.py` has two devices."""

import jax
import numpy as np
import optax
import pytest
from flax import nnx

from azjax.networks.nnx import from_nnx
from azjax.training.learner import make_learner
from azjax.training.targets import Sample
from guard import sharing
from modules import Model, random_planes


@pytest.fixture(scope="module")
def network(tic_tac_toe):
    return from_nnx(tic_tac_toe, Model)


@pytest.fixture(scope="module")
def variables(network):
    return jax.device_get(jax.jit(jax.vmap(network.init))(jax.random.split(jax.random.key(3))))


def test_weights_are_drawn_from_the_key(variables):
    one, other = variables["params"]["first"]["kernel"]
    assert (one != other).mean() > 0.9
    np.testing.assert_array_equal(variables["state"]["order"], [np.arange(18)[::-1]] * 2)


def test_its_outputs_equal_those_of_the_module(network, variables, tic_tac_toe):
    planes = random_planes(tic_tac_toe)
    variables = jax.tree.map(lambda leaf: leaf[0], variables)
    module = Model(nnx.Rngs(jax.random.split(jax.random.key(3))[0]))

    @jax.jit
    def ours(variables, planes):
        trained, updated = network.train(variables, planes, None)
        return trained, network.apply({"params": variables["params"], **updated}, planes), updated

    @nnx.jit
    def theirs(module, planes):
        module.train()
        trained = module(planes)
        module.eval()
        return trained, module(planes)

    with sharing():
        (*outputs, updated), expected = ours(variables, planes), theirs(module, planes)
    for found, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-6)
    mean = module.norm.mean[...]
    np.testing.assert_allclose(updated["state"]["norm"]["mean"], mean, rtol=1e-6)
    assert abs(outputs[0][0] - outputs[1][0]).max() > 1e-3  # By the statistics, not by the batch.


def test_a_learner_averages_statistics_and_keeps_integers(network, variables, tic_tac_toe):
    variables = jax.tree.map(lambda leaf: leaf[0], variables)
    policy, value = np.full((8, 9), np.float32(1 / 9)), np.ones(8, np.float32)
    samples = Sample(random_planes(tic_tac_toe), np.ones((8, 9), bool), policy, value)
    learner = make_learner(network, optax.sgd(0.1), ema_decay=0.5)

    def two_updates(state, samples):
        for _ in range(2):
            state, _ = learner.update(state, samples, None)
        return state

    with sharing():
        state = jax.jit(two_updates)(learner.init(variables), samples)
    average, last = state.average["state"], state.variables["state"]
    assert average["order"].dtype == np.int32
    np.testing.assert_array_equal(average["order"], np.arange(18)[::-1])
    assert (average["norm"]["mean"] != last["norm"]["mean"]).any()
    assert (last["norm"]["mean"] != 0).any()
