"""A custom game with dice: a race to 8, where a player chooses one of two dice and throws it.

The even die makes 1 or 3 steps. The bold one makes 1 step, twice out of three times, or 4. Actions
0 and 1 choose a die, and are the outcomes where one is thrown, fewer and more steps. With
perfect play, the first player expects 4865 / 23328 = 0.2085.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax.games import Display, Game

GOAL = 8
STEPS = np.array([[1, 3], [1, 4]], np.int8)  # Of the outcomes of each die.
CHANCE = np.array([[1 / 2, 1 / 2], [2 / 3, 1 / 3]], np.float32)
CHOOSE = 2  # Instead of the number of a die.


class State(NamedTuple):  # noqa: D101
    steps: jax.Array  # int8 [2], of each player
    player: jax.Array  # int8 [], who chooses a die, or throws it
    die: jax.Array  # int8 []


def is_over(state: State) -> jax.Array:
    """Returns whether a player has reached the goal."""
    return jnp.any(state.steps >= GOAL)


def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
    """Chooses a die, or makes the steps of an outcome. Illegal actions change nothing."""
    is_legal = (action >= 0) & (action < 2) & ~is_over(state)
    chosen = state._replace(die=jnp.asarray(action, jnp.int8))
    made = state.steps.at[state.player].add(jnp.asarray(STEPS)[state.die, action])
    thrown = State(made, 1 - state.player, jnp.int8(CHOOSE))
    after = azjax.games.where(state.die == CHOOSE, chosen, thrown)
    reward = jnp.where(is_legal & is_over(after), 1.0, 0.0)  # For the player who threw.
    return azjax.games.where(is_legal, after, state), reward


def chance(state: State) -> jax.Array:
    """Returns the probabilities of the outcomes; zeros if no die is to be thrown."""
    is_thrown = (state.die != CHOOSE) & ~is_over(state)
    return jnp.where(is_thrown, jnp.asarray(CHANCE)[state.die], 0)


def observe(state: State, encoding: str) -> jax.Array:
    """Returns planes `bool [1, 8, 4]`: the steps of both players, and the die to be thrown."""
    del encoding
    sides = jnp.stack([state.steps[state.player], state.steps[1 - state.player]])
    dice = jnp.broadcast_to(state.die == jnp.arange(2), (GOAL, 2))
    return jnp.concatenate([jnp.arange(GOAL)[:, None] < sides, dice], axis=1)[None]


def render(state: State) -> str:
    """Returns the steps of both players as text."""
    return f"X {state.steps[0]}, O {state.steps[1]}"


def name_actions(state: State) -> list[str]:
    """Returns the names of the dice, or the numbers of steps."""
    names = ["even", "bold"] if state.die == CHOOSE else STEPS[state.die]
    return [str(name) for name in names]


def make() -> Game:
    """Returns the game."""
    return Game(
        name="race",
        num_actions=2,
        max_plies=4 * GOAL - 2,
        encodings=("steps",),
        init=lambda: State(jnp.zeros(2, jnp.int8), jnp.int8(0), jnp.int8(CHOOSE)),
        step=step,
        legal_actions=lambda state: jnp.broadcast_to(~is_over(state), 2),
        is_over=is_over,
        player=lambda state: state.player,
        observe=observe,
        most_positions=4 * GOAL * (GOAL + 4) ** 2 * 3,  # An upper bound, for `solve`.
        display=Display(
            lambda state: f"X {state.steps[0]}, O {state.steps[1]}", None, name_actions
        ),
        chance=chance,
    )


if __name__ == "__main__":
    azjax.check_game(make())
    print("The race passes check_game.")
