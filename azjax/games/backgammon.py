"""Backgammon without the doubling cube: a win counts 1, also a gammon or a backgammon.

The rules are the usual ones. Both dice must be played if possible, in one order or the other; if
only one of them can be played, it must be the larger one, if possible. Player 0 makes the opening
throw, which has no doubles. A game of 2,000 plies without a winner is a draw.

A turn is a throw of the dice, then a move for each die, or four for doubles. Action
`6 * (point - 1) + die - 1` moves a checker from a point by a die. The points of the player to move
are 1 to 24, from the ace point on, and 25 is the bar. Action 150 passes, if no checker can be moved
after the throw. At a throw, actions 0 to 20 are the outcomes 11, 21, 22, 31, and so on; `player` is
already the one who moves after it.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Display, Game, guard_step, where

_PASS, _LONGEST, _BAR = 150, 2000, 25
_SETUP = {24: 2, 13: 5, 8: 3, 6: 5}  # Checkers by point, of each player.
_POINTS, _DICE = np.arange(26, dtype=np.int8), np.arange(1, 7, dtype=np.int8)
_THROWS = np.array([(high, low) for high in range(1, 7) for low in range(1, high + 1)])
_DOUBLES = _THROWS[:, 0] == _THROWS[:, 1]
_LEFT = np.sum(_THROWS[:, :, None] == _DICE, axis=1) << _DOUBLES[:, None]


class State(NamedTuple):
    """A position.

    Attributes:
      checkers: `int8 [2, 26]`, the numbers of checkers of each player: borne off, on the player's
        points 1 to 24, and on the bar. Point `i` of a player is point `25 - i` of the other.
      player: `int8 []`, who is to move, or to throw the dice.
      left: `int8 [6]`, how many moves are left with each die; zeros = the dice are to be thrown.
      plies: `int16 []`, how many actions were played.
    """

    checkers: jax.Array
    player: jax.Array
    left: jax.Array
    plies: jax.Array


def _sides(state: State) -> tuple[jax.Array, jax.Array]:
    """Returns the checkers of the player to move, and those of the opponent."""
    return state.checkers[state.player], state.checkers[1 - state.player]


def _is_open(other: jax.Array, die: jax.Array) -> jax.Array:
    """Returns for each point whether a die leads to one that the opponent does not hold."""
    return other[::-1][jnp.maximum(_POINTS - die, 0)] < 2


def _movable(own: jax.Array, other: jax.Array, die: jax.Array) -> jax.Array:
    """Returns from which points a die can be played, `bool [26]`."""
    is_open, farthest = _is_open(other, die), jnp.max(jnp.where(own > 0, _POINTS, np.int8(0)))
    bears_off = (farthest <= 6) & ((die == _POINTS) | (farthest == _POINTS))
    enters = (own[_BAR] == 0) | (_POINTS == _BAR)
    return (own > 0) & (_POINTS > 0) & enters & jnp.where(die < _POINTS, is_open, bears_off)


def _movable_after(own: jax.Array, other: jax.Array, first: jax.Array, die: jax.Array) -> jax.Array:
    """Returns after which moves with the first die the other can be played, `bool [26]`."""
    is_open, target = _is_open(other, die), jnp.maximum(_POINTS - first, 0)
    goes_on = is_open & (die < _POINTS)
    others = jnp.sum(goes_on & (own > 0)) > (goes_on & (own == 1))  # Without the moved checker.
    occupied = jnp.where(own > 0, _POINTS, np.int8(0))
    farthest = jnp.max(occupied)
    second = jnp.max(jnp.where(occupied < farthest, occupied, 0))
    last = jnp.maximum(jnp.where((own == 1) & (farthest == _POINTS), second, farthest), target)
    is_exact = own[die] - (die == _POINTS) + (target == die) > 0
    bears_off = (last <= 6) & (is_exact | (last > 0) & (last <= die))
    return jnp.where(own[_BAR] > 1, is_open[_BAR], others | goes_on[target] | bears_off)


def _playable(own: jax.Array, other: jax.Array, left: jax.Array) -> jax.Array:
    """Returns the moves that the rules allow, `bool [25, 6]`, by point and die."""
    larger, smaller = 6 - jnp.argmax(left[::-1] > 0), 1 + jnp.argmax(left > 0)
    dice = jnp.stack([larger, smaller]).astype(np.int8)
    single = jax.vmap(functools.partial(_movable, own, other))(dice)
    both = single & jax.vmap(functools.partial(_movable_after, own, other))(dice, dice[::-1])
    either = single & jnp.stack([jnp.bool_(True), ~jnp.any(single[0])])[:, None]
    # The order of moves with equal dice does not matter: none prevents another.
    allowed = jnp.where(larger == smaller, single, jnp.where(jnp.any(both), both, either))
    return jnp.any(allowed[:, 1:, None] & (dice[:, None, None] == _DICE), axis=0)


def _legal_actions(state: State) -> jax.Array:
    moves = _playable(*_sides(state), state.left).ravel()
    moves = jnp.append(moves, ~jnp.any(moves))
    return jnp.where(jnp.any(state.left > 0), moves, _chance(state) > 0) & ~_is_over(state)


def _chance(state: State) -> jax.Array:
    opening, usual = np.where(_DOUBLES, 0, 1) / 15, np.where(_DOUBLES, 1, 2) / 36
    odds = jnp.where(state.plies == 0, opening.astype(np.float32), usual.astype(np.float32))
    is_due = ~jnp.any(state.left > 0) & ~_is_over(state)
    return jnp.pad(jnp.where(is_due, odds, 0), (0, _PASS + 1 - len(odds)))


def _is_over(state: State) -> jax.Array:
    return jnp.any(state.checkers[:, 0] == 15) | (state.plies >= _LONGEST)


def _move(state: State, action: jax.Array) -> tuple[State, jax.Array]:
    own, other = _sides(state)
    is_throw, is_pass = ~jnp.any(state.left > 0), action == _PASS
    point, die = jnp.asarray(action // 6 + 1, np.int8), jnp.asarray(action % 6 + 1, np.int8)
    hit = (_POINTS[::-1] == point - die) & (point > die) & (other == 1)
    moved = own - (point == _POINTS) + (jnp.maximum(point - die, 0) == _POINTS)
    after = moved, other - hit + (jnp.any(hit) & (_POINTS == _BAR))
    own, other = where(is_throw | is_pass, (own, other), after)
    won = own[0] == 15
    left = state.left - (die == _DICE).astype(np.int8)
    die = 1 + jnp.argmax(left > 0).astype(np.int8)
    goes_on = jnp.any(left > 0) & jnp.any(_movable(own, other, die)) & ~is_pass & ~won
    left = jnp.where(is_throw, jnp.asarray(_LEFT, np.int8)[action], jnp.where(goes_on, left, 0))
    player = jnp.where(is_throw | goes_on, state.player, 1 - state.player)
    sides = jnp.stack([own, other])
    checkers = jnp.where(state.player == 0, sides, sides[::-1])
    return State(checkers, player, left, state.plies + jnp.int16(1)), won.astype(jnp.float32)


def _observe(state: State, encoding: str) -> jax.Array:
    """Encodes checkers as in TD-Gammon (Tesauro 1995), and the dice, `float32 [1, 26, 14]`.

    Column `i` is point `i` of the player to move. Each player has four planes: at least one, two
    and three checkers, and half the number above three. Column 0 has the player's checkers that are
    borne off, and those of the opponent on the bar; column 25 the reverse. Six planes have the
    numbers of moves left with each die.
    """
    del encoding  # There is only one.
    own, other = _sides(state)
    count = jnp.stack([own, other[::-1]], axis=1)[..., None].astype(jnp.float32)
    some = (count >= np.arange(1, 4, dtype=np.float32)).astype(jnp.float32)
    units = jnp.concatenate([some, jnp.maximum(count - 3, 0) / 2], axis=2)
    dice = jnp.broadcast_to(state.left.astype(jnp.float32), (26, 6))
    return jnp.concatenate([units.reshape(26, 8), dice], axis=1)[None]


def _start() -> State:
    checkers = np.zeros((2, 26), np.int8)
    checkers[:, list(_SETUP)] = list(_SETUP.values())
    return State(jnp.asarray(checkers), jnp.int8(0), jnp.zeros(6, np.int8), jnp.int16(0))


def _name_actions(state: State) -> list[str]:
    def name(point: int, die: int) -> str:
        origin, target = "bar" if point == _BAR else point, point - die
        over = f"({die})" if target < 0 else ""  # Another die may bear off the same checker.
        return f"{origin}/{target if target > 0 else 'off'}{over}"

    moves = [name(point, die) for point in range(1, 26) for die in range(1, 7)] + ["pass"]
    names = [f"{high}{low}" for high, low in _THROWS]
    return moves if np.any(state.left) else names + moves[len(names) :]


def _render(state: State) -> str:
    """Returns the board as text, with the points as the player to move counts them."""
    own, other = (np.asarray(side).tolist() for side in _sides(state))
    marks = "OX" if state.player else "XO"

    def write(point: int) -> str:
        sides = zip(marks, (own[point], other[25 - point]), strict=True)
        return "".join(f"{mark}{count}" for mark, count in sides if count) or "."

    rows = range(13, 25), map(write, range(13, 25)), map(write, range(12, 0, -1)), range(12, 0, -1)
    lines = ["".join(f"{cell:>4}" for cell in row) for row in rows]
    for name, counts in (("bar", (own[25], other[25])), ("off", (own[0], other[0]))):
        lines.append(f"{name}: {marks[0]}{counts[0]} {marks[1]}{counts[1]}")
    dice = " ".join(f"{die}" for die in np.repeat(_DICE, state.left)) or "-"
    return "\n".join([*lines, f"dice: {dice}"])


@functools.cache
def make() -> Game:
    """Returns the game; repeated calls return the same object."""
    return Game(
        name="backgammon",
        num_actions=_PASS + 1,
        max_plies=_LONGEST,
        encodings=("relative",),
        init=_start,
        step=guard_step(_PASS + 1, _legal_actions, _move),
        legal_actions=_legal_actions,
        is_over=_is_over,
        player=lambda state: state.player,
        observe=_observe,
        display=Display(_render, name_actions=_name_actions),
        chance=_chance,
    )
