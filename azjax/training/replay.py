"""The replay buffer, on the device: flashbax's item buffer behind one typed seam.

The buffer is cut into a fixed number of shards, each a ring of its own with its own random
draws, so that what is sampled does not depend on how many devices the shards lie on.
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
    """How many positions are remembered."""

    capacity: Positive = 16_384
    """Positions kept, the newest ones, over all devices, rounded down to a multiple of the shards.
    AlphaZero: those of the last million games."""
    shards: Annotated[int, Range(1, _MOST_SHARDS)] = 8
    """Rings that the buffer is cut into, a multiple of the number of devices. A new run on devices
    that do not divide the default has one for each, and rounds games and batch up to match."""

    def __post_init__(self):
        check("replay", self)


class Replay(NamedTuple):
    """The buffer as pure functions. `D` is the number of shards handed in.

    Attributes:
      init: `(example, D) -> state`; the example is one `Sample`; leaves are `[D, ...]`.
      add: `(state, samples [D, K, ...]) -> state`, overwriting the oldest.
      sample: `(state, keys [D]) -> samples [D, M, ...]`, uniform with replacement.
      shards: rings over all devices.
      capacity: positions kept, over all shards.
      batch_size: samples drawn at a time, over all shards.
    """

    init: Callable[[Sample, int], ReplayState]
    add: Callable[[ReplayState, Sample], ReplayState]
    sample: Callable[[ReplayState, jax.Array], Sample]
    shards: int
    capacity: int
    batch_size: int


def make_replay(config: ReplayConfig, batch_size: int) -> Replay:
    """Builds the buffer; `batch_size` samples are drawn at a time, over all shards.

    Raises:
      ValueError: if it holds less than one batch; when it is used, if the shards do not divide
        the batch.
    """
    if config.capacity < batch_size:
        raise ValueError(
            f"replay.capacity is {config.capacity}, less than a batch of {batch_size}: use at "
            f"least {batch_size}"
        )

    @functools.cache
    def ring():  # Made when it is used: `check_parts` says first what too many shards are.
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
        state = ring().init(example)  # Its index has as many bits as JAX's whole numbers.
        state = state.replace(current_index=state.current_index.astype(jnp.int32))
        return jax.tree.map(lambda x: jnp.full((shards, *x.shape), x, x.dtype), state)

    def add(state, samples):
        return jax.vmap(mixing(ring().add))(state, samples)

    def sample(state, keys):
        return jax.vmap(mixing(ring().sample))(state, keys).experience

    return Replay(init, add, sample, config.shards, config.capacity, batch_size)
