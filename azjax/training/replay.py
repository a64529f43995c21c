"""The replay buffer: a fixed number of shards, each a ring of the newest samples with its own key.

Samples therefore do not depend on the number of devices.
"""

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax._settings import Positive, Range, Settings
from azjax.training.targets import Sample

_MOST_SHARDS = 65_536


@dataclasses.dataclass(frozen=True)
class ReplayConfig(Settings, section="replay"):
    """Settings of the replay buffer."""

    capacity: Positive = 16_384
    """Number of newest positions to keep, over all devices, rounded down to a multiple of the
    shards. AlphaZero: those of the last million games."""
    shards: Annotated[int, Range(1, _MOST_SHARDS)] = 8
    """Number of ring buffers; a multiple of the number of devices. If it is not, a new run has one
    per device."""


class ReplayState(NamedTuple):
    """The rings of `D` shards, of `K` places each."""

    samples: Sample  # [D, K, ...]
    place: jax.Array  # int32 [D], where the next sample goes.
    size: jax.Array  # int32 [D], number of samples in the ring.


class Replay(NamedTuple):
    """The buffer as pure functions. `D` is a number of shards: those of one device, or all."""

    # `(example, D) -> state`, for one example `Sample`; leaves are `[D, ...]`.
    init: Callable[[Sample, int], Any]
    # `(state, samples [D, K, ...]) -> state`, overwriting the oldest.
    add: Callable[[Any, Sample], Any]
    # `(state, keys [D]) -> samples [D, M, ...]`, uniform with replacement.
    sample: Callable[[Any, jax.Array], Sample]
    shards: int  # Number of shards over all devices.
    capacity: int  # Number of positions over all shards, before rounding.
    batch_size: int  # Number of samples in a batch over all shards.


def make_replay(config: ReplayConfig, batch_size: int) -> Replay:
    """Builds the buffer, for batches of `batch_size` samples over all shards."""
    places = config.capacity // config.shards

    def init(example, shards):
        empty = jax.tree.map(lambda x: jnp.zeros((shards, places, *x.shape), x.dtype), example)
        place, size = jnp.zeros((2, shards), jnp.int32)
        return ReplayState(empty, place, size)

    @jax.vmap
    def add(state, samples):
        count = len(samples.value)
        to = (state.place + jnp.arange(count, dtype=jnp.int32)) % places
        stored = jax.tree.map(lambda old, new: old.at[to].set(new), state.samples, samples)
        size = jnp.minimum(state.size + count, places)
        return ReplayState(stored, (state.place + count) % places, size)

    @jax.vmap
    def sample(state, key):
        _, key = jax.random.split(key)  # Not needed; keeps the bits of earlier runs.
        shape = (batch_size // config.shards,)
        age = jax.random.randint(key, shape, 0, state.size, jnp.int32)
        row = (state.place - state.size + age) % places
        return jax.tree.map(lambda leaf: leaf[row], state.samples)

    return Replay(init, add, sample, config.shards, config.capacity, batch_size)
