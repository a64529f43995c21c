"""Slow, obvious reference implementations in plain Python; rewards as in `azjax.games.base`."""

from reference.rules import (  # noqa: F401
    Position,
    breakthrough,
    connect_four,
    hex,
    hex_swap,
    misere_pile,
    nim,
    othello,
    sign,
    tic_tac_toe,
)
