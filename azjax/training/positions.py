"""An archive of positions met in self-play, from which games may begin.

Random openings reach most positions of a game rarely, and some as good as never. A game that
begins from one of those met before, each as likely as any other, sees them all alike: the archive
of Go-Exploit (Trudeau and Bowling 2023, "Targeted Search Control in AlphaZero").

The archive is a table by hashes: a position has one place, where it is kept once however often it
is met, until another one with the same place is met.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games import hashing
from azjax.games.base import State


class Archive(NamedTuple):
    """The table. `K` is the number of its places.

    Attributes:
      entries: what is kept at each place; every leaf is `[K, ...]`.
      full: `bool [K]`, where something is.
      filled: `int32 [K]`, those places, `used` of them, in the order in which they were filled.
      used: `int32 []`.
    """

    entries: Any
    full: jax.Array
    filled: jax.Array
    used: jax.Array


def make_archive(example: Any, places: int) -> Archive:
    """Returns an empty archive of so many places for entries such as the example, one of them."""
    entries = jax.tree.map(lambda x: jnp.broadcast_to(x, (places, *jnp.shape(x))), example)
    nowhere = jnp.zeros(places, jnp.int32)
    return Archive(entries, jnp.zeros(places, bool), nowhere, jnp.int32(0))


def add(archive: Archive, states: State, entries: Any) -> Archive:
    """Puts entries `[N, ...]` at the places of their states `[N, ...]`; the last of them stay.

    Raises:
      ValueError: if a leaf of the states cannot be looked up, see `hashing.contents`.
    """
    size = len(archive.full)
    place = hashing.buckets(states, size)
    number = jnp.arange(len(place), dtype=jnp.int32)
    # To scatter the entries themselves could mix those that share a place.
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
    """Draws one entry, each as likely as any other.

    Args:
      archive: the table.
      uniform: `float32 []`, in [0, 1).

    Returns:
      The entry, and whether there is any, `bool []`.
    """
    chosen = jnp.floor(uniform * archive.used.astype(uniform.dtype)).astype(jnp.int32)
    place = archive.filled[jnp.minimum(chosen, archive.used - 1)]
    return jax.tree.map(lambda leaf: leaf[place], archive.entries), archive.used > 0
