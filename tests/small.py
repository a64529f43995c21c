"""Games and networks of every kind, of sizes that tests have the time for."""

import functools

from azjax.networks import ResNetConfig

NAMES = ("tic_tac_toe", "connect_four", "othello:4", "hex_swap:3", "breakthrough:5x3")
FEW = NAMES[:3]  # For what takes longer.
conv = functools.partial(ResNetConfig, layers="conv", norm="batch")  # As in the papers.
