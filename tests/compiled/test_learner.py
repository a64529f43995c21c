"""The loss compared with NumPy, and updates with a textbook of the learner."""

import collections
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import entr, log_softmax, softmax

import guard
from azjax.networks import Network
from azjax.training.learner import (
    LearnerConfig,
    alphazero_loss,
    configured_learner,
    learning_rate,
    make_learner,
    make_optimizer,
)
from azjax.training.targets import Sample
from small import take

ACTIONS, BATCH, STEPS = 5, 8, 6
CONSTANT = {"learning_rate": 0.1, "warmup_steps": 0, "decay_steps": 0}
WEIGHTS = {"value_weight": 0.5, "l2": 0.01, "policy_surprise": 0.7}
CONFIG = LearnerConfig(optimizer="sgd", clip_norm=0.1, ema_decay=0.3, **CONSTANT, **WEIGHTS)
PLAIN = LearnerConfig(clip_norm=0.0, ema_decay=0.0, **CONSTANT)


def random_samples():
    """Positions of four cells with random legal actions, the last of which has only one."""
    rng = np.random.default_rng(0)
    legal = rng.random((BATCH, ACTIONS)) < 0.6
    legal[:, 1] = True
    legal[-1] = np.arange(ACTIONS) == 1
    policy = rng.random((BATCH, ACTIONS)) * legal
    policy /= policy.sum(axis=1, keepdims=True)
    planes, value = rng.random((BATCH, 2, 2, 1)) < 0.5, rng.uniform(-1, 1, BATCH)
    return Sample(planes, legal, np.float32(policy), np.float32(value))


def linear_network():
    """`logits = x W`, `value = tanh(x v)`; its statistics count the training steps."""

    def init(key):
        rng, sizes = np.random.default_rng(1), {"logits": (4, ACTIONS), "value": 4}
        params = {name: np.float32(rng.normal(size=size)) for name, size in sizes.items()}
        return {"params": params, "batch_stats": {"count": np.int32(0), "mean": np.float32(0)}}

    def apply(variables, planes):
        x, params = planes.reshape(len(planes), -1).astype(jnp.float32), variables["params"]
        return x @ params["logits"], jnp.tanh(x @ params["value"])

    def train(variables, planes, axis_name):
        stats = jax.tree.map(lambda leaf: leaf + 1, variables["batch_stats"])
        return apply(variables, planes), {"batch_stats": stats}

    return Network("relative", init, train, infer=apply)


NETWORK, SAMPLES = linear_network(), random_samples()
VARIABLES = NETWORK.init(None)
PARAMS = VARIABLES["params"]


def assert_close(found, expected, rtol=1e-4):
    close = functools.partial(np.testing.assert_allclose, rtol=rtol, atol=1e-6)
    jax.tree.map(close, found, expected)


# --- The loss ---------------------------------------------------------------------------


def test_the_loss_against_numpy():
    x = np.float64(SAMPLES.planes.reshape(BATCH, -1))
    logits, value = x @ np.float64(PARAMS["logits"]), np.tanh(x @ np.float64(PARAMS["value"]))
    target, masked = np.float64(SAMPLES.policy), np.where(SAMPLES.legal, logits, -np.inf)
    each = -np.sum(target * np.where(SAMPLES.legal, log_softmax(masked, axis=1), 0), axis=1)
    policy, kl = each.mean(), each - entr(target).sum(axis=1)
    squared = np.mean((SAMPLES.value - value) ** 2)
    l2 = 0.01 * sum(np.sum(np.float64(leaf) ** 2) for leaf in PARAMS.values())
    expected = {"value_loss": squared, "policy_loss": policy, "policy_kl": kl.mean(), "l2": l2}
    outputs = NETWORK.infer(NETWORK.fold(VARIABLES), SAMPLES.planes)
    outputs = jnp.where(SAMPLES.legal, outputs[0], 1e30), outputs[1]  # Of illegal actions.
    surplus = softmax(masked, axis=1) - target
    for surprise in (0.0, 0.7, 1.0):
        weights = WEIGHTS | {"policy_surprise": surprise}
        loss = functools.partial(alphazero_loss, params=PARAMS, samples=SAMPLES, **weights)
        (total, losses), (gradient, _) = jax.value_and_grad(loss, has_aux=True)(outputs)
        shares = 1 - surprise + surprise * kl / kl.mean()  # The gradient keeps them constant.
        np.testing.assert_allclose(gradient, shares[:, None] * surplus / BATCH, atol=1e-6)
        dealt = np.mean(shares * each)
        assert dealt > 1.05 * policy or not surprise
        assert losses.keys() == expected.keys()
        for name, number in expected.items():
            np.testing.assert_allclose(losses[name], number, rtol=1e-5)
        np.testing.assert_allclose(total, dealt + 0.5 * squared + l2, rtol=1e-5)
    perfect = jnp.log(jnp.maximum(SAMPLES.policy, 1e-30)) + 7  # A constant has no effect.
    _, losses = alphazero_loss((perfect, outputs[1]), {}, SAMPLES)
    assert abs(losses["policy_kl"]) < 1e-5 and losses["l2"] == 0
    with pytest.raises(AssertionError):  # Values [B, 1] would broadcast.
        alphazero_loss((perfect, outputs[1][:, None]), {}, SAMPLES)


