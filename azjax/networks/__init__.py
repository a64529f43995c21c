"""Policy-value networks: residual networks, MLPs, and any Flax module."""

import functools
import operator

import flax.linen as nn
import jax
import jax.numpy as jnp

from azjax._settings import resolve_platform
from azjax.games.base import Game
from azjax.networks import equivariant
from azjax.networks.base import Network, Plain, choose_dtype
from azjax.networks.convolution import WinogradResNet, is_faster
from azjax.networks.equivariant import Equivariant, check_widths, symmetry_group
from azjax.networks.mlp import MLP, MLPConfig
from azjax.networks.modules import from_module, wrap
from azjax.networks.resnet import ResNet, ResNetConfig, fold_batch_norm, without_batch_norm

__all__ = [
    "MLPConfig",
    "Network",
    "ResNetConfig",
    "from_module",
    "make_network",
]


def make_network(
    config: ResNetConfig | MLPConfig, game: Game, platform: str | None = None
) -> Network:
    """Builds a residual network or an MLP for a game.

    Args:
      config: its settings.
      game: gives the planes' shape, the number of actions and the symmetries.
      platform: `cpu`, `gpu`, `cuda`, `rocm` or `tpu`; determines arithmetic types and the form of
        convolutions. None means the platform of the default backend.

    Raises:
      ValueError: if the game does not have the encoding, or a width of a symmetric network is not
        a multiple of the number of symmetries.
    """
    platform = resolve_platform(platform)
    convolves = isinstance(config, ResNetConfig) and config.layers == "conv"
    dtype = choose_dtype(config.evaluation_dtype, platform, convolves)
    learning_dtype = choose_dtype(config.learning_dtype, platform, convolves)
    is_shared = config.symmetric and game.num_symmetries > 1

    def module(config, dtype) -> nn.Module:
        if is_shared:
            return Equivariant(config, game.num_actions, symmetry_group(game), dtype)
        if isinstance(config, MLPConfig):
            return MLP(config, game.num_actions, dtype)
        is_winograd = convolves and is_faster(game.board_shape, dtype, platform)
        return (WinogradResNet if is_winograd else ResNet)(config, game.num_actions, dtype)

    if is_shared:
        check_widths(config, game)
        group = symmetry_group(game)
        fold = functools.partial(equivariant.fold, config, group)
        infer = functools.partial(equivariant.infer, config, group)
        to_dense = functools.partial(equivariant.as_dense, config, group)
    else:
        fold, to_dense = fold_batch_norm, operator.itemgetter("params")
        infer = module(without_batch_norm(config), dtype).apply

    @jax.jit
    def fold_to_type(variables):
        return jax.tree.map(lambda weights: weights.astype(dtype), fold(variables))

    def plain(folded) -> Plain:
        if isinstance(config, MLPConfig):
            return Plain("mlp", len(config.hidden), False, to_dense(folded))
        return Plain("resnet", config.blocks, config.norm == "layer", to_dense(folded))

    learned = module(config, learning_dtype)
    network = wrap(game, module(config, jnp.float32), config.encoding, learned)
    return network._replace(fold=fold_to_type, infer=infer, plain=plain, symmetric=is_shared)
