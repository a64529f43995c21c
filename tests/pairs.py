"""Games as records and as reference rules, and their states as positions of these rules."""

import functools
import runpy
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import dice_pile
import misere_pile
import reference
from azjax import games
from azjax.games.base import Game
from reference import Position, dice
from source import ROOT


class Pair(NamedTuple):
    game: Game
    rules: Any
    boards: Callable  # `states [N, ...] -> N boards` of the rules.

    def positions(self, states):
        """Returns the `Position` of each of `states [N, ...]`."""
        turns = (jax.vmap(read)(states) for read in (self.game.player, self.game.is_over))
        rest = (np.asarray(turn).tolist() for turn in turns)
        boards = self.boards(jax.tree.map(np.asarray, states))
        return [Position(*each) for each in zip(boards, *rest, strict=True)]


def _marks(states):
    return map(tuple, states.board.tolist())


def _rows(*leaves):
    return zip(*(leaf.tolist() for leaf in leaves), strict=True)


def _einstein(states):
    return ((tuple(stones), die) for stones, die in _rows(states.stones, states.die))


def _pgx(states):
    return map(tuple, np.array([1, -1, 0])[states._x.board].tolist())  # -1 is empty.


def _backgammon(states):
    for (first, second), left, plies in zip(states.checkers, *states[2:], strict=True):
        points = tuple((first[1:25] - second[24:0:-1]).tolist())
        bar, off = ((int(first[place]), int(second[place])) for place in (25, 0))
        yield points, bar, off, tuple(np.repeat(range(1, 7), left).tolist()), int(plies)


OTHERS = {  # Dice are the last part of a board.
    "einstein:3": (dice.EinStein(3), _einstein),
    "einstein": (dice.EinStein(5), _einstein),
    "race": (dice.Race(), lambda states: map(tuple, np.c_[states.steps, states.die].tolist())),
    "dice_pile": (dice.Pile(), lambda states: _rows(states.stones, states.dice)),
    "backgammon": (dice.Backgammon(), _backgammon),
    "nim": (reference.nim, lambda states: map(tuple, states[:, :1].tolist())),
    "pgx:tic_tac_toe": (reference.tic_tac_toe, _pgx),
}
CUSTOM = {
    "misere_pile": misere_pile.make,
    "dice_pile": dice_pile.make,
    "nim": lambda: misere_pile.NIM,
    "race": runpy.run_path(str(ROOT / "examples/race.py"))["make"],
}


@functools.cache
def pair(name: str) -> Pair:
    """One record per name, so that its compiled functions are cached."""
    game = CUSTOM.get(name, lambda: games.make(name))()
    if name in OTHERS:
        return Pair(game, *OTHERS[name])
    return Pair(game, getattr(reference, name.partition(":")[0]), _marks)
