"""The loss compared with NumPy, and updates with a textbook of the learner."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import guard
from azjax.networks import Network
from azjax.training.learner import LearnerConfig, configured_learner
from azjax.training.loss import alphazero_loss, policy_loss
from azjax.training.targets import Sample

ACTIONS, BATCH, STEPS = 5, 8, 6
CONFIG = LearnerConfig(
    optimizer="sgd",
    learning_rate=0.1,
    warmup_steps=0,
    decay_steps=0,
    clip_norm=0.1,
    value_weight=0.5,
    l2=0.01,
    policy_surprise=0.7,
    ema_decay=0.3,
)
WEIGHTS = {"value_weight": 0.5, "l2": 0.01, "policy_surprise": 0.7}


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
        params = {
            "logits": np.random.default_rng(1).normal(size=(4, ACTIONS)),
            "value": np.random.default_rng(2).normal(size=4),
        }
        params = jax.tree.map(np.float32, params)
        return {"params": params, "batch_stats": {"count": np.int32(0), "mean": np.float32(0)}}

    def apply(variables, planes):
        x, params = planes.reshape(len(planes), -1).astype(jnp.float32), variables["params"]
        return x @ params["logits"], jnp.tanh(x @ params["value"])

    def train(variables, planes, axis_name):
        stats = jax.tree.map(lambda leaf: leaf + 1, variables["batch_stats"])
        return apply(variables, planes), {"batch_stats": stats}

    return Network("relative", init, apply, train, fold=lambda variables: variables, infer=apply)


NETWORK, SAMPLES = linear_network(), random_samples()
VARIABLES = NETWORK.init(None)
PARAMS = VARIABLES["params"]


def cross_entropy(logits, policy, legal):
    """`-sum pi log p` over the legal actions, one row at a time, in double precision."""
    losses = []
    for row, target, allowed in zip(np.float64(logits), policy, legal, strict=True):
        p = np.exp(row[allowed] - row[allowed].max())
        losses.append(-np.sum(target[allowed] * np.log(p / p.sum())))
    return np.array(losses)


def entropy(policy):
    return np.array([-np.sum(p[p > 0] * np.log(p[p > 0])) for p in np.float64(policy)])


# --- The loss ---------------------------------------------------------------------------


def test_the_loss_against_numpy():
    x = np.float64(SAMPLES.planes.reshape(BATCH, -1))
    logits, value = x @ np.float64(PARAMS["logits"]), np.tanh(x @ np.float64(PARAMS["value"]))
    each = cross_entropy(logits, SAMPLES.policy, SAMPLES.legal)
    policy, kl = each.mean(), each - entropy(SAMPLES.policy)
    squared = np.mean((SAMPLES.value - value) ** 2)
    l2 = 0.01 * sum(np.sum(np.float64(leaf) ** 2) for leaf in PARAMS.values())
    expected = {"value_loss": squared, "policy_loss": policy, "policy_kl": kl.mean(), "l2": l2}
    outputs = NETWORK.apply(VARIABLES, SAMPLES.planes)
    for surprise in (0.0, 0.7, 1.0):
        weights = WEIGHTS | {"policy_surprise": surprise}
        total, losses = alphazero_loss(outputs, PARAMS, SAMPLES, **weights)
        dealt = (1 - surprise) * policy + surprise * np.sum(kl / kl.sum() * each)
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


def test_illegal_logits_have_no_influence():
    def total(logits):
        return jnp.sum(policy_loss(logits, SAMPLES.policy, SAMPLES.legal))

    logits = 3 * np.random.default_rng(1).standard_normal((BATCH, ACTIONS)).astype(np.float32)
    gradient, legal = jax.jit(jax.value_and_grad(total)), SAMPLES.legal
    with guard.sharing():
        before = jax.device_get(gradient(logits))
        for illegal in (-1e30, 50.0, 1e30):
            after = jax.device_get(gradient(np.where(legal, logits, np.float32(illegal))))
            jax.tree.map(np.testing.assert_array_equal, before, after)
            assert (after[1][~legal] == 0).all()
        loss, slope = jax.device_get(gradient(30 * logits))
    np.testing.assert_allclose(before[0], cross_entropy(logits, *SAMPLES[2:0:-1]).sum(), rtol=1e-5)
    assert np.isfinite(loss) and (slope[-1] == 0).all()  # A single legal action.


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
        outputs = NETWORK.apply(dict(VARIABLES, params=params), SAMPLES.planes)
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
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
        (states.variables["params"], losses["loss"], losses["grad_norm"]),
        (params, totals, norms),  # The norm before clipping.
    )
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
        half = jax.tree.map(lambda leaf, i=device: leaf[i], both)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), one, half)


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
