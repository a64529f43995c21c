"""The loss compared with NumPy, the schedule and clipping, the average, and learning."""

import collections
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from azjax.networks import MLPConfig, Network, make_network
from azjax.training.learner import LearnerConfig, configured_learner, make_optimizer
from azjax.training.loss import alphazero_loss, policy_loss
from azjax.training.targets import Sample
from refusals import assert_refused
from small import conv
from tables import AS_IN_TRAINING

ACTIONS, BATCH = 5, 6
PLAIN = LearnerConfig(
    learning_rate=0.1, warmup_steps=0, decay_steps=0, clip_norm=0.0, ema_decay=0.0
)


def change(**settings):
    return dataclasses.replace(PLAIN, **settings)


def random_samples(seed=0, batch=BATCH):
    """Positions of four cells with random legal actions, the last of which has only one."""
    rng = np.random.default_rng(seed)
    legal = rng.random((batch, ACTIONS)) < 0.6
    legal[:, 1] = True
    legal[-1] = np.arange(ACTIONS) == 1
    policy = rng.random((batch, ACTIONS)) * legal
    policy /= policy.sum(axis=1, keepdims=True)
    planes, value = rng.random((batch, 2, 2, 1)) < 0.5, rng.uniform(-1, 1, batch)
    return Sample(planes, legal, np.float32(policy), np.float32(value))


def linear_network():
    """`logits = x W`, `value = tanh(x v)`; its statistics count the training steps."""

    def init(key):
        key_logits, key_value = jax.random.split(key)
        params = {
            "logits": jax.random.normal(key_logits, (4, ACTIONS)),
            "value": jax.random.normal(key_value, (4,)),
        }
        return {"params": params, "batch_stats": {"count": jnp.zeros(())}}

    def apply(variables, planes):
        x, params = planes.reshape(len(planes), -1).astype(jnp.float32), variables["params"]
        return x @ params["logits"], jnp.tanh(x @ params["value"])

    def train(variables, planes, axis_name):
        stats = {"count": variables["batch_stats"]["count"] + 1}
        return apply(variables, planes), {"batch_stats": stats}

    return Network("relative", init, apply, train, fold=lambda variables: variables, infer=apply)


NETWORK = linear_network()
VARIABLES = NETWORK.init(jax.random.key(0))
PARAMS, STATS = VARIABLES["params"], {"batch_stats": VARIABLES["batch_stats"]}


def cross_entropy(logits, policy, legal):
    """`-sum pi log p` over the legal actions, one row at a time, in double precision."""
    losses = []
    for row, target, allowed in zip(np.float64(logits), policy, legal, strict=True):
        p = np.exp(row[allowed] - row[allowed].max())
        losses.append(-np.sum(target[allowed] * np.log(p / p.sum())))
    return np.array(losses)


def random_logits(scale=3.0):
    return scale * np.random.default_rng(1).standard_normal((BATCH, ACTIONS)).astype(np.float32)


# --- The loss ---------------------------------------------------------------------------


def test_policy_loss_is_the_cross_entropy_over_legal_actions():
    samples, logits = random_samples(), random_logits()
    found = policy_loss(logits, samples.policy, samples.legal)
    np.testing.assert_allclose(
        found, cross_entropy(logits, samples.policy, samples.legal), rtol=1e-5, atol=1e-6
    )


def test_illegal_logits_have_no_influence():
    samples, logits = random_samples(), random_logits()

    @jax.jit
    @jax.value_and_grad
    def total(logits):
        return jnp.sum(policy_loss(logits, samples.policy, samples.legal))

    expected = jax.nn.softmax(jnp.where(samples.legal, logits, -jnp.inf)) - samples.policy
    before = total(logits)
    for illegal in (-1e30, -50.0, 50.0, 1e30):
        after = total(np.where(samples.legal, logits, np.float32(illegal)))
        jax.tree.map(np.testing.assert_array_equal, before, after)
        assert (after[1][~samples.legal] == 0).all()
        np.testing.assert_allclose(after[1], expected, atol=1e-6)
    loss, gradient = total(random_logits(100.0))
    assert np.isfinite(loss) and samples.legal[-1].sum() == 1
    np.testing.assert_array_equal(gradient[-1], 0)  # A single legal action.


