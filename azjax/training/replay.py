"""The replay buffer on the device, based on the item buffer of flashbax.

The buffer has a fixed number of shards. Each is a ring buffer with separate random draws, so the
samples do not depend on the number of devices.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import flashbax
import jax
import jax.numpy as jnp

from azjax._promotion import mixing
from azjax._settings import Positive, Range, check
from azjax.training.targets import Sample

ReplayState = Any
_MOST_SHARDS = 65_536


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """Settings of the replay buffer."""

    capacity: Positive = 16_384
    """Number of newest positions to keep, over all devices, rounded down to a multiple of the
    shards. AlphaZero: those of the last million games."""
    shards: Annotated[int, Range(1, _MOST_SHARDS)] = 8
    """Number of ring buffers; a multiple of the number of devices. If the default is not a
    multiple, a new run has one per device and rounds up the numbers of games and samples."""

    def __post_init__(self):
        check("replay", self)


class Replay(NamedTuple):
    """The buffer as pure functions. `D` is a number of shards: those of one device, or all.

    Attributes:
      init: `(example, D) -> state`, for one example `Sample`; leaves are `[D, ...]`.
      add: `(state, samples [D, K, ...]) -> state`, overwriting the oldest.
      sample: `(state, keys [D]) -> samples [D, M, ...]`, uniform with replacement.
      shards: number of shards over all devices.
      capacity: number of positions over all shards.
      batch_size: number of samples in a batch over all shards.
    """

    init: Callable[[Sample, int], ReplayState]
    add: Callable[[ReplayState, Sample], ReplayState]
    sample: Callable[[ReplayState, jax.Array], Sample]
    shards: int
    capacity: int
    batch_size: int


def make_replay(config: ReplayConfig, batch_size: int) -> Replay:
    """Builds the buffer, for batches of `batch_size` samples over all shards.

    Raises:
      ValueError: if the buffer holds less than one batch. The functions of the buffer raise a
        ValueError if `batch_size` is not a multiple of the number of shards.
    """
    if config.capacity < batch_size:
        raise ValueError(
            f"replay.capacity is {config.capacity}, less than a batch of {batch_size}: use at "
            f"least {batch_size}"
        )

    @functools.cache
    def ring():  # Built at first use, after `check_parts` has checked the shards.
        if batch_size % config.shards:
            raise ValueError(
                f"a batch of {batch_size} cannot be drawn evenly from {config.shards} shards: use "
                f"a multiple of {config.shards}, or another replay.shards"
            )
        return flashbax.make_item_buffer(
            max_length=config.capacity // config.shards,
            min_length=1,
            sample_batch_size=batch_size // config.shards,
            add_batches=True,
        )

    def init(example, shards):
        state = ring().init(example)  # The width of its index depends on `jax_enable_x64`.
        state = state.replace(current_index=state.current_index.astype(jnp.int32))
        return jax.tree.map(lambda x: jnp.full((shards, *x.shape), x, x.dtype), state)

    def add(state, samples):
        return jax.vmap(mixing(ring().add))(state, samples)

    def sample(state, keys):
        return jax.vmap(mixing(ring().sample))(state, keys).experience

    return Replay(init, add, sample, config.shards, config.capacity, batch_size)
