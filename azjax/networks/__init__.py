"""Policy-value networks: residual networks, MLPs, and any Flax module."""

from azjax._settings import resolve_platform
from azjax.games.base import Game
from azjax.networks import equivariant, mlp, resnet
from azjax.networks.base import Network, choose_dtype, observed_planes
from azjax.networks.mlp import MLPConfig
from azjax.networks.modules import from_module
from azjax.networks.resnet import ResNetConfig

__all__ = ["MLPConfig", "Network", "ResNetConfig", "from_module", "make_network"]
__all__ += ["observed_planes"]


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
    if config.symmetric and game.num_symmetries > 1:
        return equivariant.make(config, game, dtype, learning_dtype)
    if isinstance(config, MLPConfig):
        return mlp.make(config, game, dtype, learning_dtype)
    return resnet.make(config, game, dtype, learning_dtype, platform)
