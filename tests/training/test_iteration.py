"""The steps of an iteration between self-play and the optimizer, with given moves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from azjax import training
from azjax.networks import MLPConfig
from azjax.runs.config import Config, make_parts
from azjax.training import sharding
from azjax.training import step as steps
from azjax.training.learner import Learner, LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from azjax.training.targets import TargetConfig, Transition, make_samples, transform

PLIES, GAMES, SHARDS, STEPS, BATCH = 6, 16, 2, 8, 32
CONFIG = Config(
    network=MLPConfig(encoding="absolute", hidden=(4,), head_hidden=4),
    selfplay=SelfPlayConfig(games=GAMES, unroll_length=PLIES),
    targets=TargetConfig(outcome_weight=0.7, td_lambda=0.4),
    replay=ReplayConfig(capacity=GAMES * PLIES, shards=SHARDS),  # Exactly full.
    learner=LearnerConfig(batch_size=BATCH, steps=STEPS),
)


@pytest.fixture(scope="module")
def moves():
    """Generated moves `[PLIES, GAMES, ...]` in which all numbers differ."""
    rng, axes = np.random.default_rng(0), (PLIES, GAMES)
    policy = rng.dirichlet(np.ones(9), axes)
    discount = np.where(rng.random(axes) < 0.2, 0.0, -1.0)
    return jax.tree.map(
        lambda leaf: leaf.astype(np.float32) if leaf.dtype == float else leaf,
        Transition(
            planes=rng.random((*axes, 3, 3, 3)) < 0.5,
            legal=rng.random((*axes, 9)) < 0.7,
            action_weights=policy,
            root_value=rng.uniform(-1, 1, axes),
            action=np.zeros(axes, np.int32),
            reward=np.where(discount == 0, rng.integers(-1, 2, axes), 0.0),
            discount=discount,
        ),
    )


def take_down(notes, samples, axis_name):
    """A learner that only records the batches; the losses depend on the step."""
    step, batches = notes
    batches = jax.tree.map(lambda all, one: all.at[step].set(one), batches, samples)
    losses = {name: jnp.float32(step + i) for i, name in enumerate("abc")}
    return (step + 1, batches), losses


@pytest.fixture(scope="module")
def found(moves):
    """The buffer, the batches `[STEPS, BATCH, ...]` and the metrics of an iteration."""
    mesh, parts = training.make_mesh(jax.devices()[:1]), make_parts(CONFIG)
    example = training.example(parts)
    blank = jax.tree.map(lambda leaf: jnp.zeros((STEPS, BATCH, *leaf.shape), leaf.dtype), example)
    parts = parts._replace(learner=Learner(None, take_down, STEPS))
    iterate = functools.partial(training.iteration, parts, axis_name=training.AXIS)
    state = training.make_state(make_parts(CONFIG), jax.random.key(CONFIG.seed), mesh).replace(
        learner=(jnp.int32(0), blank)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "self_play", lambda parts, key, state, axis_name: (state.games, moves))
        iterate = jax.jit(sharding._on_mesh(mesh, iterate, (training.state_specs(), P())))
        state, metrics = jax.device_get(iterate(state))
    return state.replay.experience, state.learner[1], metrics


def test_losses_are_the_means_over_the_steps(found):
    for i, name in enumerate("abc"):
        np.testing.assert_allclose(found[2].losses[name], np.mean(np.arange(STEPS)) + i)


def test_only_games_that_ended_are_counted(found, moves):
    assert found[2].games == (moves.discount == 0).sum() < found[2].moves == GAMES * PLIES


def test_the_buffer_holds_the_configured_targets(found, moves):
    samples = jax.device_get(make_samples(CONFIG.targets, moves))
    for ours, theirs in zip(*map(jax.tree.leaves, (found[0], samples)), strict=True):
        by_game = np.swapaxes(theirs, 0, 1).reshape(ours.shape)
        np.testing.assert_allclose(ours, by_game, atol=1e-6)
    for other in (TargetConfig(), TargetConfig(0.7), TargetConfig(1.0, 0.4)):
        assert (abs(make_samples(other, moves).value - samples.value) > 0.01).mean() > 0.4


def test_batches_are_samples_under_every_symmetry(found, moves, tic_tac_toe):
    """Each training sample is a symmetric copy of a played one, identified by its value."""
    samples = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), make_samples(CONFIG.targets, moves)
    )
    batches = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), found[1])
    rows = abs(samples.value[:, None] - batches.value).argmin(axis=0)
    originals = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], samples)
    images = jax.vmap(
        lambda symmetry: jax.vmap(lambda sample: transform(tic_tac_toe, sample, symmetry))(
            originals
        )
    )(jnp.arange(8))
    same = np.ones((8, STEPS * BATCH), bool)
    for image, learned in zip(*map(jax.tree.leaves, (images, batches)), strict=True):
        same &= np.isclose(image, learned, atol=1e-6).reshape(*same.shape, -1).all(axis=-1)
    assert (same.sum(axis=0) == 1).all()
    counts = same.sum(axis=1)
    assert abs(counts - 32).max() < 5 * np.sqrt(32 * 7 / 8)
    assert len(np.unique(rows)) > 60  # Of 96; with few draws the batches would repeat.
