"""The replay buffer overwrites the oldest samples and draws uniformly, shard by shard."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from azjax.training.replay import ReplayConfig, make_replay
from azjax.training.sharding import AXIS, make_mesh
from azjax.training.targets import Sample
from refusals import assert_refused

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
def draw_many(state):
    """Draws 2,000 times from every shard; leaves `[2000, SHARDS, DRAWS, ...]`."""
    keys = jax.random.split(jax.random.key(0), (2000, SHARDS))
    return jax.vmap(lambda keys: REPLAY.sample(state, keys))(keys)


add = jax.jit(REPLAY.add)


def filled(total, count):
    """A buffer after adding `total` samples per shard, `count` at a time."""
    state = REPLAY.init(EXAMPLE, SHARDS)
    for start in range(0, total, count):
        state = add(state, numbered(rows(start, count)))
    return state


def assert_uniform(counts):
    """Chi-square test of uniformity; a fair draw fails once in a million."""
    expected = counts.sum() / counts.size
    degrees = counts.size - 1
    assert ((counts - expected) ** 2 / expected).sum() < degrees + 5 * np.sqrt(2 * degrees) + 12


def test_only_the_newest_are_sampled_uniformly():
    for total, count in [(1, 1), (4, 2), (6, 6), (20, 4)]:
        drawn = draw_many(filled(total, count))
        for shard in range(SHARDS):
            newest = rows(0, total)[shard][-RING:]
            found, counts = np.unique(drawn.value[:, shard], return_counts=True)
            np.testing.assert_array_equal(found, newest)
            assert_uniform(counts)


def test_a_sample_stays_whole():
    drawn = draw_many(filled(20, 4))
    expected = numbered(np.asarray(drawn.value, int))
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(drawn), expected)
    assert [x.dtype for x in jax.tree.leaves(drawn)] == [x.dtype for x in jax.tree.leaves(EXAMPLE)]


def test_draws_are_independent():
    slots = np.asarray(draw_many(filled(6, 6)).value, int) // 2  # [2000, SHARDS, DRAWS]
    for one, other in [
        (slots[:, 0, 0], slots[:, 1, 0]),  # Between shards.
        (slots[:, 0, 0], slots[:, 0, 1]),  # Within one batch.
        (slots[:-1, 0, 0], slots[1:, 0, 0]),  # From batch to batch.
    ]:
        assert_uniform(np.bincount(RING * one + other, minlength=RING**2))


def test_the_draws_depend_only_on_the_keys():
    state = filled(6, 6)
    keys = jax.random.split(jax.random.key(1), SHARDS)
    sample = jax.jit(REPLAY.sample)
    once, again, other = sample(state, keys), sample(state, keys), sample(state, keys[::-1])
    np.testing.assert_array_equal(once.value, again.value)
    assert (once.value != other.value).any()


@pytest.mark.slow
def test_the_same_on_one_device_or_two():
    def use(state, samples, keys):
        state = REPLAY.add(state, samples)
        return state, REPLAY.sample(state, keys)

    results = []
    for count in (1, 2):
        mesh = make_mesh(jax.devices()[:count])
        spread = jax.shard_map(use, mesh=mesh, in_specs=P(AXIS), out_specs=P(AXIS), check_vma=False)
        keys = jax.random.split(jax.random.key(1), SHARDS)
        results.append(jax.device_get(jax.jit(spread)(filled(4, 4), numbered(rows(4, 4)), keys)))
    jax.tree.map(np.testing.assert_array_equal, *results)


def test_refusals():
    def begin(batch_size):
        config = ReplayConfig(capacity=SHARDS * RING, shards=SHARDS)
        return make_replay(config, batch_size).init(EXAMPLE, SHARDS)

    small = ReplayConfig(capacity=20, shards=2)
    assert_refused(
        (lambda: make_replay(small, 24), "replay.capacity is 20, less than ... 24: ...least 24"),
        *((lambda n=n: begin(n), f"a batch of {n} ... 2 shards: use a multiple") for n in (3, 1)),
        (lambda: ReplayConfig(capacity=0), "replay.capacity is 0: use 1 or more"),
        (lambda: ReplayConfig(shards=0), "replay.shards is 0: use 1 to 65536"),
    )
