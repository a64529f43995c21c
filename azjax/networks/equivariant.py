"""Equivariant networks of dense layers, which share weights among a game's symmetries.

The units of a layer come in `G` copies, one for each symmetry. The output of copy `g` for a
position is the output of copy 0 for the position transformed by `g`, so only the weights of copy 0
are learned. For any weights, and up to rounding, symmetric copies of a position get symmetric
outputs: the network is group-equivariant (Cohen and Welling 2016, section 6).

Sharing also saves arithmetic. Suppose `K` of the symmetries form a group of commuting involutions,
such as the reflections along two axes. The layers then act separately on `K` sums and differences
of the copies, one for each character of this group. A product with an `n x n` matrix becomes `K`
products with `n/K x n/K` matrices.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, Symmetries
from azjax.networks.base import Network, Plain, Variables
from azjax.networks.modules import from_settings

Layer = dict[str, jax.Array]  # A kernel and a bias.
Apply = Callable[[str, Any], Any]  # Computes the layer with this name, without its ReLU.
Trunk = Callable[[Any, Apply, Any], Any]  # Computes all layers before the heads, by the settings.
FIRST = ("Dense_0", "stem")  # The layers that read the planes.


class Group(NamedTuple):
    """A game's `G` symmetries as permutations of cells, of a layer's copies, and of actions.

    `K` of them form a group: the identity and commuting involutions. The symmetries are ordered so
    that each element of this group permutes `K` contiguous blocks of copies.

    Attributes:
      cells: `int [G, H * W]`, as in `Symmetries`.
      copies: `int [G, G]`, how each symmetry permutes the copies of a layer.
      actions: `int [G, A]`, the inverses of those in `Symmetries`.
      characters: `int [K, K]`, +1 or -1, the symmetric matrix of the involutions' characters.
    """

    cells: np.ndarray
    copies: np.ndarray
    actions: np.ndarray
    characters: np.ndarray


def make_group(symmetries: Symmetries) -> Group:
    """Computes how symmetries compose, and orders them as `Group` requires."""
    cells = symmetries.cells
    composed = cells[np.arange(len(cells))[:, None, None], cells]  # [G, G, H * W]
    table = np.argmax((composed[:, :, None] == cells).all(axis=-1), axis=-1)
    commuting = _commuting(table)
    heads = [copy for copy in range(len(table)) if copy == min(table[commuting, copy])]
    order = table[np.ix_(commuting, heads)].ravel()
    bits = np.arange(len(commuting))
    common = (bits[:, None] & bits)[..., None] >> np.arange(len(commuting)) & 1
    return Group(
        cells=cells[order],
        copies=np.argsort(order)[table[np.ix_(order, order)]],
        actions=np.argsort(symmetries.actions[order], axis=1),
        characters=(-1) ** common.sum(axis=-1),
    )


def _commuting(table: np.ndarray) -> list[int]:
    """Returns the largest group of commuting involutions that up to three of them generate.

    The elements are row numbers of the composition table. Element `i` is the product of the
    generators whose bits are set in `i`.
    """
    found = [0]
    involutions = [g for g in range(1, len(table)) if table[g, g] == 0]
    for size in range(1, 4):
        for factors in itertools.combinations(involutions, size):
            group = [0]
            for factor in factors:
                group += [int(table[factor, g]) for g in group]
            commute = all(table[a, b] == table[b, a] for a, b in itertools.combinations(factors, 2))
            if commute and len(set(group)) > len(found):
                found = group
    return found


class Equivariant(nn.Module):
    """A trunk and two heads of dense layers, with weights shared among symmetries.

    Attributes:
      config: an `MLPConfig` or a `ResNetConfig`.
      layers: names and widths of the trunk's layers; the first reads the planes. The last layers of
        residual blocks, whose names end in `_b`, start at zero.
      trunk: computes the trunk.
      num_actions: `A`.
      group: the game's symmetries; the widths are multiples of `G`.
      dtype: the type of the arithmetic.
    """

    config: Any
    layers: tuple[tuple[str, int], ...]
    trunk: Trunk
    num_actions: int
    group: Group
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        hidden, copies = self.config.head_hidden, len(self.group.copies)
        heads = [("policy_hidden", hidden), ("value_hidden", hidden)]
        params, size = {}, planes[0].size
        for name, width in (*self.layers, *heads):
            is_zero = name.endswith("_b")
            params[name] = self.param(name, _init, size, width // copies, 1, is_zero)
            size = size if (name, width) in heads else width
        for name, outputs in (("policy", self.num_actions), ("value", 1)):
            params[name] = self.param(name, _init, hidden, outputs, copies)
        weights = fold(self.group, {"params": params})
        weights = jax.tree.map(lambda x: x.astype(self.dtype), weights)
        return infer(self.config, self.group, self.trunk, weights, planes)


def make(
    config: Any,
    game: Game,
    platform: str,
    layers: tuple[tuple[str, int], ...],
    trunk: Trunk,
    plain: Callable[[dict[str, Layer]], Plain],
) -> Network:
    """Builds an equivariant network for a game with symmetries.

    Args:
      config: an `MLPConfig` or a `ResNetConfig`.
      game: the rules.
      platform: where the network runs, such as `cpu`.
      layers: see `Equivariant`.
      trunk: see `Equivariant`.
      plain: `layers -> Plain`; the layers are those of `as_dense`.
    """
    assert game.symmetries is not None
    widths = sorted({config.head_hidden, *dict(layers).values()})
    if any(width % game.num_symmetries for width in widths):
        raise ValueError(
            f"layers are divided among the {game.num_symmetries} symmetries of {game.name}: make "
            f"the widths of the network, now {widths}, multiples of {game.num_symmetries}"
        )
    group = make_group(game.symmetries)
    return from_settings(
        config,
        game,
        platform,
        functools.partial(Equivariant, config, layers, trunk, game.num_actions, group),
        fold=functools.partial(fold, group),
        infer=lambda dtype: functools.partial(infer, config, group, trunk),
        plain=lambda folded: plain(as_dense(group, folded)),
        symmetric=True,
    )


def _init(
    key: jax.Array, inputs: int, outputs: int, copies: int = 1, is_zero: bool = False
) -> Layer:
    """Draws the weights of copy 0, scaled for the number of inputs of all copies; or zeros."""
    kernel = nn.initializers.lecun_normal()(key, (inputs, outputs), jnp.float32)
    kernel = jnp.zeros_like(kernel) if is_zero else kernel
    return {"kernel": kernel[: inputs // copies], "bias": jnp.zeros(outputs, jnp.float32)}


def fold(group: Group, variables: Variables) -> dict[str, Layer]:
    """Computes the inference form: layers from copies to copies have one kernel per character."""
    return {name: _fold(group, name, layer) for name, layer in variables["params"].items()}


def _fold(group: Group, name: str, layer: Layer) -> Layer:
    kernel, bias = layer["kernel"], layer["bias"]
    copies, blocks = len(group.copies), len(group.characters)
    if name == "value":
        return {"kernel": jnp.tile(kernel, (copies, 1)), "bias": bias}
    if name == "policy":
        kernel = jnp.concatenate([kernel[:, order] for order in group.actions])
        return {"kernel": kernel, "bias": jnp.mean(bias[group.actions], axis=0)}
    bias = jnp.tile(bias, copies)
    if name in FIRST:
        return {"kernel": permute(kernel, group.cells), "bias": bias}
    # The weights into the first block of copies; those into other blocks are permutations.
    columns = permute(kernel, group.copies[: copies // blocks])
    columns = columns.reshape(blocks, len(kernel) // blocks, -1)
    shares = (group.characters / blocks).astype(columns.dtype)
    return {"kernel": jnp.einsum("kh,hio->kio", shares, columns), "bias": bias}


def permute(kernel: jax.Array, permutations: np.ndarray) -> jax.Array:
    """Permutes weights `[I, O]` by each of several symmetries: `[I, len(permutations) * O]`."""
    parts = kernel.reshape(permutations.shape[1], -1, kernel.shape[1])
    return jnp.concatenate(
        [parts[np.argsort(order)].reshape(kernel.shape) for order in permutations], axis=1
    )


def infer(
    config: Any, group: Group, trunk: Trunk, weights: dict[str, Layer], planes: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]` and folded weights."""

    def dense(name, x):
        return x @ weights[name]["kernel"] + weights[name]["bias"][None]

    def layer(name, x):
        """Computes a layer from the planes, or from blocks; returns blocks."""
        if name in FIRST:
            return jnp.split(dense(name, x), len(group.characters), axis=1)
        kernel, bias = weights[name]["kernel"], weights[name]["bias"]
        parts = [block @ part for block, part in zip(_combine(x), kernel, strict=True)]
        biases = jnp.split(bias, len(parts))
        return [part + bias[None] for part, bias in zip(_combine(parts), biases, strict=True)]

    def head(name):
        hidden = nn.relu(jnp.concatenate(layer(f"{name}_hidden", blocks), axis=1))
        return dense(name, hidden).astype(jnp.float32)

    dtype = weights["value"]["kernel"].dtype
    blocks = trunk(config, layer, planes.reshape(planes.shape[0], -1).astype(dtype))
    return head("policy"), jnp.tanh(head("value")[:, 0])


def _combine(blocks: list[jax.Array]) -> list[jax.Array]:
    """Adds blocks with the signs of each character: the fast Walsh-Hadamard transform."""
    for bit in itertools.takewhile(lambda bit: bit < len(blocks), (1, 2, 4)):
        pairs = [(block, blocks[i ^ bit], i & bit) for i, block in enumerate(blocks)]
        blocks = [other - block if odd else block + other for block, other, odd in pairs]
    return blocks


def as_dense(group: Group, weights: dict[str, Layer]) -> dict[str, Layer]:
    """Returns the weights of plain dense layers that compute the same as folded weights."""

    def dense(name, layer):
        if name in (*FIRST, "policy", "value"):
            return layer
        signs = np.einsum("kh,kg->khg", group.characters, group.characters).astype(np.float32)
        kernel = jnp.einsum("khg,kio->higo", signs, layer["kernel"])
        return layer | {"kernel": kernel.reshape(kernel.shape[0] * kernel.shape[1], -1)}

    return {name: dense(name, layer) for name, layer in weights.items()}