# --- The update -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    """States and losses of some steps on one batch, alone and by devices with half of it each.

    And those of a learner without clipping and average, and of the textbook.
    """
    learner = configured_learner(CONFIG, NETWORK)
    plain = configured_learner(dataclasses.replace(CONFIG, clip_norm=0, ema_decay=0), NETWORK)
    halves = jax.tree.map(lambda leaf: leaf.reshape(2, -1, *leaf.shape[1:]), SAMPLES)

    def run(learner, samples, axis_name=None):
        def step(state, _):
            state, losses = learner.update(state, samples, axis_name)
            return state, (state, losses)

        return jax.lax.scan(step, learner.init(VARIABLES), length=STEPS)[1]

    def loss(params):
        folded = NETWORK.fold(dict(VARIABLES, params=params))
        outputs = NETWORK.infer(folded, SAMPLES.planes)
        return alphazero_loss(outputs, params, SAMPLES, **WEIGHTS)[0]

    def textbook():
        """SGD with momentum, and a gradient of norm 0.1 at most."""
        params, velocity, states = PARAMS, jax.tree.map(jnp.zeros_like, PARAMS), []
        for _ in range(STEPS):
            total, gradient = jax.value_and_grad(loss)(params)
            norm = optax.tree.norm(gradient)
            gradient = jax.tree.map(lambda g, n=norm: g / jnp.maximum(n / 0.1, 1), gradient)
            velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradient)
            params = jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity)
            states.append((params, total, norm))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    def everything():
        split = jax.vmap(lambda half: run(learner, half, "devices"), axis_name="devices")
        return run(learner, SAMPLES), split(halves), run(plain, SAMPLES), textbook()

    return jax.device_get(jax.jit(everything)())


def test_updates_follow_the_textbook_and_count(found):
    (states, losses), _, _, (params, totals, norms) = found
    ours = states.variables["params"], losses["loss"], losses["grad_norm"]
    assert_close(ours, (params, totals, norms))  # The norm before clipping.
    assert (norms > 0.1).any()
    np.testing.assert_array_equal(states.step, range(1, STEPS + 1))
    np.testing.assert_array_equal(states.variables["batch_stats"]["count"], states.step)
    # Clipping changes updates and not the reported norm.
    states, others = found[2]
    np.testing.assert_allclose(others["grad_norm"][0], losses["grad_norm"][0], rtol=1e-6)
    norm = optax.tree.norm(jax.tree.map(lambda a, b: a[0] - b, states.variables["params"], PARAMS))
    np.testing.assert_allclose(norm, 0.1 * others["grad_norm"][0], rtol=1e-4)


def test_devices_average_their_gradients(found):
    one, both = found[:2]
    for device in range(2):
        assert_close(take(both, device), one)


def test_the_average_follows_the_parameters(found):
    """The first steps decay faster; integers are not averaged."""
    states = found[0][0]
    for expected, average, variables in zip(
        *map(jax.tree.leaves, (VARIABLES, states.average, states.variables)), strict=True
    ):
        for step in range(STEPS):
            decay = min(0.3, (1 + step) / (10 + step)) if expected.dtype == np.float32 else 0
            expected = np.asarray(decay * expected + (1 - decay) * variables[step], average.dtype)
            np.testing.assert_allclose(average[step], expected, rtol=1e-5, atol=1e-6)
    without = found[2][0]
    jax.tree.map(np.testing.assert_array_equal, without.average, without.variables)


# --- The optimizer ----------------------------------------------------------------------


def change(**settings):
    return dataclasses.replace(PLAIN, **settings)


def updates(config, *gradients, params):
    optimizer, found = make_optimizer(config), []
    with guard.sharing():  # Adam of optax compiles a helper.
        state = optimizer.init(params)
        for gradient in gradients:
            update, state = optimizer.update(gradient, state, params)
            found.append(jax.device_get(update))
    return found


def test_the_schedule_rises_and_falls():
    config = change(learning_rate=0.1, final_learning_rate=0.02, warmup_steps=10, decay_steps=20)
    found = np.asarray(learning_rate(config)(jnp.arange(40)))
    for step, expected in [(0, 0), (5, 0.05), (10, 0.1), (20, 0.06), (30, 0.02), (39, 0.02)]:
        np.testing.assert_allclose(found[step], expected, rtol=1e-4, err_msg=f"step {step}")
    assert (np.diff(found[:11]) > 0).all() and (np.diff(found[10:31]) < 0).all()
    np.testing.assert_allclose(learning_rate(PLAIN)(jnp.array([0, 9, 10**6])), 0.1, rtol=1e-6)


def test_both_optimizers_follow_the_schedule():
    ones, short = jnp.ones(1), {"warmup_steps": 2}
    adam = updates(change(**short), *[ones] * 4, params=jnp.zeros(1))
    np.testing.assert_allclose(adam, [[0], [-0.05], [-0.1], [-0.1]], rtol=1e-4)
    sgd = updates(change(optimizer="sgd", **short), *[ones] * 3, params=jnp.zeros(1))
    np.testing.assert_allclose(sgd, [[0], [-0.05 * 1.9], [-0.1 * 2.71]], rtol=1e-5)


def test_weight_decay_leaves_biases_and_scales_alone():
    """Also of other libraries, whose parameters are not dictionaries."""
    layer = collections.namedtuple("Layer", ["weight", "bias"])
    names = {"kernel": 2.0, "bias": 2.0, "scale": 2.0}
    params = {"a": names, "b": layer(2.0, 2.0)}
    params = jax.tree.map(lambda x: jnp.full(3, x), params)
    expected = {"a": names | {"bias": 0.0, "scale": 0.0}, "b": layer(2.0, 0.0)}
    expected = jax.tree.map(lambda x: np.full(3, -0.05 * x), expected)
    for optimizer in ("adam", "sgd"):
        config = change(optimizer=optimizer, weight_decay=0.5)
        none = jax.tree.map(jnp.zeros_like, params)
        for update in updates(config, none, none, params=params):  # Momentum leaves it alone.
            assert_close(update, expected, 1e-6)


def test_a_term_of_the_loss_has_a_name_of_its_own():
    def loss(outputs, params, samples, axis_name):
        return jnp.zeros(()), {"seconds": jnp.zeros(())}

    learner = make_learner(NETWORK, optax.sgd(0.1), loss)
    with pytest.raises(ValueError, match="a term seconds, as the records do"):
        jax.eval_shape(learner.update, jax.eval_shape(learner.init, VARIABLES), SAMPLES)


@pytest.mark.parametrize("name", ["l2", "policy_surprise", "clip_norm"])
def test_a_setting_that_may_be_off_can_be_swept(name):
    """Also if some of its values are 0."""

    def update(value):
        learner = configured_learner(change(**{name: value}), NETWORK)
        return learner.update(learner.init(VARIABLES), SAMPLES)[0].variables["params"]

    with guard.sharing():
        swept = jax.jit(jax.vmap(update))(np.float32([0, 0.1]))
        separate = [jax.jit(update, static_argnums=0)(value) for value in (0.0, 0.1)]
    for row, expected in enumerate(separate):
        assert_close(take(swept, row), expected, 1e-5)
