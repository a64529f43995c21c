"""Nim: a move takes any number of stones from one heap, and who takes the last stone wins.

    azjax train --game examples/nim.py:make
    azjax compare --game examples/nim.py:make_seven --preset enumerable

The player to move wins unless the binary digits of the heaps add up to 0 without carry, which is
the XOR of their sizes (Bouton 1901). This theory labels all positions of games that are too large
to solve. Action `before + k - 1` takes `k` stones from a heap; `before` stones belong to the heaps
left of it at the start.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax.games import Display, Game, Positions

MOST_SOLVED = 2**17  # Positions. Games with more have labels instead.


class State(NamedTuple):
    """A position."""

    heaps: jax.Array  # `int8 [heaps]`, the stones left in each heap.
    player: jax.Array  # `int8 []`, who is to move.


@functools.cache
def make(*sizes: int) -> Game:
    """Returns the game with heaps of these sizes, by default 3, 4 and 5."""
    sizes = sizes or (3, 4, 5)
    heap = np.repeat(np.arange(len(sizes)), sizes)
    taken = np.concatenate([np.arange(1, size + 1, dtype=np.int8) for size in sizes])
    digits, most = max(sizes).bit_length(), count_positions(sizes)

    def legal_actions(state: State) -> jax.Array:
        return jnp.asarray(taken) <= state.heaps[heap]

    def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
        is_legal = legal_actions(state)[action] & (action >= 0) & (action < len(taken))
        heaps = state.heaps.at[jnp.asarray(heap)[action]].add(-jnp.asarray(taken)[action])
        after = State(heaps, 1 - state.player), jnp.float32(~jnp.any(heaps))
        return azjax.games.where(is_legal, after, (state, jnp.float32(0)))

    def observe(state: State, encoding: str) -> jax.Array:
        """Encodes heaps as cells of one row, with a plane for each stone or `binary` digit."""
        if encoding == "binary":
            return (state.heaps[:, None] >> np.arange(digits, dtype=np.int8) & 1 == 1)[None]
        return (jnp.arange(max(sizes), dtype=jnp.int8) < state.heaps[:, None])[None]

    def render(state: State) -> str:
        return "\n".join(
            f"{'abcdefgh'[i]} {'|' * int(n) or '-'}" for i, n in enumerate(state.heaps)
        )

    names = [f"{'abcdefgh'[i]}{n + 1}" for i, size in enumerate(sizes) for n in range(size)]
    return Game(
        name="nim:" + "x".join(map(str, sizes)),
        num_actions=len(taken),
        max_plies=len(taken),
        encodings=("relative", "binary"),
        init=lambda: State(jnp.array(sizes, jnp.int8), jnp.int8(0)),
        step=step,
        legal_actions=legal_actions,
        is_over=lambda state: ~jnp.any(state.heaps),
        player=lambda state: state.player,
        observe=observe,
        most_positions=most if most <= MOST_SOLVED else None,
        positions=None if most <= MOST_SOLVED else functools.partial(label, sizes),
        display=Display(render, name_actions=lambda state: names),
    )


make_six = functools.partial(make, 1, 3, 5, 7, 9, 11)
make_seven = functools.partial(make, 1, 3, 5, 7, 9, 11, 13)


@functools.cache
def label(sizes: tuple[int, ...]) -> Positions:
    """Returns all positions with two moves or more, with the outcomes of the theory."""
    heaps = np.indices([size + 1 for size in sizes], np.int8).reshape(len(sizes), -1).T
    heaps = heaps[heaps.sum(axis=1) > 1]
    total = np.bitwise_xor.reduce(heaps, axis=1)[:, None]
    outcomes = []
    for stones, size in zip(heaps.T, sizes, strict=True):
        left = stones[:, None] - np.arange(1, size + 1, dtype=np.int8)
        wins = total ^ stones[:, None] ^ left == 0
        outcome = np.where(left < 0, azjax.games.ILLEGAL, np.where(wins, 1, -1))
        outcomes.append(outcome.astype(np.int8))
    first = np.zeros(len(heaps), np.int8)
    states = State(*map(jnp.asarray, (heaps, first)))
    return Positions(states, np.hstack(outcomes), classes=("all",), class_of=first)


def count_positions(sizes: tuple[int, ...]) -> int:
    """Counts positions once for each ply: from the heaps touched to the stones taken."""
    positions = math.prod(size + 1 for size in sizes)
    taken = sum(positions * size // 2 for size in sizes)
    touched = sum(positions * size // (size + 1) for size in sizes)
    return taken - touched + positions


if __name__ == "__main__":
    azjax.check_game(make(), num_games=4)
    solution = azjax.solve(make())
    states = solution.decision_states
    theory = np.where(np.bitwise_xor.reduce(states.heaps, axis=1) == 0, -1, 1)
    agrees = np.mean(solution.values[solution.decisions] == theory)
    print(f"the theory agrees with the solver in {agrees:.0%} of {len(theory)} positions")