def losses_in_numpy(samples):
    """The cross-entropy of each row, its entropy, and the value loss, for `NETWORK`."""
    x = np.float64(samples.planes.reshape(BATCH, -1))
    logits, value = x @ np.float64(PARAMS["logits"]), np.tanh(x @ np.float64(PARAMS["value"]))
    each = cross_entropy(logits, samples.policy, samples.legal)
    entropy = np.array([-np.sum(p[p > 0] * np.log(p[p > 0])) for p in np.float64(samples.policy)])
    return each, entropy, np.mean((samples.value - value) ** 2)


def test_the_loss_against_numpy():
    samples = random_samples()
    outputs = NETWORK.apply(VARIABLES, samples.planes)
    each, entropy, value = losses_in_numpy(samples)
    l2 = 0.01 * sum(np.sum(np.float64(leaf) ** 2) for leaf in PARAMS.values())
    policy, kl = each.mean(), each - entropy
    expected = {"value_loss": value, "policy_loss": policy, "policy_kl": kl.mean(), "l2": l2}
    for surprise in (0.0, 0.7, 1.0):
        weights = {"value_weight": 0.5, "l2": 0.01, "policy_surprise": surprise}
        total, losses = alphazero_loss(outputs, PARAMS, samples, **weights)
        dealt = (1 - surprise) * policy + surprise * np.sum(kl / kl.sum() * each)
        assert dealt > 1.05 * policy or not surprise
        assert losses.keys() == expected.keys()
        for name, number in expected.items():
            np.testing.assert_allclose(losses[name], number, rtol=1e-5)
        np.testing.assert_allclose(total, dealt + 0.5 * value + l2, rtol=1e-5)


def test_gradients_are_proportional_to_the_policy_surprise():
    """The gradient of each row is that of its cross-entropy times its weight."""
    samples, logits, value = random_samples(), random_logits(), jnp.zeros(BATCH)

    @functools.partial(jax.jit, static_argnums=1)
    @jax.grad
    def gradient(logits, surprise):
        return alphazero_loss((logits, value), {}, samples, policy_surprise=surprise)[0]

    plain, weighed = (gradient(logits, surprise) for surprise in (0.0, 1.0))
    kl = cross_entropy(logits, samples.policy, samples.legal)
    kl += [np.sum(p[p > 0] * np.log(p[p > 0])) for p in np.float64(samples.policy)]
    np.testing.assert_allclose(weighed, plain * (kl / kl.mean())[:, None], rtol=1e-4, atol=1e-7)
    perfect = jnp.log(jnp.maximum(samples.policy, 1e-30))
    assert jnp.isfinite(gradient(perfect, 1.0)).all()


def test_policy_kl_is_zero_when_the_policy_is_the_target():
    samples = random_samples(batch=4)._replace(planes=np.eye(4, dtype=bool).reshape(4, 2, 2, 1))
    target = np.log(np.maximum(samples.policy, 1e-30)) + 7  # Adding a constant has no effect.
    params = dict(PARAMS, logits=jnp.where(samples.legal, target, 3.0))
    outputs = NETWORK.apply(dict(VARIABLES, params=params), samples.planes)
    _, losses = alphazero_loss(outputs, params, samples)
    assert losses["policy_loss"] > 0.1
    np.testing.assert_allclose(losses["policy_kl"], 0, atol=1e-6)


# --- The optimizer ----------------------------------------------------------------------


def rates(config, steps):
    """Returns the learning rates, the negative updates of Adam for a constant gradient of 1."""
    optimizer = make_optimizer(config)

    def step(state, _):
        updates, state = optimizer.update(jnp.ones(1), state, jnp.zeros(1))
        return state, -updates[0]

    return jax.jit(lambda: jax.lax.scan(step, optimizer.init(jnp.zeros(1)), length=steps)[1])()


def test_the_schedule_rises_and_falls():
    config = change(learning_rate=0.1, final_learning_rate=0.02, warmup_steps=10, decay_steps=20)
    found = rates(config, 40)
    for step, expected in [(0, 0), (5, 0.05), (10, 0.1), (20, 0.06), (30, 0.02), (39, 0.02)]:
        np.testing.assert_allclose(found[step], expected, rtol=1e-4, err_msg=f"step {step}")
    assert (np.diff(found[:11]) > 0).all() and (np.diff(found[10:31]) < 0).all()


