"""The archive of Go-Exploit: positions met in self-play, from which games may start."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games import hashing
from azjax.games.base import State


class Archive(NamedTuple):
    """A hash table of positions with `K` buckets.

    Random openings reach some positions rarely or never. Starting games uniformly from the
    positions met so far covers them evenly, as in Go-Exploit (Trudeau and Bowling 2023, "Targeted
    Search Control in AlphaZero"). A position is stored once, however often it is met, until a
    position with the same bucket replaces it.
    """

    entries: Any  # [K, ...], the content of each bucket.
    full: jax.Array  # bool [K], whether a bucket has content.
    filled: jax.Array  # int32 [K], the full buckets, in the order in which they were filled.
    used: jax.Array  # int32 [], number of full buckets.


def make_archive(example: Any, places: int) -> Archive:
    """Returns an empty archive with `places` buckets, for entries of the shapes of `example`."""
    entries = jax.tree.map(lambda x: jnp.broadcast_to(x, (places, *jnp.shape(x))), example)
    nowhere = jnp.zeros(places, jnp.int32)
    return Archive(entries, jnp.zeros(places, bool), nowhere, jnp.int32(0))


def add(archive: Archive, states: State, entries: Any) -> Archive:
    """Stores entries `[N, ...]` by their states `[N, ...]`; each bucket keeps the last one."""
    size = len(archive.full)
    place = hashing.buckets(states, size)
    number = jnp.arange(len(place), dtype=jnp.int32)
    # Scattering the entries directly could mix leaves of entries that share a bucket.
    stays = jnp.full(size, -1, jnp.int32).at[place].max(number)[place] == number
    begins = stays & ~archive.full[place]
    to = jnp.where(stays, place, size)
    order = jnp.where(begins, archive.used + jnp.cumsum(begins, dtype=jnp.int32) - 1, size)
    return Archive(
        entries=jax.tree.map(
            lambda old, new: old.at[to].set(new, mode="drop"), archive.entries, entries
        ),
        full=archive.full.at[to].set(True, mode="drop"),
        filled=archive.filled.at[order].set(place.astype(jnp.int32), mode="drop"),
        used=archive.used + jnp.sum(begins, dtype=jnp.int32),
    )


def draw(archive: Archive, uniform: jax.Array) -> tuple[Any, jax.Array]:
    """Returns the entry of a number `float32 []` in [0, 1), and whether there is any, `bool []`."""
    chosen = jnp.floor(uniform * archive.used.astype(uniform.dtype)).astype(jnp.int32)
    place = archive.filled[jnp.minimum(chosen, archive.used - 1)]
    return jax.tree.map(lambda leaf: leaf[place], archive.entries), archive.used > 0
