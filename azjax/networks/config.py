"""The settings of residual networks and MLPs."""

import dataclasses
from typing import Annotated, Literal

from azjax._settings import Range, Settings

DType = Literal["float32", "bfloat16", "auto"]
WIDEST, DEEPEST = 65_536, 100  # Limits of settings; each layer takes time to trace.


@dataclasses.dataclass(frozen=True)
class SharedConfig(Settings, section="network"):
    """The settings that all kinds of networks have."""

    kind: str = ""
    encoding: str = "relative"
    """Input planes. `absolute`: X, O and side to move; `relative`: the mover's stones and
    the opponent's. AlphaZero: relative, with history."""
    head_hidden: Annotated[int, Range(1, WIDEST)] = 64
    """Width of the hidden layer in each head; with convolutions, only in the value head.
    AlphaZero: 256."""
    evaluation_dtype: DType = "float32"
    """Arithmetic of evaluations in the search. `bfloat16`: less exact, faster on hardware that
    supports it; `auto`: bfloat16 on such hardware."""
    learning_dtype: DType = "float32"
    """Arithmetic of the layers in training; parameters and losses are float32."""
    symmetric: bool = False
    """Share the weights of dense layers among the game's symmetries: symmetric copies of a position
    get symmetric outputs. Needs 1/2 to 1/4 of the multiplications."""


@dataclasses.dataclass(frozen=True)
class ResNetConfig(SharedConfig):
    """A residual network."""

    kind: Literal["resnet"] = dataclasses.field(default="resnet", kw_only=True)
    """Network. `resnet`: residual blocks (AlphaZero); `mlp`: fully connected layers. For the
    settings of the other kind: --network.kind mlp --help."""
    layers: Literal["dense", "conv"] = "dense"
    """Layers of the blocks. `dense`: faster on small boards; `conv`: 3x3 convolutions
    (AlphaZero)."""
    width: Annotated[int, Range(1, WIDEST)] = 256
    """Units of a dense layer, or channels of a convolution. AlphaZero: 256 channels."""
    blocks: Annotated[int, Range(0, DEEPEST)] = 1
    """Residual blocks, of two layers each. AlphaZero: 19."""
    norm: Literal["none", "layer", "batch"] = "layer"
    """Normalization. `layer`: LayerNorm before blocks and heads; `batch`: BatchNorm after every
    layer (AlphaZero). Without BatchNorm, the last layer of each block starts at zero."""

    def __post_init__(self):
        super().__post_init__()
        if self.symmetric and (self.layers == "conv" or self.norm == "batch"):
            raise ValueError(
                "network.symmetric needs dense layers without BatchNorm, but network.layers is "
                f"{self.layers!r} and network.norm is {self.norm!r}: use 'dense', with 'layer' or "
                "'none'"
            )


@dataclasses.dataclass(frozen=True)
class MLPConfig(SharedConfig):
    """An MLP: fully connected layers."""

    kind: Literal["mlp"] = dataclasses.field(default="mlp", kw_only=True)
    """Network. `resnet`: residual blocks (AlphaZero); `mlp`: fully connected layers. For the
    settings of the other kind: --network.kind resnet --help."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the shared layers."""

    def __post_init__(self):
        super().__post_init__()
        widths = self.hidden
        if not 1 <= len(widths) <= DEEPEST or not 1 <= min(widths) <= max(widths) <= WIDEST:
            raise ValueError(
                f"network.hidden is {widths}: use 1 to {DEEPEST} widths, each 1 to {WIDEST}"
            )