def test_without_warmup_and_decay_the_rate_is_constant():
    np.testing.assert_allclose(rates(PLAIN, 20), 0.1, rtol=1e-4)


def one_update(config, gradient, params):
    optimizer = make_optimizer(config)
    return jax.jit(lambda: optimizer.update(gradient, optimizer.init(params), params)[0])()


def test_clipping_shortens_long_gradients():
    for clip_norm, expected in [(0.0, [3, 4]), (1.0, [0.6, 0.8]), (10.0, [3, 4])]:
        config = change(optimizer="sgd", clip_norm=clip_norm)
        update = one_update(config, jnp.array([3.0, 4.0]), jnp.zeros(2))
        np.testing.assert_allclose(update, -0.1 * np.array(expected), rtol=1e-6)


def test_weight_decay_leaves_biases_and_scales_alone(tic_tac_toe):
    variables = jax.eval_shape(
        make_network(conv(width=2, blocks=1), tic_tac_toe).init, jax.random.key(0)
    )
    params = jax.tree.map(lambda leaf: np.full(leaf.shape, 2, np.float32), variables["params"])
    for optimizer in ("adam", "sgd"):
        config, names = change(optimizer=optimizer, weight_decay=0.5), set()
        update = one_update(config, jax.tree.map(np.zeros_like, params), params)
        for path, leaf in jax.tree_util.tree_leaves_with_path(update):
            names.add(path[-1].key)
            expected = -0.1 * 0.5 * 2.0 if path[-1].key == "kernel" else 0.0
            np.testing.assert_allclose(leaf, expected, rtol=1e-6)
        assert names == {"kernel", "bias", "scale"}


def test_weight_decay_reads_the_names_of_attributes():
    """For modules of other libraries, whose parameters are not dictionaries."""
    layer = collections.namedtuple("Layer", ["weight", "bias"])
    params = layer(jnp.array([2.0]), jnp.array([2.0]))
    config = change(optimizer="sgd", weight_decay=0.5)
    update = one_update(config, jax.tree.map(jnp.zeros_like, params), params)
    np.testing.assert_allclose(update, layer([-0.1], [0.0]), rtol=1e-6)


def test_sgd_has_momentum():
    optimizer = make_optimizer(change(optimizer="sgd"))
    state, params = optimizer.init(jnp.zeros(1)), jnp.zeros(1)
    first, state = optimizer.update(jnp.ones(1), state, params)
    second, state = optimizer.update(jnp.ones(1), state, params)
    np.testing.assert_allclose([first[0], second[0]], [-0.1, -0.19], rtol=1e-6)


# --- The update -------------------------------------------------------------------------


def updates(config, steps, samples):
    """Returns the states and losses of some steps on one batch; leaves `[steps, ...]`."""
    learner = configured_learner(config, NETWORK)

    def step(state, _):
        state, losses = learner.update(state, samples)
        return state, (state, losses)

    def scan():
        return jax.lax.scan(step, learner.init(VARIABLES), length=steps)[1]

    return jax.device_get(jax.jit(scan, compiler_options=AS_IN_TRAINING)())


def test_an_update_follows_the_gradient_and_counts():
    samples = random_samples()
    states, losses = updates(change(optimizer="sgd"), 3, samples)

    def loss(params):
        outputs = NETWORK.apply(dict(VARIABLES, params=params), samples.planes)
        return alphazero_loss(outputs, params, samples)[0]

    gradient = jax.jit(jax.grad(loss))(PARAMS)
    first = jax.tree.map(lambda leaf: leaf[0], states.variables["params"])
    expected = jax.tree.map(lambda p, g: p - 0.1 * g, PARAMS, gradient)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), first, expected)
    np.testing.assert_array_equal(states.step, [1, 2, 3])
    np.testing.assert_array_equal(states.variables["batch_stats"]["count"], [1, 2, 3])
    np.testing.assert_allclose(losses["grad_norm"][0], optax.tree.norm(gradient), rtol=1e-5)


