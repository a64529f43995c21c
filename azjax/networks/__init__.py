"""Policy-value networks: residual ones, a perceptron, and any Flax module."""

from azjax.networks.base import Network
from azjax.networks.make import make_network
from azjax.networks.mlp import MLPConfig
from azjax.networks.modules import from_module
from azjax.networks.resnet import TowerConfig

__all__ = ["MLPConfig", "Network", "TowerConfig", "from_module", "make_network"]
