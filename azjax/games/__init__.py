"""The games, by name: `make("tic_tac_toe")`.

Installed packages add theirs by an entry point of the group `azjax.games`, the name of which is
the game's, and which is a function that returns a `Game`.
"""

import functools
import importlib.metadata
from importlib.metadata import EntryPoints

from azjax.game import Game
from azjax.games import connect_four, tic_tac_toe

_REGISTRY = {
    "tic_tac_toe": tic_tac_toe.make,
    "connect_four": connect_four.make,
}


def available() -> tuple[str, ...]:
    """Returns the names that `make` knows, those of installed packages last."""
    return (*_REGISTRY, *(name for name in _installed().names if name not in _REGISTRY))


def _installed() -> EntryPoints:
    return importlib.metadata.entry_points(group="azjax.games")


@functools.cache
def make(name: str) -> Game:
    """Returns the game of that name, every time the same object.

    Raises:
      ValueError: if there is none.
    """
    if name not in available():
        raise ValueError(f"unknown game {name!r}: use one of {', '.join(available())}")
    return (_REGISTRY.get(name) or _installed()[name].load())()
