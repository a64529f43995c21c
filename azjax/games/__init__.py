"""The games, by name: `make("tic_tac_toe")`."""

from azjax.game import Game
from azjax.games import connect_four, tic_tac_toe

_REGISTRY = {
    "tic_tac_toe": tic_tac_toe.make,
    "connect_four": connect_four.make,
}


def available() -> tuple[str, ...]:
    """Returns the names that `make` knows."""
    return tuple(_REGISTRY)


def make(name: str) -> Game:
    """Returns the game of that name.

    Raises:
      ValueError: if there is none.
    """
    if name not in _REGISTRY:
        raise ValueError(f"unknown game {name!r}: use one of {', '.join(available())}")
    return _REGISTRY[name]()
