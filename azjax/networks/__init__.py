"""Policy-value networks: residual networks, MLPs, and any Flax module."""

from azjax.networks.base import Network
from azjax.networks.make import make_network
from azjax.networks.mlp import MLPConfig
from azjax.networks.modules import from_module
from azjax.networks.resnet import ResNetConfig

__all__ = ["MLPConfig", "Network", "ResNetConfig", "from_module", "make_network"]
