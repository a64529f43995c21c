"""An iteration is reproducible, equal on 1 and 2 devices, compiled once, and lowered for GPUs."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from azjax import comparison, games, training
from azjax.games.base import init_batch
from azjax.networks import MLPConfig
from azjax.runs import presets
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel, make_search, uniform_evaluator
from azjax.training import loop
from azjax.training import step as steps
from azjax.training.learner import Learner, LearnerConfig, LearnerState
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from azjax.training.targets import TargetConfig, Transition, make_samples, transform
from experiments.benchmark.iterations import make_play
from small import conv
from trained import assert_same

GAME = games.make("tic_tac_toe")

# A network with BatchNorm, so that statistics are compared, and large steps. SGD, since Adam
# amplifies rounding errors of gradients near zero.
CONFIG = Config(
    network=conv(width=4, blocks=0, head_hidden=4),
    search=Gumbel(num_simulations=4),
    selfplay=SelfPlayConfig(games=64, unroll_length=8, archive=20_000, archive_share=0.8),
    replay=ReplayConfig(capacity=1024, shards=8),
    learner=LearnerConfig(
        batch_size=16, steps=3, optimizer="sgd", learning_rate=0.1, warmup_steps=0, l2=1e-3
    ),
)
PARTS = make_parts(CONFIG)
KEY = jax.random.key(CONFIG.seed)


class Run:
    """A compiled iteration, and the results of its first call.

    One device runs the pure functions, two run those for a mesh.
    """

    def __init__(self, num_devices):
        self.mesh = training.make_mesh(jax.devices()[:num_devices])
        if num_devices == 1:
            self.iterate = jax.jit(functools.partial(training.iteration, PARTS), donate_argnums=0)
            self.before = jax.jit(functools.partial(training.init, PARTS))(KEY)
        else:
            self.iterate = training.make_iteration(PARTS, self.mesh)
            self.before = training.make_state(PARTS, KEY, self.mesh)
        self.after, self.metrics = self.iterate(copy(self.before))


def copy(state):
    """Returns a copy that can be donated."""
    return jax.tree.map(jnp.copy, state)


@pytest.fixture(scope="module")
def one():
    return Run(1)


@pytest.fixture(scope="module")
def two():
    return Run(2)


def test_an_iteration_is_reproducible_bit_for_bit(one, two):
    state = copy(two.before)
    assert_same(two.iterate(state), (two.after, two.metrics))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))  # It was donated.
    for run in (one, two):
        run.iterate(copy(run.after))  # If it compiled again, `guard` would fail this test.


def test_one_device_and_two_agree(one, two):
    assert_same(one.before, two.before)
    for name in ("games", "archive", "iteration", "key"):
        assert_same(getattr(one.after, name), getattr(two.after, name))
    assert_same(one.metrics[1:], two.metrics[1:])
    for ours, theirs in (
        (one.after.replay, two.after.replay),
        (one.metrics.losses, two.metrics.losses),
        (one.after.learner, two.after.learner),
    ):
        close = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
        jax.tree.map(close, ours, theirs)


def test_every_iteration_has_new_random_draws(two):
    # The games and the network are the same, but the iteration number differs.
    counted_on = copy(two.before).replace(iteration=two.before.iteration + 1)
    assert (two.iterate(counted_on)[0].games.states.board != two.after.games.states.board).any()


def test_the_average_plays_and_the_parameters_learn(two):
    def perturb(name):
        learner = two.before.learner
        changed = jax.tree.map(lambda x: x + 0.1, getattr(learner, name))
        state = two.before.replace(learner=learner._replace(**{name: changed}))
        return two.iterate(copy(state))[0]

    assert_same(perturb("variables").replay, two.after.replay)
    with pytest.raises(AssertionError):
        assert_same(perturb("average").replay, two.after.replay)


def test_iterate_passes_the_state_on(two, monkeypatch):
    def make_state(parts, key, mesh):
        assert (parts, key) == (PARTS, "key") and mesh.size == jax.device_count()
        return copy(two.before)

    monkeypatch.setattr(loop, "make_state", make_state)
    monkeypatch.setattr(loop, "compiled", lambda function, state: two.iterate)
    iterations = loop.iterate(PARTS, "key")
    state, metrics = next(iterations)
    assert_same((state, metrics), (two.after, two.metrics))
    assert_same(next(iterations), two.iterate(copy(two.after)))


def test_devices_play_and_search_alone(two):
    """A collective inside a search would wait for the other device at every node."""
    program = str(jax.make_jaxpr(make_play(PARTS, two.mesh))(two.before))
    assert "shard_map" in program
    assert not re.search("psum|pmean|all_gather|all_to_all|ppermute", program)


# From given moves to the optimizer.

PLIES, GAMES, SHARDS, STEPS, BATCH = 6, 16, 2, 8, 32
GIVEN = Config(
    network=MLPConfig(encoding="absolute", hidden=(4,), head_hidden=4),
    selfplay=SelfPlayConfig(games=GAMES, unroll_length=PLIES),
    targets=TargetConfig(outcome_weight=0.7, td_lambda=0.4),
    replay=ReplayConfig(capacity=GAMES * PLIES, shards=SHARDS),  # Exactly full.
    learner=LearnerConfig(batch_size=BATCH, steps=STEPS),
)


def given_moves():
    """Generated moves `[PLIES, GAMES, ...]` in which all numbers differ."""
    rng, axes = np.random.default_rng(0), (PLIES, GAMES)
    discount = np.where(rng.random(axes) < 0.2, 0.0, -1.0)
    reward = np.where(discount == 0, rng.integers(-1, 2, axes), 0.0)
    return Transition(
        planes=rng.random((*axes, 3, 3, 3)) < 0.5,
        legal=rng.random((*axes, 9)) < 0.7,
        action_weights=np.float32(rng.dirichlet(np.ones(9), axes)),
        root_value=np.float32(rng.uniform(-1, 1, axes)),
        action=np.zeros(axes, np.int32),
        reward=np.float32(reward),
        discount=np.float32(discount),
    )


def take_down(notes, samples, axis_name):
    """A learner that only records the batches; the losses depend on the step."""
    step = notes.step
    batches = jax.tree.map(lambda all, one: all.at[step].set(one), notes.variables, samples)
    losses = {name: jnp.float32(step + i) for i, name in enumerate("abc")}
    return notes._replace(variables=batches, step=step + 1), losses


@pytest.fixture(scope="module")
def found():
    """Of an iteration with given moves: buffer, batches `[STEPS, BATCH, ...]`, metrics, targets."""
    moves = given_moves()

    @jax.jit
    def iterate(key):
        parts = make_parts(GIVEN)
        blank = jax.tree.map(
            lambda leaf: jnp.zeros((STEPS, BATCH, *leaf.shape), leaf.dtype), training.example(parts)
        )
        notes = LearnerState(blank, (), (), jnp.int32(0))
        parts = parts._replace(learner=Learner(lambda variables: notes, take_down, STEPS))
        state, metrics = training.iteration(parts, training.init(parts, key))
        samples = make_samples(GIVEN.targets, moves)
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), samples)
        image = functools.partial(transform, GAME)
        images = jax.vmap(jax.vmap(image, (0, None)), (None, 0))(flat, jnp.arange(8))
        return state.replay.samples, state.learner.variables, metrics, samples, images

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "self_play", lambda p, v, keys, games, *others: (games, moves))
        return jax.device_get(iterate(KEY))


def test_metrics_are_means_of_the_steps_and_counts_of_games(found):
    for i, name in enumerate("abc"):
        np.testing.assert_allclose(found[2].losses[name], np.mean(np.arange(STEPS)) + i)
    assert found[2].games == (given_moves().discount == 0).sum() < GAMES * PLIES


def test_the_buffer_holds_the_configured_targets(found):
    for ours, theirs in zip(*map(jax.tree.leaves, (found[0], found[3])), strict=True):
        by_game = np.swapaxes(theirs, 0, 1).reshape(ours.shape)
        np.testing.assert_allclose(ours, by_game, atol=1e-6)


def test_batches_are_samples_under_every_symmetry(found):
    """Each training sample is a symmetric copy of a played one, identified by its value."""
    batches = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), found[1])
    rows = abs(found[3].value.reshape(-1, 1) - batches.value).argmin(axis=0)
    same = np.ones((8, STEPS * BATCH), bool)
    for image, learned in zip(*map(jax.tree.leaves, (found[4], batches)), strict=True):
        same &= np.isclose(image[:, rows], learned, atol=1e-6).reshape(*same.shape, -1).all(axis=-1)
    assert (same.sum(axis=0) == 1).all()
    assert abs(same.sum(axis=1) - 32).max() < 5 * np.sqrt(32 * 7 / 8)
    assert len(np.unique(rows)) > 60  # Of 96; with few draws the batches would repeat.


@pytest.mark.compiles(2)
def test_each_seed_starts_from_its_key(monkeypatch):
    monkeypatch.setattr(comparison, "init", lambda parts, key: jax.random.key_data(key) + parts)
    monkeypatch.setattr(comparison, "iteration", lambda parts, state: (2 * state + parts, state))
    states, advance = comparison.compile_seeds(1, 3)
    expected = [np.asarray(jax.random.key_data(jax.random.key(seed))) + 1 for seed in range(3)]
    np.testing.assert_array_equal(states, expected)
    states, _ = advance(states)
    np.testing.assert_array_equal(states, 2 * np.array(expected) + 1)


# Lowered for an accelerator on a CPU.


def test_an_iteration_is_lowered_for_an_accelerator(monkeypatch):
    """Tracing makes no choice: parts built for a platform never read the default backend."""

    def refuse():
        raise AssertionError("the default backend was read")

    smoke = presets.smoke(presets.get("paper"))
    small = dataclasses.replace(smoke, network=conv(width=4, blocks=1))
    monkeypatch.setattr(jax, "default_backend", refuse)
    parts, mesh = make_parts(small, platform="cuda"), training.make_mesh(jax.devices()[:2])
    run = training.make_iteration(parts, mesh)
    exported = export.export(run, platforms=["cuda"])(training.abstract_state(parts, mesh))
    assert (exported.platforms, exported.nr_devices) == (("cuda",), 2)
    assert "stablehlo.convolution" in exported.mlir_module()


def test_a_search_on_a_gpu_has_no_loop_of_unknown_length():
    """Loops of known length are `scan` in the traced program; Gumbel noise needs no loop."""
    small = presets.smoke(presets.get("default"))
    for platform, has_loops in (("cpu", True), ("cuda", False)):
        parts = make_parts(small, platform=platform)
        search = make_search(parts.search, parts.game, uniform_evaluator(parts.game), parts.grow)
        given = None, jax.random.key(0), init_batch(parts.game, 2), 1.0, True
        assert ("while[" in str(jax.make_jaxpr(search)(*given))) == has_loops
