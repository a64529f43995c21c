"""What both sides of the comparison play with."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from azjax import train
from azjax.game import Game
from azjax.games import make
from azjax.network import Network, make_network
from experiments.benchmark import textbook
from experiments.benchmark.options import Options
from experiments.benchmark.runs import network_config


class Setup(NamedTuple):
    """The same things on both sides.

    Attributes:
      options: sizes.
      mesh: the devices of azjax's side. The baseline is one program on the first device, as
        it is written everywhere; of the CPU's devices each has the threads of all cores, so
        its operations use them all.
      game: azjax's.
      network: azjax's.
      variables: its variables.
      theirs: the baseline's variables.
      evaluate: the baseline's network.
    """

    options: Options
    mesh: Mesh
    game: Game
    network: Network
    variables: Any
    theirs: Any
    evaluate: Callable


def set_up(options: Options) -> Setup:
    """Makes the networks of both sides."""
    game = make("tic_tac_toe")
    network = make_network(network_config(options), game)
    variables = jax.jit(network.init)(jax.random.key(0))
    init, evaluate = textbook.make_network(options.channels, options.blocks)
    theirs = jax.jit(init)(jax.random.key(0))
    return Setup(options, train.make_mesh(), game, network, variables, theirs, evaluate)
