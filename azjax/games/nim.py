"""Nim: a move takes any number of stones from one heap, and who takes the last stone wins.

The first player wins unless the binary digits of the heaps add up to 0 without carry, which is the
XOR of their sizes (Bouton 1901). Action `before + k - 1` takes `k` stones from a heap; `before`
stones belong to the heaps left of it at the start.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import checked
from azjax.games.base import ILLEGAL, Display, Game, Positions, guard_step
from azjax.games.square import column_name

_DEFAULT = (3, 4, 5)
_MOST = 127  # Stones; a heap is an int8.
_SOLVABLE = 2**17  # Larger games have labels instead: each position has many actions.
_LABELED = 2**27  # Bytes of these labels; still larger games have none.


class State(NamedTuple):
    """A position."""

    heaps: jax.Array  # `int8 [heaps]`, the stones left in each heap.
    player: jax.Array  # `int8 []`, who is to move.


def make(*sizes: int) -> Game:
    """Returns the game with heaps of these sizes; repeated calls return the same object."""
    return _make(checked("heaps", sizes or _DEFAULT, tuple[int, ...]))


@functools.cache
def _make(sizes: tuple[int, ...]) -> Game:
    if min(sizes) < 1 or sum(sizes) > _MOST:
        given = "x".join(map(str, sizes))
        raise ValueError(f"nim has no heaps {given}: use 1 or more stones a heap, {_MOST} in all")
    heap = np.repeat(np.arange(len(sizes)), sizes)
    taken = np.concatenate([np.arange(1, size + 1, dtype=np.int8) for size in sizes])
    names = [f"{column_name(i)}{n + 1}" for i, size in enumerate(sizes) for n in range(size)]
    digits, count = max(sizes).bit_length(), _count_positions(sizes)
    is_solvable = count <= _SOLVABLE
    has_labels = not is_solvable and math.prod(size + 1 for size in sizes) * sum(sizes) <= _LABELED

    def legal_actions(state: State) -> jax.Array:
        return jnp.asarray(taken) <= state.heaps[heap]

    def move(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        heaps = state.heaps.at[jnp.asarray(heap)[action]].add(-jnp.asarray(taken)[action])
        return State(heaps, 1 - state.player), jnp.float32(~jnp.any(heaps))

    def observe(state: State, encoding: str) -> jax.Array:
        """Encodes heaps as cells of one row, with a plane for each stone or `binary` digit."""
        if encoding == "binary":
            return (state.heaps[:, None] >> np.arange(digits, dtype=np.int8) & 1 == 1)[None]
        return (jnp.arange(max(sizes), dtype=jnp.int8) < state.heaps[:, None])[None]

    return Game(
        name="nim" if sizes == _DEFAULT else "nim:" + "x".join(map(str, sizes)),
        num_actions=sum(sizes),
        max_plies=sum(sizes),
        encodings=("relative", "binary"),
        init=lambda: State(jnp.array(sizes, jnp.int8), jnp.int8(0)),
        step=guard_step(sum(sizes), legal_actions, move),
        legal_actions=legal_actions,
        is_over=lambda state: ~jnp.any(state.heaps),
        player=lambda state: state.player,
        observe=observe,
        most_positions=count if is_solvable else None,
        positions=functools.partial(label, sizes) if has_labels else None,
        display=Display(_render, name_actions=lambda state: names),
    )


@functools.lru_cache(maxsize=1)
def label(sizes: tuple[int, ...]) -> Positions:
    """Returns all positions with two moves or more, with the outcomes of the theory."""
    heaps = np.indices([size + 1 for size in sizes], np.int8).reshape(len(sizes), -1).T
    heaps = heaps[heaps.sum(axis=1) > 1]
    total = np.bitwise_xor.reduce(heaps, axis=1)[:, None]
    outcomes = []
    for heap, size in zip(heaps.T, sizes, strict=True):
        left = heap[:, None] - np.arange(1, size + 1, dtype=np.int8)
        wins = total ^ heap[:, None] ^ left == 0
        outcomes.append(np.where(left < 0, ILLEGAL, np.where(wins, 1, -1)).astype(np.int8))
    arrays: Any = heaps, np.zeros(len(heaps), np.int8)
    return Positions(State(*arrays), np.hstack(outcomes), ("all",), np.zeros(len(heaps), np.int8))


def _count_positions(sizes: tuple[int, ...]) -> int:
    """Counts positions once for each ply: from the heaps touched to the stones taken."""
    positions = math.prod(size + 1 for size in sizes)
    taken = sum(positions * size // 2 for size in sizes)
    touched = sum(positions * size // (size + 1) for size in sizes)
    return taken - touched + positions


def _render(state: State) -> str:
    rows = enumerate(np.asarray(state.heaps).tolist())
    return "\n".join(f"{column_name(row)} {'|' * left or '-'}" for row, left in rows)
