"""Games and networks of every kind, small enough for tests."""

import functools

from azjax.networks import ResNetConfig

NAMES = ("tic_tac_toe", "connect_four", "othello:4", "hex_swap:3", "breakthrough:5x3")
FEW = NAMES[:3]  # For slower tests.
conv = functools.partial(ResNetConfig, layers="conv", norm="batch")  # As in the papers.
