"""Games by name: `make("tic_tac_toe")`, `make("connect_four:4x5")`, `make("pgx:chess")`.

Installed packages add games through entry points of the group `azjax.games`: the name of the entry
point is the name of the game, and its value is a function that returns a `Game`.
"""

import functools
import importlib.metadata
import re
from collections.abc import Callable
from importlib.metadata import EntryPoints

from azjax._settings import checked, did_you_mean
from azjax.games import breakthrough, connect_four, from_pgx, hex, mnk, othello, tic_tac_toe
from azjax.games.base import Display, Game, init_batch, play, random_action, where

__all__ = ["Display", "Game", "available", "has_variants", "init_batch", "make", "play"]
__all__ += ["random_action", "where"]

# For each game: the function that makes it, the minimum and maximum count of numbers in its size,
# and their format.
_GAMES: dict[str, tuple[Callable[..., Game], int, int, str]] = {
    "tic_tac_toe": (tic_tac_toe.make, 0, 0, ""),
    "connect_four": (connect_four.make, 2, 3, "ROWSxCOLUMNS or ROWSxCOLUMNSxLENGTH"),
    "mnk": (mnk.make, 3, 3, "ROWSxCOLUMNSxLENGTH"),
    "othello": (othello.make, 1, 1, "SIZE"),
    "hex": (hex.make, 1, 1, "SIZE"),
    "hex_swap": (functools.partial(hex.make, swap=True), 1, 1, "SIZE"),
    "breakthrough": (breakthrough.make, 2, 2, "ROWSxCOLUMNS"),
}


def available() -> tuple[str, ...]:
    """Returns the names that `make` accepts; names from installed packages come last."""
    return (*_GAMES, *(name for name in _installed().names if name not in _GAMES))


def _installed() -> EntryPoints:
    return importlib.metadata.entry_points(group="azjax.games")


def has_variants(name: str) -> bool:
    """Returns whether the name can have a suffix, as in `othello:6` and `pgx:chess`."""
    return name == "pgx" or (name in _GAMES and _GAMES[name][2] > 0)


@functools.cache
def make(name: str) -> Game:
    """Returns a game by its name; repeated calls return the same object.

    Raises:
      ValueError: if no game has that name or size, or pgx is needed and not installed.
    """
    base, colon, size = checked("name", name, str).partition(":")
    if base == "pgx" and colon:
        return from_pgx.make(size)
    if base not in available() or (colon and not has_variants(base)):
        names = ", ".join([*available(), "pgx:NAME"]) + did_you_mean(base, available())
        raise ValueError(f"unknown game {name!r}: use one of {names}")
    make_one = _GAMES[base][0] if base in _GAMES else _installed()[base].load()
    return make_one(*_read_size(base, size)) if colon else make_one()


def _read_size(name: str, size: str) -> list[int]:
    _, least, most, pattern = _GAMES[name]
    if not re.fullmatch(r"\d{1,4}(x\d{1,4})*", size) or not least <= size.count("x") + 1 <= most:
        raise ValueError(f"{name}:{size} has no valid size: write {name}:{pattern}")
    return [int(number) for number in size.split("x")]
