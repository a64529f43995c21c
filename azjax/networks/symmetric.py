"""Equivariant networks of dense layers, which share weights among a game's symmetries.

The units of a layer come in `G` copies, one for each symmetry. The output of copy `g` for a
position is the output of copy 0 for the position transformed by `g`, so only the weights of copy 0
are learned (Cohen and Welling 2016, section 6).

Sharing also saves arithmetic. Suppose `K` of the symmetries form a group of commuting involutions,
such as the reflections along two axes. The layers then act separately on `K` sums and differences
of the copies, one for each character of this group: `K` products with `n/K x n/K` matrices.
"""

import functools
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game
from azjax.games.symmetries import symmetries_of
from azjax.networks.base import Folded, Variables
from azjax.networks.resnet import MLP, ResNet, TwoHeads, standardize

# Names of layers: all except the first and the outputs map copies to copies.
FIRST, HEADS, OUTPUTS = ("Dense_0", "stem"), ("policy_hidden", "value_hidden"), ("policy", "value")
Weights = dict[str, Any]  # A kernel, or when folded often one for each character, and a bias.


class Group(NamedTuple):
    """A game's `G` symmetries as permutations of cells, of a layer's copies, and of actions.

    `K` of them form a group: the identity and commuting involutions. The symmetries are ordered so
    that each element of this group permutes `K` contiguous blocks of copies.
    """

    cells: np.ndarray  # `int [G, H * W]`, as in `Symmetries`.
    copies: np.ndarray  # `int [G, G]`, how each symmetry permutes the copies of a layer.
    actions: np.ndarray  # `int [G, A]`, the inverses of those in `Symmetries`.
    characters: np.ndarray  # `int [K, K]`, +1 or -1, the matrix of the involutions' characters.


def make_group(game: Game, symmetric: bool = True) -> Group:
    """Computes how a game's symmetries compose; only the identity if not `symmetric`."""
    symmetries = symmetries_of(game, symmetric)
    cells = symmetries.cells
    # Symmetries may differ only in their actions.
    whole = np.concatenate([cells, cells.shape[1] + symmetries.actions], axis=1)
    composed = whole[np.arange(len(whole))[:, None, None], whole]  # [G, G, H * W + A]
    table = np.argmax((composed[:, :, None] == whole).all(axis=-1), axis=-1)
    commuting = _commuting(table)
    heads = [copy for copy in range(len(table)) if copy == min(table[commuting, copy])]
    order = table[np.ix_(commuting, heads)].ravel()
    elements = np.arange(len(commuting))
    common = np.bitwise_count(elements[:, None] & elements)  # Generators that two elements share.
    return Group(
        cells=cells[order],
        copies=np.argsort(order)[table[np.ix_(order, order)]],
        actions=np.argsort(symmetries.actions[order], axis=1),
        characters=np.where(common % 2, -1, 1),
    )


def _commuting(table: np.ndarray) -> list[int]:
    """Returns a group of commuting involutions, to which no other can be added.

    The elements are row numbers of the composition table. Element `i` is the product of the
    generators whose bits are set in `i`.
    """
    group = [0]
    for g in range(1, len(table)):
        commutes = all(table[g, h] == table[h, g] for h in group)
        if table[g, g] == 0 and commutes and g not in group:
            group += [int(table[g, h]) for h in group]
    return group


