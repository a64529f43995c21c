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
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, Symmetries
from azjax.games.symmetries import symmetries_of
from azjax.networks import mlp, resnet
from azjax.networks.base import HEADS, Layer, Outputs, Variables

Weights = dict[str, jax.Array]  # A kernel and a bias.
Config = mlp.MLPConfig | resnet.ResNetConfig


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


def symmetry_group(game: Game, symmetric: bool = True) -> Group:
    """Returns the symmetries that the layers share weights among; if none, only the identity."""
    return make_group(symmetries_of(game, symmetric))


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
    """An MLP or a residual network of dense layers, with weights shared among symmetries.

    Attributes:
      config: its settings; the widths are multiples of `G`.
      num_actions: `A`.
      group: the game's symmetries.
      dtype: the type of the arithmetic.
    """

    config: Config
    num_actions: int
    group: Group
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        params, size, copies = {}, planes[0].size, len(self.group.copies)
        widths = (*_widths(self.config), self.num_actions, 1)
        for (name, role), width in zip(_layers(self.config), widths, strict=True):
            if role in ("logits", "value"):
                shape = self.config.head_hidden, width, copies
            else:
                shape = size, width // copies, 1
            params[name] = self.param(name, _init, *shape, role == "shortcut")
            size = size if role == "head" else width
        weights = fold(self.config, self.group, {"params": params})
        weights = jax.tree.map(lambda x: x.astype(self.dtype), weights)
        return infer(self.config, self.group, weights, planes)


def _layers(config: Config) -> tuple[Layer, ...]:
    if isinstance(config, mlp.MLPConfig):
        return (*mlp.list_layers(len(config.hidden)), *HEADS)
    return (*resnet.list_layers(config.blocks), *HEADS)


def _widths(config: Config) -> tuple[int, ...]:
    """Returns the widths of all layers except the last two."""
    is_mlp = isinstance(config, mlp.MLPConfig)
    trunk = config.hidden if is_mlp else (config.width,) * (1 + 2 * config.blocks)
    return (*trunk, config.head_hidden, config.head_hidden)


def check_widths(config: Config, game: Game) -> None:
    """Raises ValueError if symmetries cannot share the layers."""
    widths = sorted({*_widths(config)})
    if any(width % game.num_symmetries for width in widths):
        raise ValueError(
            f"layers are divided among the {game.num_symmetries} symmetries of {game.name}: make "
            f"the widths of the network, now {widths}, multiples of {game.num_symmetries}"
        )


