"""Policy-value networks: residual networks, MLPs, and any Flax module."""

from azjax._settings import resolve_platform
from azjax.games.base import Game
from azjax.networks import mlp, resnet
from azjax.networks.base import Network
from azjax.networks.mlp import MLPConfig
from azjax.networks.modules import from_module
from azjax.networks.resnet import ResNetConfig

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
    if isinstance(config, MLPConfig):
        return mlp.make(config, game, platform)
    return resnet.make(config, game, platform)
