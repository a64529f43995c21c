"""Policy-value networks: residual networks, MLPs, and any Flax module."""

from azjax.networks.base import Network, observed_planes
from azjax.networks.config import MLPConfig, ResNetConfig
from azjax.networks.make import make_network
from azjax.networks.modules import from_module

__all__ = ["MLPConfig", "Network", "ResNetConfig", "from_module", "make_network"]
__all__ += ["observed_planes"]