def _init(key: jax.Array, inputs: int, outputs: int, copies: int, is_zero: bool) -> Weights:
    """Draws the weights of copy 0, scaled for the number of inputs of all copies; or zeros."""
    kernel = nn.initializers.lecun_normal()(key, (inputs, outputs), jnp.float32)
    kernel = jnp.zeros_like(kernel) if is_zero else kernel
    return {"kernel": kernel[: inputs // copies], "bias": jnp.zeros(outputs, jnp.float32)}


def fold(config: Config, group: Group, variables: Variables) -> dict[str, Weights]:
    """Computes the inference form: layers from copies to copies have one kernel per character."""
    params = variables["params"]
    return {name: _fold(group, role, params[name]) for name, role in _layers(config)}


def _fold(group: Group, role: str, weights: Weights) -> Weights:
    if role in ("planes", "value"):
        return expand(group, role, weights)
    if role == "logits":
        bias = jnp.mean(weights["bias"][group.actions], axis=0)
        return expand(group, role, weights) | {"bias": bias}
    kernel, copies, blocks = weights["kernel"], len(group.copies), len(group.characters)
    # The weights into the first block of copies; those into other blocks are permutations.
    columns = permute(kernel, group.copies[: copies // blocks])
    columns = columns.reshape(blocks, len(kernel) // blocks, -1)
    shares = (group.characters / blocks).astype(columns.dtype)
    kernel = jnp.einsum("kh,hio->kio", shares, columns)
    return {"kernel": kernel, "bias": jnp.tile(weights["bias"], copies)}


def expand(group: Group, role: str, weights: dict[str, Any]) -> dict[str, Any]:
    """Returns the weights of all copies of a layer, as those of a plain dense layer."""
    kernel, copies = weights["kernel"], len(group.copies)
    if role == "logits":
        return weights | {"kernel": jnp.concatenate([kernel[:, a] for a in group.actions])}
    if role == "value":
        return weights | {"kernel": jnp.tile(kernel, (copies, 1))}
    others = {part: jnp.tile(each, copies) for part, each in weights.items() if part != "kernel"}
    return {"kernel": permute(kernel, group.cells if role == "planes" else group.copies), **others}


def permute(kernel: jax.Array, permutations: np.ndarray) -> jax.Array:
    """Permutes weights `[I, O]` by each of several symmetries: `[I, len(permutations) * O]`."""
    parts = kernel.reshape(permutations.shape[1], -1, kernel.shape[1])
    return jnp.concatenate(
        [parts[np.argsort(order)].reshape(kernel.shape) for order in permutations], axis=1
    )


def infer(config: Config, group: Group, weights: dict[str, Weights], planes: jax.Array) -> Outputs:
    """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]` and folded weights."""
    relu = functools.partial(jax.tree.map, nn.relu)

    def dense(name, x):
        return x @ weights[name]["kernel"] + weights[name]["bias"][None]

    def shared(name, x):
        """Computes a layer from blocks of copies to blocks of copies."""
        kernel, bias = weights[name]["kernel"], weights[name]["bias"]
        parts = [block @ part for block, part in zip(_combine(x), kernel, strict=True)]
        biases = jnp.split(bias, len(parts))
        return [part + bias[None] for part, bias in zip(_combine(parts), biases, strict=True)]

    def norm(x):
        has_norm = isinstance(config, resnet.ResNetConfig) and config.norm == "layer"
        return _standardize(x) if has_norm else x

    def head(hidden, name):
        units = nn.relu(jnp.concatenate(shared(hidden, x), axis=1))
        return dense(name, units).astype(jnp.float32)

    x = inner = planes.reshape(planes.shape[0], -1).astype(weights["value"]["kernel"].dtype)
    for name, role in _layers(config):
        if role == "planes":
            x = relu(jnp.split(dense(name, x), len(group.characters), axis=1))
        elif role == "hidden":
            x = relu(shared(name, x))
        elif role == "block":
            inner = relu(shared(name, norm(x)))
        elif role == "shortcut":
            x = relu(jax.tree.map(jnp.add, x, shared(name, inner)))
    x = norm(x)
    return head("policy_hidden", "policy"), jnp.tanh(head("value_hidden", "value")[:, 0])


def _combine(blocks: list[jax.Array]) -> list[jax.Array]:
    """Adds blocks with the signs of each character: the fast Walsh-Hadamard transform."""
    for bit in itertools.takewhile(lambda bit: bit < len(blocks), (1, 2, 4)):
        pairs = [(block, blocks[i ^ bit], i & bit) for i, block in enumerate(blocks)]
        blocks = [other - block if odd else block + other for block, other, odd in pairs]
    return blocks


def _standardize(blocks: list[jax.Array]) -> list[jax.Array]:
    """The LayerNorm of `ResNet`, over the units of all blocks."""
    parts = [block.astype(jnp.float32) for block in blocks]
    count = sum(part.shape[1] for part in parts)
    mean = sum(jnp.sum(part, 1, keepdims=True) for part in parts) / count
    squares = [jnp.sum(jnp.square(part - mean), 1, keepdims=True) for part in parts]
    scale = jax.lax.rsqrt(sum(squares) / count + resnet.EPSILON)
    return [((block.astype(jnp.float32) - mean) * scale).astype(block.dtype) for block in blocks]


def as_dense(config: Config, group: Group, weights: dict[str, Weights]) -> dict[str, Weights]:
    """Returns the weights of plain dense layers that compute the same as folded weights."""

    def dense(name, role):
        if role in ("planes", "logits", "value"):
            return weights[name]
        signs = np.einsum("kh,kg->khg", group.characters, group.characters).astype(np.float32)
        kernel = jnp.einsum("khg,kio->higo", signs, weights[name]["kernel"])
        return weights[name] | {"kernel": kernel.reshape(kernel.shape[0] * kernel.shape[1], -1)}

    return {name: dense(name, role) for name, role in _layers(config)}
