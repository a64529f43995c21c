"""A game with dice for tests: nature begins, throws for either player, and can end the game.

Six stones. Before a player moves, nature throws: 1 with probability 1/2, 2 with 1/3; with 1/6 the
player loses at once, but not in the first throw, where that means 2. Action 0 takes one stone, and
the same player throws again; action 1 takes as many stones as the dice show, and the turn passes.
Who takes the last stone wins.
"""

from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Display, Game, guard_step

STONES = 6
ODDS = Fraction(1, 6), Fraction(1, 2), Fraction(1, 3)  # Of losing, 1 and 2.


class State(NamedTuple):
    stones: jax.Array  # int8 []
    player: jax.Array  # int8 []
    dice: jax.Array  # int8 []; 0 before they are thrown.
    over: jax.Array  # bool []


def legal_actions(state):
    return ~state.over & ((state.dice == 0) | (jnp.arange(3) < 2))


def move(state, action):
    loses = (state.dice == 0) & (action == 0) & (state.stones < STONES)
    dice = jnp.where((action == 0) & ~loses, 2, action).astype(jnp.int8)
    thrown = state._replace(dice=dice, over=loses)
    stones = jnp.maximum(state.stones - jnp.where(action == 0, 1, state.dice), 0).astype(jnp.int8)
    passes = (action == 1).astype(jnp.int8)
    taken = State(stones, state.player ^ passes, jnp.int8(0), stones == 0)
    after = jax.tree.map(lambda a, b: jnp.where(state.dice == 0, a, b), thrown, taken)
    return after, jnp.where(loses, -1.0, jnp.where(after.over, 1.0, 0.0))


def observe(state, encoding):
    del encoding
    planes = jnp.arange(STONES)[:, None] < state.stones, state.dice == jnp.arange(3)[None]
    return jnp.concatenate([jnp.broadcast_to(plane, (STONES, 3)) for plane in planes], 1)[None]


def chance(state):
    odds = jnp.array([float(share) for share in ODDS], jnp.float32)
    return jnp.where((state.dice == 0) & ~state.over, odds, 0.0)


def make(**changes) -> Game:
    return Game(
        name="dice_pile",
        num_actions=3,
        max_plies=2 * STONES,
        encodings=("relative",),
        init=lambda: State(jnp.int8(STONES), jnp.int8(0), jnp.int8(0), jnp.zeros((), bool)),
        step=guard_step(3, legal_actions, move),
        legal_actions=legal_actions,
        is_over=lambda state: state.over,
        player=lambda state: state.player,
        observe=observe,
        most_positions=1000,
        display=Display(lambda state: "o" * int(np.asarray(state.stones)) + f" {state.dice}"),
        chance=chance,
    )._replace(**changes)