class Equivariant(TwoHeads, kw_only=True):
    """Overrides the dense layers of `MLP` and `ResNet` by those that share weights.

    Between layers, units are a list of `K` arrays `[B, W / K]`, one for each block of copies; the
    hidden units of a head are one array. The parameters of a layer are the weights of copy 0.
    """

    group: Group  # Widths are multiples of its `G`.
    is_folded: bool = False  # Whether the parameters are the result of `fold`.

    relu = staticmethod(functools.partial(jax.tree.map, nn.relu))

    def dense(self, name: str, x: Any, features: int, **options: Any) -> Any:
        """Computes a layer of `features` units, those of all copies."""
        if self.is_folded:
            return apply_layer(self.group, name, self.get_variable("params", name), x)

        def draw(key) -> Weights:
            init = options.get("kernel_init", nn.Dense.kernel_init)
            inputs = sum(units.shape[1] for units in jax.tree.leaves(x))
            copies = len(self.group.copies)
            if name in OUTPUTS:  # Scaled for the number of inputs of all copies.
                kernel = init(key, (inputs, features), jnp.float32)[: inputs // copies]
            else:
                kernel = init(key, (inputs, features // copies), jnp.float32)
            return {"kernel": kernel, "bias": jnp.zeros(kernel.shape[1], jnp.float32)}

        weights = fold_layer(self.group, name, self.param(name, draw))
        weights = jax.tree.map(lambda leaf: leaf.astype(self.dtype), weights)
        return apply_layer(self.group, name, weights, x)


class EquivariantMLP(Equivariant, MLP):
    """An `MLP` with weights shared among symmetries."""


class EquivariantResNet(Equivariant, ResNet):
    """A `ResNet` of dense layers without BatchNorm, with weights shared among symmetries."""

    add = staticmethod(functools.partial(jax.tree.map, jnp.add))

    def standardize(self, x: Any) -> Any:
        """LayerNorm over all blocks together."""
        return standardize(x, self.channels, self.dtype)


def fold(group: Group, variables: Variables) -> Folded:
    """Computes the inference form: layers from copies to copies have one kernel per character."""
    params = variables["params"]
    return {"params": {name: fold_layer(group, name, params[name]) for name in params}}


def fold_layer(group: Group, name: str, weights: Weights) -> Weights:
    """Returns the inference form of a layer."""
    if name == "policy":
        bias = jnp.mean(weights["bias"][group.actions], axis=0)
        return copy_weights(group, name, weights) | {"bias": bias}
    if name in FIRST + OUTPUTS:
        return copy_weights(group, name, weights)
    kernel, copies, blocks = weights["kernel"], len(group.copies), len(group.characters)
    # The weights into the first block of copies; those into other blocks are permutations.
    columns = permute(kernel, group.copies[: copies // blocks])
    columns = columns.reshape(blocks, len(kernel) // blocks, -1)
    shares = (group.characters / blocks).astype(columns.dtype)
    # A list: XLA does not move slices of one array out of the loop of simulations.
    kernels = [*jnp.einsum("kh,hio->kio", shares, columns)]
    return {"kernel": kernels, "bias": jnp.tile(weights["bias"], copies)}


def apply_layer(group: Group, name: str, weights: Weights, x: Any) -> Any:
    """Computes a layer with folded weights."""
    kernel, bias = weights["kernel"], weights["bias"]
    if name in FIRST:
        units = x.astype(kernel.dtype) @ kernel + bias[None]
        return jnp.split(units, len(group.characters), axis=1)
    if name in OUTPUTS:  # Converted before a column is taken, because XLA then rounds less.
        return (x @ kernel + bias[None]).astype(jnp.float32)
    parts = [block @ part for block, part in zip(_combine(x), kernel, strict=True)]
    biases = jnp.split(bias, len(parts))
    units = [part + bias[None] for part, bias in zip(_combine(parts), biases, strict=True)]
    return jnp.concatenate(units, axis=1) if name in HEADS else units


def copy_weights(group: Group, name: str, weights: dict[str, Any]) -> dict[str, Any]:
    """Returns the weights of all copies of a layer, as those of a plain dense layer."""
    kernel, copies = weights["kernel"], len(group.copies)
    if name == "policy":
        return weights | {"kernel": jnp.concatenate([kernel[:, a] for a in group.actions])}
    if name == "value":
        return weights | {"kernel": jnp.tile(kernel, (copies, 1))}
    others = {part: jnp.tile(each, copies) for part, each in weights.items() if part != "kernel"}
    return {"kernel": permute(kernel, group.cells if name in FIRST else group.copies), **others}


def permute(kernel: jax.Array, permutations: np.ndarray) -> jax.Array:
    """Permutes weights `[I, O]` by each of several symmetries: `[I, len(permutations) * O]`."""
    if len(permutations) == 1:  # The identity, which as a gather would stay in the program.
        return kernel
    parts = kernel.reshape(permutations.shape[1], -1, kernel.shape[1])
    return jnp.concatenate(
        [parts[np.argsort(order)].reshape(kernel.shape) for order in permutations], axis=1
    )


def _combine(blocks: list[jax.Array]) -> list[jax.Array]:
    """Adds blocks with the signs of each character: the fast Walsh-Hadamard transform."""
    for bit in (1 << i for i in range(len(blocks).bit_length() - 1)):
        pairs = [(block, blocks[i ^ bit], i & bit) for i, block in enumerate(blocks)]
        blocks = [other - block if odd else block + other for block, other, odd in pairs]
    return blocks


def as_dense(group: Group, folded: Folded) -> Folded:
    """Returns the weights of plain dense layers that compute the same as folded weights."""
    signs = np.einsum("kh,kg->khg", group.characters, group.characters).astype(np.float32)

    def dense(name, weights) -> Weights:
        if name in FIRST + OUTPUTS:
            return weights
        kernel = jnp.einsum("khg,kio->higo", signs, jnp.stack(weights["kernel"]))
        return weights | {"kernel": kernel.reshape(kernel.shape[0] * kernel.shape[1], -1)}

    return {"params": {name: dense(name, layer) for name, layer in folded["params"].items()}}
