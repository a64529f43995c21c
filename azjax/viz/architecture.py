"""The layers of a network, from its planes to its heads, derived from its parameters."""

import textwrap
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games.base import Game
from azjax.networks import MLPConfig, Network, ResNetConfig
from azjax.training.parts import Parts

_MOST = 8  # Layers, or arrays of one layer, that are shown individually.
_COLUMNS = 44


class Layer(NamedTuple):
    """A box of text in a diagram.

    Attributes:
      title: the first line.
      lines: the other lines.
      size: number of parameters, for a part of a network.
      skips: whether the input is added to the output.
    """

    title: str
    lines: tuple[str, ...]
    size: int | None = None
    skips: bool = False


def count_parameters(network: Network) -> int:
    """Returns the number of parameters of a network."""
    return _count(_shapes(network))


def layers(parts: Parts, config: Any) -> tuple[list[Layer], list[Layer]]:
    """Returns the trunk of a network with these settings, planes first, and its two heads.

    For a custom network, the trunk is a list of its parameters.
    """
    planes = jax.eval_shape(lambda: parts.game.observe(parts.game.init(), parts.network.encoding))
    shape = _by(*planes.shape)
    first = Layer("planes", (f"{parts.network.encoding}: {shape}",))
    shapes = _shapes(parts.network)
    if isinstance(config, ResNetConfig):
        trunk, heads = _resnet(parts.game, config, shapes)
    elif isinstance(config, MLPConfig):
        trunk, heads = _mlp(parts.game, config, shapes)
    else:
        trunk, heads = _custom(parts.game, shapes)
    return [first, *_shorten(trunk)], heads


def _resnet(game: Game, config: ResNetConfig, tree: Any) -> tuple[list[Layer], list[Layer]]:
    norm = ", batch norm" if config.norm == "batch" else ""
    first = "layer norm, then " if config.norm == "layer" else ""
    convolves = config.layers == "conv"

    def layer(channels, size=3):
        if not convolves:
            return f"dense{norm}, ReLU → {channels}"
        return f"{_by(size, size)} convolution{norm}, ReLU → {_by(*game.board_shape, channels)}"

    shared = (f"weights shared among {game.num_symmetries} symmetries",) if config.symmetric else ()
    trunk = [Layer("stem", (layer(config.width), *shared), _count_of(tree, "stem"))]
    each = f"{first}twice {layer(config.width)}"
    lines = (each, "the input is added before the last ReLU", *shared)
    counts = [_count_of(tree, f"block{i}_") for i in range(config.blocks)]
    if len(counts) > 3:
        each = (*lines, f"{counts[0]:,} parameters each")
        trunk.append(Layer(f"{len(counts)} residual blocks", each, sum(counts), True))
    else:
        trunk += [Layer(f"residual block {i}", lines, n, True) for i, n in enumerate(counts, 1)]
    if not convolves:
        return trunk, _heads(game, tree, *[layer(config.head_hidden)] * 2)
    hidden = f"dense, ReLU → {config.head_hidden}"
    return trunk, _heads(game, tree, layer(2, 1), layer(1, 1), hidden)


def _mlp(game: Game, config: MLPConfig, tree: Any) -> tuple[list[Layer], list[Layer]]:
    shared = (f"weights shared among {game.num_symmetries} symmetries",) if config.symmetric else ()
    trunk = [
        Layer(f"layer {i + 1}", (f"dense, ReLU → {width}", *shared), _count(tree[f"Dense_{i}"]))
        for i, width in enumerate(config.hidden)
    ]
    hidden = f"dense, ReLU → {config.head_hidden}"
    return trunk, _heads(game, tree, hidden, hidden)


def _heads(game: Game, tree: Any, policy: str, *value: str) -> list[Layer]:
    logits = f"dense → {game.num_actions} logits"
    policies = (policy, logits, "softmax over legal moves → p")
    return [
        Layer("policy head", policies, _count_of(tree, "policy")),
        Layer("value head", (*value, "dense, tanh → v"), _count_of(tree, "value")),
    ]


def _custom(game: Game, tree: Any) -> tuple[list[Layer], list[Layer]]:
    """Lists the parameters of a network without known settings."""
    trunk = [Layer(name, tuple(_arrays(part)), _count(part)) for name, part in tree.items()]
    policy = Layer("policy", (f"{game.num_actions} logits", "softmax over legal moves → p"))
    return trunk, [policy, Layer("value", ("v, from −1 to +1",))]


def _by(*sizes: int) -> str:  # Without line breaks.
    return "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}".join(map(str, sizes))


def _arrays(part: Any) -> list[str]:
    arrays = [
        f"{jax.tree_util.keystr(path, simple=True, separator='.')} {list(leaf.shape)}".strip()
        for path, leaf in jax.tree_util.tree_leaves_with_path(part)
    ]
    more = [f"and {len(arrays) - _MOST} more"] if len(arrays) > _MOST else []
    return textwrap.wrap(", ".join(arrays[:_MOST] + more), _COLUMNS)


def _shorten(trunk: list[Layer]) -> list[Layer]:
    """Replaces the middle of a long list by one layer."""
    if len(trunk) <= _MOST:
        return trunk
    cut = trunk[_MOST - 3 : -2]
    count = sum(layer.size or 0 for layer in cut)
    between = Layer(f"{len(cut)} more", (f"{cut[0].title} to {cut[-1].title}",), count)
    return [*trunk[: _MOST - 3], between, *trunk[-2:]]


def _shapes(network: Network) -> dict[str, Any]:
    """Returns the shapes of the parameters by name, in the order in which they are created.

    Parameters that are not a dictionary, such as an Equinox module, are named by their paths.
    """
    order: list[str] = []

    def init():
        params = network.init(jax.random.key(0))["params"]
        if not isinstance(params, dict):
            parts, _ = jax.tree_util.tree_flatten_with_path(params, lambda x: x is not params)
            named = [(jax.tree_util.keystr(path, simple=True), part) for path, part in parts]
            params = {name: part for name, part in named if jax.tree.leaves(part)}
        order.extend(params)
        return params

    shapes = jax.eval_shape(init)
    return {name: shapes[name] for name in order}


def _count_of(tree: dict[str, Any], prefix: str) -> int:
    return sum(_count(part) for name, part in tree.items() if name.startswith(prefix))


def _count(tree: Any) -> int:
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(tree))
