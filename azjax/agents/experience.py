"""What a player remembers of positions: a hash table of arrays, and its file."""

import os
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.files import replacing
from azjax.game import Game, State
from azjax.hashing import contents, weigh

PROBES = 16  # Neighbouring slots in which a position may stand.


class Experience(NamedTuple):
    """What is known about positions; `C` slots, and an axis `B` in front for a batch.

    Attributes:
      fingerprints: `uint32 [C]`, which position a slot holds; 0 if none.
      visits: `int32 [C]`, simulations that came through it.
      totals: `float32 [C]`, the sum of their outcomes, for player 0.
      children: `int32 [C, A]`, the slot after each action; -1 where untried.
    """

    fingerprints: jax.Array
    visits: jax.Array
    totals: jax.Array
    children: jax.Array


def init_experience(batch_size: int, slots: int, num_actions: int) -> Experience:
    """Returns empty tables, one for each game of a batch; `slots` is a power of two."""
    size = batch_size, slots
    return Experience(
        fingerprints=jnp.zeros(size, jnp.uint32),
        visits=jnp.zeros(size, jnp.int32),
        totals=jnp.zeros(size),
        children=jnp.full((*size, num_actions), -1),
    )


def locate(memory: Experience, state: State, wanted: jax.Array) -> tuple[jax.Array, Experience]:
    """Returns the slot of a position, taking a free one if it is new; -1 if there is none.

    Where it is not `wanted`, nothing is stored, and the slot is -1.
    """
    numbers, slots = contents(state), len(memory.visits)
    weights = np.random.default_rng(0).integers(2**32, size=(2, numbers.size), dtype=np.uint32)
    place, fingerprint = weigh(numbers, weights | 1)
    fingerprint |= jnp.uint32(1)  # 0 says that a slot is free.
    start = (place >> (33 - slots.bit_length())).astype(jnp.int32)
    probes = (start + jnp.arange(PROBES)) % slots
    found = memory.fingerprints[probes]
    usable = (found == fingerprint) | (found == 0)
    slot = jnp.where(wanted & jnp.any(usable), probes[jnp.argmax(usable)], -1)
    target = jnp.where(slot < 0, slots, slot)
    stored = memory.fingerprints.at[target].set(fingerprint, mode="drop")
    return slot, memory._replace(fingerprints=stored)


def save_experience(path: str | os.PathLike[str], game: Game, memory: Experience) -> None:
    """Writes what a player knows of a game to a `.npz` file, whole or not at all."""
    with replacing(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, game=np.array(game.name), **jax.device_get(memory)._asdict())


def load_experience(path: str | os.PathLike[str], game: Game) -> Experience:
    """Reads what `save_experience` wrote.

    Raises:
      ValueError: if the file is no memory, is damaged, or is of another game.
      OSError: if it cannot be opened.
    """
    with pathlib.Path(path).open("rb") as raw:
        try:
            with np.load(raw, allow_pickle=False) as file:
                found = {name: file[name] for name in ("game", *Experience._fields)}
        except Exception as error:  # Zip and NumPy have many for a file that is damaged.
            raise ValueError(
                f"{path} is not a player's memory: give a file that save_experience wrote"
            ) from error
    if str(found["game"]) != game.name:
        raise ValueError(
            f"{path} is a memory of {found['game']}, not of {game.name}: use it with that game"
        )
    return Experience(*(jnp.asarray(found[name]) for name in Experience._fields))
