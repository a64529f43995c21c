"""Networks, built from their settings for a game."""

import functools
from typing import Any

import jax

from azjax.game import Game, Symmetries
from azjax.networks import equivariant
from azjax.networks.base import Network, choose_dtype
from azjax.networks.convolution import choose_form
from azjax.networks.mlp import MLP, MLPConfig
from azjax.networks.modules import wrap
from azjax.networks.resnet import Tower, TowerConfig, fold_tower, infer_tower
from azjax.settings import resolve_platform


def make_network(
    config: TowerConfig | MLPConfig, game: Game, platform: str | None = None
) -> Network:
    """Builds the tower or the MLP for a game, and for a platform: None is the default backend's.

    Raises:
      ValueError: if the game has no such encoding, or its symmetries do not divide the widths.
    """
    platform = resolve_platform(platform)
    convolves = isinstance(config, TowerConfig)
    dtype = choose_dtype(config.evaluation_dtype, platform, convolves)
    symmetric = isinstance(config, MLPConfig) and config.symmetric and game.num_symmetries > 1
    if convolves:
        form = choose_form(game.board_shape, dtype, platform)
        widths = config.channels, config.blocks, config.value_hidden
        module = learned = Tower(*widths, game.num_actions, form)
        arrange: Any = functools.partial(fold_tower, form, game.board_shape)
        infer = functools.partial(infer_tower, form, config.blocks)
    else:
        widths = config.hidden, config.head_hidden
        if symmetric:
            group = equivariant.make_group(_shareable(config, game))
            module = equivariant.EquivariantMLP(*widths, game.num_actions, group, platform=platform)
            arrange = functools.partial(equivariant.arrange, group)
            infer = functools.partial(equivariant.infer, group, platform=platform)
        else:
            module = MLP(*widths, game.num_actions, platform=platform)
            arrange, infer = dict, module.clone(dtype=dtype).apply
        learned = module.clone(dtype=choose_dtype(config.learning_dtype, platform))

    @jax.jit
    def fold(variables):
        return jax.tree.map(lambda weights: weights.astype(dtype), arrange(variables))

    network = wrap(game, module, config.encoding, learned)
    return network._replace(fold=fold, infer=infer, symmetric=symmetric)


def _shareable(config: MLPConfig, game: Game) -> Symmetries:
    """The symmetries of a game that has some, if widths are multiples of their number."""
    widths = (*config.hidden, config.head_hidden)
    if game.symmetries is None or any(width % game.num_symmetries for width in widths):
        raise ValueError(
            f"the {game.num_symmetries} symmetries of {game.name} share layers evenly: make "
            f"network.hidden and network.head_hidden, now {config.hidden} and "
            f"{config.head_hidden}, multiples of {game.num_symmetries}"
        )
    return game.symmetries
