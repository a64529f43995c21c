"""Networks from Flax NNX modules: modes, statistics over devices, checkpoints, errors."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax import runs, training
from azjax.networks import from_module, from_nnx
from azjax.runs import checkpoint
from azjax.runs.config import Config, CustomNetworkConfig, make_parts
from azjax.search import Gumbel
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from azjax.viz import architecture
from test_network import random_planes, train_on_one_and_two

SMALL = Config(
    network=CustomNetworkConfig(),
    search=Gumbel(num_simulations=2),
    selfplay=SelfPlayConfig(games=4, unroll_length=2),
    replay=ReplayConfig(capacity=32, shards=2),
    learner=LearnerConfig(batch_size=8, steps=2, weight_decay=0.1),
)


class Model(nnx.Module):
    """A custom network with BatchNorm, a list of layers, and arrays that are not learned."""

    def __init__(self, rngs):
        self.first = nnx.Linear(18, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, momentum=0.5, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(8, 8, rngs=rngs) for _ in range(2)])
        self.last = nnx.Linear(8, 10, rngs=rngs)
        self.order = nnx.Variable(jnp.arange(18)[::-1])
        self.scales = np.ones(8, np.float32)

    def __call__(self, planes):
        x = planes.reshape(len(planes), -1)[:, self.order[...]] * jnp.float32(1)
        x = nnx.relu(self.norm(self.first(x)))
        for layer in self.layers:
            x += self.scales[None] * nnx.relu(layer(x))
        x = self.last(x)
        return x[:, :9], jnp.tanh(x[:, 9])


@pytest.fixture(scope="module")
def network(tic_tac_toe):
    return from_nnx(tic_tac_toe, Model)


def test_its_variables_are_parameters_and_state(network):
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        shapes = jax.tree.map(jnp.shape, jax.eval_shape(network.init, jax.random.key(0)))
    assert network.made_for == (3, 3, 2, 9)
    assert shapes == {
        "params": {
            "first": {"kernel": (18, 8), "bias": (8,)},
            "norm": {"scale": (8,), "bias": (8,)},
            "layers": {i: {"kernel": (8, 8), "bias": (8,)} for i in range(2)},
            "last": {"kernel": (8, 10), "bias": (10,)},
        },
        "state": {"norm": {"mean": (8,), "var": (8,)}, "order": (18,), "scales": (8,)},
    }


def test_weights_are_drawn_from_the_key(network):
    one, same, other = (network.init(jax.random.key(seed)) for seed in (1, 1, 2))
    kernels = [variables["params"]["first"]["kernel"] for variables in (one, same, other)]
    np.testing.assert_array_equal(kernels[0], kernels[1])
    assert (kernels[0] != kernels[2]).mean() > 0.9


def test_its_outputs_equal_those_of_the_module(network, tic_tac_toe):
    planes, key = random_planes(tic_tac_toe, "relative"), jax.random.key(3)
    module, variables = Model(nnx.Rngs(key)), network.init(key)
    module.train()
    trained, updated = network.train(variables, planes, None)
    np.testing.assert_allclose(trained[0], module(planes)[0], rtol=1e-5, atol=1e-6)
    variables = {"params": variables["params"], **updated}
    for name in ("mean", "var"):
        statistic = getattr(module.norm, name)[...]
        np.testing.assert_allclose(updated["state"]["norm"][name], statistic, rtol=1e-6)
    module.eval()
    evaluated = network.apply(variables, planes)
    np.testing.assert_allclose(evaluated[0], module(planes)[0], rtol=1e-5, atol=1e-6)
    assert abs(evaluated[0] - trained[0]).max() > 1e-3  # By the statistics, not by the batch.
    inferred = jax.jit(lambda v, x: network.infer(network.fold(v), x))(variables, planes)
    np.testing.assert_allclose(inferred[0], evaluated[0], rtol=1e-5, atol=1e-6)


def test_batches_are_normalized_over_all_devices(network, tic_tac_toe):
    variables = network.init(jax.random.key(0))
    planes = random_planes(tic_tac_toe, "relative", batch=16)
    statistics = network._replace(train=lambda *args: rename(*network.train(*args)))
    whole, two = train_on_one_and_two(statistics, variables, planes)
    for found, expected in zip(two[:2], whole[:2], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    before = variables["state"]["norm"]["mean"]
    assert abs(whole[2]["norm"]["mean"] - before).max() > 1e-3
    for found, expected in zip(*map(jax.tree.leaves, (two[2], whole[2])), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)


def rename(outputs, updated):
    return outputs, {"batch_stats": updated["state"]}


class Counts(nnx.Module):
    """A module with statistics outside `nnx.BatchNorm`."""

    def __init__(self, rngs):
        self.layer = nnx.Linear(18, 10, rngs=rngs)
        self.mean = nnx.BatchStat(jnp.zeros(18))

    def __call__(self, planes):
        x = planes.reshape(len(planes), -1) * 1.0
        self.mean[...] = x.mean(axis=0)
        x = self.layer(x)
        return x[:, :9], jnp.tanh(x[:, 9])


def test_other_statistics_are_averaged_over_the_devices(tic_tac_toe):
    network = from_nnx(tic_tac_toe, Counts)
    renamed = network._replace(train=lambda *args: rename(*network.train(*args)))
    planes = random_planes(tic_tac_toe, "relative", batch=16)
    whole, two = train_on_one_and_two(renamed, network.init(jax.random.key(0)), planes)
    for found in two[2]["mean"]:
        np.testing.assert_allclose(found, whole[2]["mean"], rtol=1e-5)


def test_a_saved_training_resumes_bit_for_bit(network, tic_tac_toe, tmp_path):
    parts, mesh = make_parts(SMALL, tic_tac_toe, network), training.make_mesh(jax.devices()[:2])
    iterate = training.make_iteration(parts, mesh)
    runs.create_run(tmp_path / "run", SMALL)
    state, _ = iterate(training.make_state(parts, jax.random.key(0), mesh))
    checkpoint.save(tmp_path / "run", state, 0.0)
    restored = checkpoint.restore(tmp_path / "run", parts, mesh).state
    for saved, found in zip(*map(jax.tree.leaves, (state.learner, restored.learner)), strict=True):
        np.testing.assert_array_equal(saved, found)
    first = network.init(jax.random.key(9))["state"]
    variables = jax.device_get((state.learner.variables, state.learner.average))
    ahead, again = iterate(state)[0].learner, iterate(restored)[0].learner
    for one, other in zip(*map(jax.tree.leaves, (ahead, again)), strict=True):
        np.testing.assert_array_equal(one, other)
    for found in variables:
        np.testing.assert_array_equal(found["state"]["order"], first["order"])
        assert found["state"]["order"].dtype == jnp.int32
        assert (found["state"]["norm"]["mean"] != first["norm"]["mean"]).any()


def test_its_picture_lists_its_parameters(network, tic_tac_toe):
    parts = make_parts(SMALL, tic_tac_toe, network)
    trunk, _ = architecture.layers(parts, SMALL.network)
    sizes = {layer.title: layer.size for layer in trunk[1:]}
    assert sizes == {"first": 152, "norm": 16, "layers": 144, "last": 90}
    assert "0.kernel [8, 8]" in " ".join(next(x for x in trunk if x.title == "layers").lines)


class Variant(nnx.Module):
    """A layer with variations for the tests."""

    def __init__(self, rngs, width=18, **others):
        self.layer = nnx.Linear(width, 10, rngs=rngs)
        for name, make in others.items():
            setattr(self, name, make(rngs))

    def __call__(self, planes):
        x = self.layer(planes.reshape(len(planes), -1))
        x = self.noise(x) if hasattr(self, "noise") else x
        return x[:, :9], jnp.tanh(x[:, 9])


class Plain(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(18, 10, rngs=rngs)


class Grows(Plain):
    def __call__(self, planes):
        x = self.layer(planes.reshape(len(planes), -1))
        self.seen = nnx.Variable(x)
        return x[:, :9], jnp.tanh(x[:, 9])


class OneHead(Plain):
    def __call__(self, planes):
        return self.layer(planes.reshape(len(planes), -1))


def variant(**others):
    return functools.partial(Variant, **others)


MADE = Variant(nnx.Rngs(0))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (MADE, "make is a module, Variant, with weights already drawn: give a function that makes"),
        (lambda rngs: MADE, "make returns a module, Variant, without parameters or with weights"),
        (3, "make is of type int: give a function of rngs alone"),
        (lambda: MADE, "make cannot be called with rngs (too many positional arguments): give"),
        (nn.Dense(3), "Dense is a module of flax.linen: use from_module(game, module)"),
        (nn.Dense, "Dense is a module of flax.linen: use from_module(game, module)"),
        (lambda rngs: nn.Dense(3), "make returns Dense, a module of flax.linen: use from_module("),
        (lambda rngs: 3, "make returns int: return a module of flax.nnx"),
        (Plain, "Plain cannot be called: give it a method __call__(self, planes)"),
        (OneHead, "the module returns float32[3, 10]: make it a tuple that starts with logits"),
        (variant(width=7), "the module cannot be applied to planes bool[3, 3, 3, 2] of tic_tac_"),
        (
            variant(noise=lambda rngs: nnx.Dropout(0.5, rngs=rngs)),
            "Variant keeps a random state, noise.rngs.count, but networks draw no random numbers",
        ),
        (variant(noise=lambda rngs: nnx.Dropout(0.5)), "or draws random numbers (`determin"),
        (
            variant(kept=lambda rngs: jnp.zeros(3)),
            "Variant keeps an array, kept, that is not a variable: make it an nnx.Param",
        ),
        (
            Grows,
            "training adds or changes state.seen, a variable of the module: create it",
        ),
    ],
)
def test_invalid_modules_are_rejected(make, sentence, tic_tac_toe):
    with pytest.raises(ValueError) as error:
        from_nnx(tic_tac_toe, make)
    assert sentence in str(error.value)


@pytest.mark.parametrize("module", [MADE, Variant])
def test_from_module_names_from_nnx(module, tic_tac_toe):
    with pytest.raises(ValueError, match="Variant is a module of flax.nnx: use from_nnx"):
        from_module(tic_tac_toe, module)
