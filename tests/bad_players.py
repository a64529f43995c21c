"""Bad players of small games, as policies for the reference rules and for states.

All tests of exhaustive play share its compiled functions, with small batches: see `small_batches`.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import guard
import misere_pile
from azjax import games
from azjax.exact import exhaustive, moves
from azjax.games.base import Game
from nim import NIM
from reference import Position
from reference import misere_pile as misere_pile_rules
from reference import nim as nim_rules
from reference import tic_tac_toe as tic_tac_toe_rules


class Pair(NamedTuple):
    """A game as a record, and as reference rules."""

    game: Game
    rules: Any
    positions: Callable  # `states [N, ...] -> N positions`


def _of_boards(states):
    fields = (np.asarray(leaf).tolist() for leaf in (states.board, states.player, states.over))
    return [Position(tuple(b), p, o) for b, p, o in zip(*fields, strict=True)]


def _of_piles(states):
    return [Position((left,), made % 2, left == 0) for left, made in np.asarray(states).tolist()]


@functools.cache
def pair(name: str) -> Pair:
    """One record per name, so that its compiled functions are cached."""
    return {
        "tic_tac_toe": lambda: Pair(games.make(name), tic_tac_toe_rules, _of_boards),
        "misere_pile": lambda: Pair(misere_pile.make(), misere_pile_rules, _of_boards),
        "nim": lambda: Pair(NIM, nim_rules, _of_piles),
    }[name]()


def lowest(rules, position):
    """The lowest legal action."""
    return min(rules.legal(position))


def highest(rules, position):
    """The highest legal action."""
    return max(rules.legal(position))


@functools.cache
def orbit(position):
    """Returns the representative board of the symmetric copies of a tic-tac-toe position."""
    cells = pair("tic_tac_toe").game.symmetries.cells
    return min(tuple(position.board[cell] for cell in row) for row in cells.tolist())


@functools.cache
def equivariant(rules, position):
    """An equivariant player: plays symmetric copies of a move in symmetric copies of a position."""
    return max(rules.legal(position), key=lambda action: orbit(rules.play(position, action)[0]))


def make_act(one: Pair, policy: Callable) -> Callable:
    """Builds `states [N, ...] -> actions [N]` from `policy(rules, position) -> action`."""
    return lambda states: np.array([policy(one.rules, p) for p in one.positions(states)])


@contextlib.contextmanager
def small_batches():
    with guard.sharing(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves, "_BATCH", 64)
        yield


def explore_all(game, act, seat, folder, **settings):
    """The last step of exhaustive play."""
    with small_batches():
        return exhaustive.finish(exhaustive.explore(game, act, seat, folder, **settings))


def replay(game, lines):
    with small_batches():
        return moves.replay(game, lines)
