"""Networks, built from their settings for a game."""

import jax

from azjax._settings import resolve_platform
from azjax.games.base import Game
from azjax.networks import mlp, resnet_inference
from azjax.networks.base import Network
from azjax.networks.mlp import MLPConfig
from azjax.networks.modules import wrap
from azjax.networks.resnet import ResNetConfig


def make_network(
    config: ResNetConfig | MLPConfig, game: Game, platform: str | None = None
) -> Network:
    """Builds a residual network or an MLP for a game.

    Args:
      config: its settings.
      game: gives the planes' shape, the number of actions and the symmetries.
      platform: `cpu`, `gpu`, `cuda`, `rocm` or `tpu`, for which types and the form of the layers
        are chosen; None: that of the default backend.

    Raises:
      ValueError: if the game has no such encoding, its symmetries do not divide the widths, or
        there is no such platform.
    """
    platform = resolve_platform(platform)
    if isinstance(config, MLPConfig):
        forms = mlp.make_forms(config, game, platform)
    else:
        forms = resnet_inference.make_forms(config, game, platform)

    @jax.jit
    def fold(variables):
        return jax.tree.map(lambda weights: weights.astype(forms.dtype), forms.arrange(variables))

    network = wrap(game, forms.module, config.encoding, forms.learned)
    return network._replace(
        fold=fold, infer=forms.infer, symmetric=forms.symmetric, plain=forms.plain
    )