def test_an_update_uses_the_configured_loss():
    weights, samples = {"value_weight": 0.5, "l2": 0.01, "policy_surprise": 0.7}, random_samples()
    learner = configured_learner(change(**weights), NETWORK)
    _, losses = jax.jit(lambda: learner.update(learner.init(VARIABLES), samples))()
    outputs = NETWORK.apply(VARIABLES, samples.planes)
    expected, _ = alphazero_loss(outputs, PARAMS, samples, **weights)
    np.testing.assert_allclose(losses["loss"], expected, rtol=1e-5)


def test_the_gradient_norm_is_reported_before_clipping():
    norms = [updates(change(clip_norm=c), 1, random_samples())[1]["grad_norm"] for c in (0.0, 1e-3)]
    assert norms[0] > 0.01
    np.testing.assert_array_equal(*norms)


def test_without_averaging_the_average_is_the_parameters():
    states, _ = updates(PLAIN, 3, random_samples())
    jax.tree.map(np.testing.assert_array_equal, states.average, states.variables)


def test_the_average_follows_the_parameters():
    states, _ = updates(change(ema_decay=0.3), 6, random_samples())
    for expected, average, variables in zip(
        *map(jax.tree.leaves, (VARIABLES, states.average, states.variables)), strict=True
    ):
        for step in range(6):
            decay = min(0.3, (1 + step) / (10 + step))  # The first steps decay faster.
            expected = decay * expected + (1 - decay) * variables[step]
            np.testing.assert_allclose(average[step], expected, rtol=1e-5, atol=1e-6)


def test_devices_average_their_gradients():
    samples = random_samples(batch=8)
    halves = jax.tree.map(lambda leaf: leaf.reshape(2, 4, *leaf.shape[1:]), samples)
    config = change(optimizer="sgd", l2=0.01, clip_norm=0.1, policy_surprise=0.7)
    whole = configured_learner(config, NETWORK)
    split = configured_learner(config, NETWORK)
    state = whole.init(VARIABLES)
    expected = jax.jit(whole.update)(state, samples)
    each = jax.vmap(
        lambda state, samples: split.update(state, samples, "devices"),
        in_axes=(None, 0),
        axis_name="devices",
    )
    found = jax.jit(each)(state, halves)
    for device in range(2):
        one = jax.tree.map(lambda leaf: leaf[device], found)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), one, expected)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_network_overfits_a_small_batch(tic_tac_toe, optimizer):
    network = make_network(MLPConfig(hidden=(32,), head_hidden=16), tic_tac_toe)
    rng, batch = np.random.default_rng(0), 8
    legal = rng.random((batch, 9)) < 0.5
    legal[:, 0] = True
    legal[-1] = np.arange(9) == 0
    policy = rng.random((batch, 9)) * legal
    samples = Sample(
        planes=rng.random((batch, 3, 3, 2)) < 0.4,
        legal=legal,
        policy=np.float32(policy / policy.sum(axis=1, keepdims=True)),
        value=rng.uniform(-0.9, 0.9, batch).astype(np.float32),
    )
    rate = {"adam": 0.01, "sgd": 0.1}[optimizer]
    learner = configured_learner(change(optimizer=optimizer, learning_rate=rate), network)

    @jax.jit
    def learn():
        state = learner.init(network.init(jax.random.key(0)))
        return jax.lax.scan(lambda s, _: learner.update(s, samples), state, length=400)

    state, losses = jax.device_get(learn())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((state, losses)))
    assert losses["policy_kl"][0] > 0.1 and losses["value_loss"][0] > 0.1
    assert -1e-5 < losses["policy_kl"][-1] < 1e-3
    assert losses["value_loss"][-1] < 1e-3


def test_settings_out_of_range_are_rejected():
    cases = [
        ("batch_size", 0, "use 1 or more"),
        ("steps", 0, "use 1 or more"),
        ("learning_rate", 0.0, "use above 0"),
        ("warmup_steps", -1, "use 0 or more"),
        ("l2", -1.0, "use 0 or more"),
        ("ema_decay", 1.0, "use 0 up to, not including, 1"),
        ("optimizer", "rmsprop", "use 'adam' or 'sgd'"),
    ]
    calls = [functools.partial(LearnerConfig, **{name: value}) for name, value, _ in cases]
    fragments = [f"learner.{name} is {value!r}: {allowed}" for name, value, allowed in cases]
    assert_refused(*zip(calls, fragments, strict=True))
