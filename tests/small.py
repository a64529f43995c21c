"""Games, networks and parts of training, small enough for tests."""

import functools
import types

from azjax.networks import ResNetConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.targets import no_extra

NAMES = ("tic_tac_toe", "connect_four", "othello:4", "hex_swap:3", "breakthrough:5x3")
FEW = NAMES[:3]  # For slower tests.
conv = functools.partial(ResNetConfig, layers="conv", norm="batch")  # As in the papers.


def playing(game, search, evaluate, encoding="relative", note=no_extra, **settings):
    """What self-play reads of the parts of a training, with any evaluator instead of a network."""
    return types.SimpleNamespace(
        game=game,
        network=types.SimpleNamespace(encoding=encoding, fold=lambda variables: variables),
        search=search,
        evaluate=evaluate,
        selfplay=SelfPlayConfig(**settings),
        targets=types.SimpleNamespace(note=note),
    )
