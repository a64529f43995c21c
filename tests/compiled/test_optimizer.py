"""The schedule, clipping, weight decay and momentum of the optimizer."""

import collections
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import guard
from azjax.training.learner import LearnerConfig, learning_rate, make_optimizer

PLAIN = LearnerConfig(
    learning_rate=0.1, warmup_steps=0, decay_steps=0, clip_norm=0.0, ema_decay=0.0
)


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
    for optimizer in ("adam", "sgd"):
        config = change(optimizer=optimizer, weight_decay=0.5)
        (update,) = updates(config, jax.tree.map(jnp.zeros_like, params), params=params)
        jax.tree.map(
            lambda found, x: np.testing.assert_allclose(found, np.full(3, -0.05 * x), rtol=1e-6),
            update,
            expected,
        )
