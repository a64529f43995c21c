"""Policy-value networks: residual networks, MLPs, and any Flax module."""

from typing import TYPE_CHECKING, Any

from azjax.networks.base import Network
from azjax.networks.make import make_network
from azjax.networks.mlp import MLPConfig
from azjax.networks.modules import from_module
from azjax.networks.resnet import ResNetConfig
from azjax.networks.rounding import Quantized, quantize

if TYPE_CHECKING:
    from azjax.networks.nnx import from_nnx

__all__ = [
    "MLPConfig",
    "Network",
    "Quantized",
    "ResNetConfig",
    "from_module",
    "from_nnx",
    "make_network",
    "quantize",
]


def __getattr__(name: str) -> Any:
    """Imports `from_nnx` when it is used: `flax.nnx` takes a third of a second to import."""
    if name != "from_nnx":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from azjax.networks.nnx import from_nnx

    return from_nnx
