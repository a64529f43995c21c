"""Games by name: `make("tic_tac_toe")`, `make("connect_four:4x5")`, `make("pgx:chess")`."""

import functools
import re
from collections.abc import Callable

from azjax._settings import did_you_mean
from azjax.games import (
    backgammon,
    breakthrough,
    connect_four,
    einstein,
    from_pgx,
    hex,
    mnk,
    othello,
    tic_tac_toe,
)
from azjax.games.base import (
    ILLEGAL,
    Display,
    Game,
    Positions,
    State,
    check_batch,
    choose,
    init_batch,
    name_actions,
    play,
    random_action,
    where,
)

__all__ = ["ILLEGAL", "Display", "Game", "Positions", "State", "available", "check_batch"]
__all__ += ["choose", "has_variants", "init_batch", "make", "name_actions", "play"]
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
    "einstein": (einstein.make, 1, 1, "SIZE"),
    "backgammon": (backgammon.make, 0, 0, ""),
}


def available() -> tuple[str, ...]:
    """Returns the names that `make` accepts, without sizes."""
    return tuple(_GAMES)


def has_variants(name: str) -> bool:
    """Returns whether the name can have a suffix, as in `othello:6` and `pgx:chess`."""
    return name == "pgx" or (name in _GAMES and _GAMES[name][2] > 0)


def make(name: str) -> Game:
    """Returns a game by its name; repeated calls return the same object.

    Raises:
      ValueError: if no game has that name or size, or pgx is needed and not installed.
    """
    if not isinstance(name, str):
        raise ValueError(f"the game is {name!r}: use a name, such as 'hex:6' or 'tic_tac_toe'")
    base, colon, size = name.partition(":")
    if base == "pgx" and colon:
        return from_pgx.make(size)
    if base not in _GAMES or (colon and not has_variants(base)):
        names = f"{', '.join(_GAMES)}, pgx:NAME such as pgx:go_9x9"
        raise ValueError(f"unknown game {name!r}: use one of {names}{did_you_mean(base, _GAMES)}")
    make_one, least, most, pattern = _GAMES[base]
    if not colon:
        return make_one()
    if not re.fullmatch(r"\d{1,4}(x\d{1,4})*", size) or not least <= size.count("x") + 1 <= most:
        raise ValueError(f"{name} has no valid size: write {base}:{pattern}")
    return make_one(*map(int, size.split("x")))


def is_built_in(game: Game) -> bool:
    """Returns whether `make` returns this game for its name; custom games may have any name."""
    try:
        return make(game.name) is game
    except ValueError:
        return False
