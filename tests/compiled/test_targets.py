"""Targets against a plain recursion; symmetries; the replay buffer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax import games
from azjax.games.square import ENCODINGS
from azjax.training.replay import ReplayConfig, make_replay
from azjax.training.targets import (
    Sample,
    TargetConfig,
    Transition,
    augment,
    make_samples,
    outcomes,
    transform,
)
from integers import random_game
from refusals import assert_refused

LENGTH, KEY = 24, jax.random.key(0)


@jax.jit
def make(outcome_weight, td_lambda, reward, discount, root_value):
    """Returns outcomes and samples of transitions `[LENGTH, B]`."""
    marks = [jnp.full((*reward.shape, 2), mark) for mark in (1.0, 2.0, 3.0)]
    moves = Transition(*marks, root_value, reward, reward, discount)
    return outcomes(moves, td_lambda), make_samples(TargetConfig(outcome_weight, td_lambda), moves)


def test_targets_equal_a_plain_recursion():
    """Of games in which players may move twice; most are cut off by the last transition."""
    rng, shape = np.random.default_rng(0), (LENGTH, 32)
    discount = rng.choice(np.float32([-1, -1, -1, 1, 0]), shape)
    reward = np.where(discount == 0, rng.integers(-1, 2, shape), 0).astype(np.float32)
    root_value = rng.uniform(-1, 1, shape).astype(np.float32)
    for td_lambda, weight in ((0.0, 1.0), (0.3, 0.6), (0.9, 0.0), (1.0, 0.6)):
        with guard.sharing():
            z, samples = jax.device_get(make(weight, td_lambda, reward, discount, root_value))
        expected = np.where(discount[-1] == 0, reward[-1], root_value[-1])
        for t in reversed(range(LENGTH)):
            if t < LENGTH - 1:
                later = (1 - td_lambda) * root_value[t + 1] + td_lambda * expected
                expected = reward[t] + discount[t] * later
            np.testing.assert_allclose(z[t], expected, atol=1e-5)
        mixed = weight * z + (1 - weight) * root_value
        np.testing.assert_allclose(samples.value, mixed, atol=1e-6)
        # Observation, legal actions and policy are those of the search.
        assert [set(leaf.ravel()) for leaf in samples[:3]] == [{1}, {2}, {3}]


# --- Symmetries ---------------------------------------------------------------------------


def walk(game, moves):
    """The samples of a game `[T]`: planes of every encoding, the move as the target policy."""

    def step(state, move):
        planes = jnp.concatenate([game.observe(state, e) for e in ENCODINGS], axis=-1)
        policy = jax.nn.one_hot(move, game.num_actions)
        sample = Sample(planes, game.legal_actions(state), policy, jnp.float32(0.5))
        return game.step(state, move)[0], sample

    return jax.lax.scan(step, game.init(), moves)[1]


@pytest.mark.parametrize("name", ["tic_tac_toe", "hex_swap:3"])
def test_a_transformed_game_is_the_game_of_the_transformed_moves(name):
    game = games.make(name)

    @jax.jit
    @jax.vmap
    def both_ways(key, symmetry):
        moves = random_game(game, key)[1]
        image = jnp.argsort(jnp.asarray(game.symmetries.actions)[symmetry])[moves]
        transformed = jax.vmap(lambda s: transform(game, s, symmetry))(walk(game, moves))
        return transformed, walk(game, image)

    symmetries = np.tile(np.arange(game.num_symmetries), 8)
    with guard.sharing():
        transformed, replayed = both_ways(jax.random.split(KEY, len(symmetries)), symmetries)
    jax.tree.map(np.testing.assert_array_equal, transformed, replayed)


def test_augmentation_draws_a_symmetry_for_each_sample(tic_tac_toe):
    game, copies, rng = tic_tac_toe, 1024, np.random.default_rng(0)
    sample = Sample(*(np.float32(rng.random(shape)) for shape in ((3, 3, 1), 9, 9, ())))
    batch = jax.tree.map(lambda leaf: np.stack([leaf] * copies), sample)
    batch = batch._replace(value=np.linspace(-1, 1, copies, dtype=np.float32))
    with guard.sharing():
        drawn = jax.device_get(jax.jit(functools.partial(augment, game))(KEY, batch))
    np.testing.assert_array_equal(drawn.value, batch.value)

    cells, actions = game.symmetries.cells, game.symmetries.actions
    same = (drawn.planes.reshape(copies, 1, -1) == sample.planes.ravel()[cells]).all(axis=2)
    np.testing.assert_array_equal(same.sum(axis=1), 1)
    which, count = same.argmax(axis=1), same.sum(axis=0)
    np.testing.assert_array_equal(drawn.legal, sample.legal[actions][which])
    np.testing.assert_array_equal(drawn.policy, sample.policy[actions][which])
    assert (abs(count - copies / 8) < 5 * np.sqrt(copies / 8)).all()

    extra = functools.partial(augment, game, KEY, batch._replace(extra=1))
    assert_refused((extra, "have an extra"))


# The replay buffer.


SHARDS, RING, DRAWS = 2, 6, 3  # Shards, positions per shard, and draws per shard.
REPLAY = make_replay(ReplayConfig(capacity=SHARDS * RING, shards=SHARDS), SHARDS * DRAWS)
EXAMPLE = Sample(jnp.zeros((2, 2, 1), bool), jnp.zeros(3, bool), jnp.zeros(3), jnp.zeros(()))


def numbered(numbers):
    """Numbered samples, with a different encoding of the number in each leaf."""
    numbers = np.asarray(numbers)
    bits = (numbers[..., None] >> np.arange(7)) & 1 == 1
    planes = bits[..., :4].reshape(*numbers.shape, 2, 2, 1)
    policy = np.stack([numbers, -numbers, 2 * numbers], axis=-1).astype(np.float32)
    return Sample(planes, bits[..., 4:], policy, numbers.astype(np.float32))


def rows(start, count):
    """Numbers for one `add`: shard 0 gets even ones, shard 1 odd ones, `[SHARDS, count]`."""
    return 2 * np.arange(start, start + count)[None] + np.arange(SHARDS)[:, None]


@jax.jit
def draw(state):
    """Draws 2,000 times from every shard; leaves `[2000, SHARDS, DRAWS, ...]`."""
    keys = jax.random.split(KEY, (2000, SHARDS))
    return jax.vmap(lambda keys: REPLAY.sample(state, keys))(keys)


add = jax.jit(REPLAY.add)


def draw_after(total, count):
    """Draws from a buffer after adding `total` samples per shard, `count` at a time."""
    state = REPLAY.init(EXAMPLE, SHARDS)
    with guard.sharing():
        for start in range(0, total, count):
            state = add(state, numbered(rows(start, count)))
        return jax.device_get(draw(state))


def assert_uniform(counts):
    """Chi-square test of uniformity; a fair draw fails once in a million."""
    expected = counts.sum() / counts.size
    degrees = counts.size - 1
    assert ((counts - expected) ** 2 / expected).sum() < degrees + 5 * np.sqrt(2 * degrees) + 12


def test_only_the_newest_are_sampled_uniformly_and_whole():
    for total, count in [(4, 4), (12, 4), (20, 4), (6, 6)]:
        drawn = draw_after(total, count)
        for shard in range(SHARDS):
            newest = rows(0, total)[shard][-RING:]
            found, counts = np.unique(drawn.value[:, shard], return_counts=True)
            np.testing.assert_array_equal(found, newest)
            assert_uniform(counts)
        expected = numbered(np.asarray(drawn.value, int))
        jax.tree.map(np.testing.assert_array_equal, drawn, expected)
        assert [x.dtype for x in drawn[:4]] == [x.dtype for x in EXAMPLE[:4]]


def test_draws_are_independent():
    slots = np.asarray(draw_after(6, 6).value, int) // 2  # [2000, SHARDS, DRAWS]
    for one, other in [
        (slots[:, 0, 0], slots[:, 1, 0]),  # Between shards.
        (slots[:, 0, 0], slots[:, 0, 1]),  # Within one batch.
        (slots[:-1, 0, 0], slots[1:, 0, 0]),  # From batch to batch.
    ]:
        assert_uniform(np.bincount(RING * one + other, minlength=RING**2))
