"""The replay buffer overwrites the oldest samples and draws uniformly, shard by shard."""

import jax
import jax.numpy as jnp
import numpy as np

import guard
from azjax.training.replay import ReplayConfig, make_replay
from azjax.training.targets import Sample

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
    keys = jax.random.split(jax.random.key(0), (2000, SHARDS))
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
