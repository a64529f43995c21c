"""A multilayer perceptron that respects a game's symmetries, by sharing its weights.

The units of a layer come in `G` copies, one for each symmetry: copy `g` makes of a position what
copy 0 makes of its image under `g`. So the weights of copy 0 are all that is learned, and the
outputs for an image of a position are the images of its outputs, exactly and before anything is
learned: a group-equivariant network (Cohen and Welling 2016, section 6) of dense layers.

That saves arithmetic, too. Where `K` of the symmetries commute and undo themselves, such as
mirrorings along two axes, sums and differences of the copies do not mix. There is one such
combination for each of their `K` characters, and a product of `n x n` becomes `K` of `n/K x n/K`.
"""

import itertools
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from azjax.game import Symmetries
from azjax.networks.base import Variables
from azjax.networks.mlp import product_for

Layer = dict[str, jax.Array]  # A kernel and a bias.


class Group(NamedTuple):
    """A game's symmetries as they act on what a network computes.

    They are in such an order that the `K` that commute and undo themselves exchange `K` blocks of
    a layer's copies.

    Attributes:
      cells: `int [G, H * W]`, as in `Symmetries`.
      copies: `int [G, G]`, the same for the copies of a layer.
      actions: `int [G, A]`, the inverses of those in `Symmetries`.
      characters: `int [K, K]`, +1 or -1; symmetric.
    """

    cells: np.ndarray
    copies: np.ndarray
    actions: np.ndarray
    characters: np.ndarray


def make_group(symmetries: Symmetries) -> Group:
    """Finds how symmetries compose, and the most that commute and undo themselves."""
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
    """Returns the largest group of such symmetries; that at `i` has the factors in `i`'s bits."""
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


class EquivariantMLP(nn.Module):
    """The perceptron `modules.MLP`, with its weights shared among symmetries.

    Attributes:
      hidden: widths of the shared layers, multiples of `G`.
      head_hidden: width of the hidden layer in each head, such a multiple, too.
      num_actions: `A`.
      group: of the game.
      dtype: of the arithmetic.
      platform: what it is lowered for, such as `cpu`.
    """

    hidden: tuple[int, ...]
    head_hidden: int
    num_actions: int
    group: Group
    dtype: Any = jnp.float32
    platform: str = ""

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        copies = len(self.group.copies)
        widths = [planes[0].size, *self.hidden]
        layers = {f"Dense_{i}": sizes for i, sizes in enumerate(itertools.pairwise(widths))}
        for name in ("policy_hidden", "value_hidden"):
            layers[name] = widths[-1], self.head_hidden
        params = {
            name: self.param(name, _init, inputs, outputs // copies)
            for name, (inputs, outputs) in layers.items()
        }
        for name, outputs in (("policy", self.num_actions), ("value", 1)):
            params[name] = self.param(name, _init, self.head_hidden, outputs, copies)
        weights = arrange(self.group, {"params": params})
        weights = jax.tree.map(lambda x: x.astype(self.dtype), weights)
        return infer(self.group, weights, planes, self.platform)


def _init(key: jax.Array, inputs: int, outputs: int, copies: int = 1) -> Layer:
    """Draws the weights of copy 0, as small as if it had all of the inputs."""
    kernel = nn.initializers.lecun_normal()(key, (inputs, outputs), jnp.float32)
    return {"kernel": kernel[: inputs // copies], "bias": jnp.zeros(outputs, jnp.float32)}


def arrange(group: Group, variables: Variables) -> dict[str, Layer]:
    """Makes the inference form: layers between copies as products for each character."""
    return {name: _arrange(group, name, layer) for name, layer in variables["params"].items()}


def _arrange(group: Group, name: str, layer: Layer) -> Layer:
    kernel, bias = layer["kernel"], layer["bias"]
    copies, blocks = len(group.copies), len(group.characters)
    if name == "value":
        return {"kernel": jnp.tile(kernel, (copies, 1)), "bias": bias}
    if name == "policy":
        kernel = jnp.concatenate([kernel[:, order] for order in group.actions])
        return {"kernel": kernel, "bias": jnp.mean(bias[group.actions], axis=0)}
    bias = jnp.tile(bias, copies)
    if name == "Dense_0":
        return {"kernel": _see(kernel, group.cells), "bias": bias}
    # What leads to the copies of the first block; the others' weights are the same, exchanged.
    columns = _see(kernel, group.copies[: copies // blocks])
    columns = columns.reshape(blocks, len(kernel) // blocks, -1)
    shares = (group.characters / blocks).astype(columns.dtype)
    return {"kernel": jnp.einsum("kh,hio->kio", shares, columns), "bias": bias}


def _see(kernel: jax.Array, images: np.ndarray) -> jax.Array:
    """Makes of weights `[I, O]` for an input those for its images, `[I, len(images) * O]`."""
    parts = kernel.reshape(images.shape[1], -1, kernel.shape[1])
    return jnp.concatenate(
        [parts[np.argsort(image)].reshape(kernel.shape) for image in images], axis=1
    )


def infer(
    group: Group, weights: dict[str, Layer], planes: jax.Array, platform: str
) -> tuple[jax.Array, jax.Array]:
    """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]` and arranged weights."""
    dtype = weights["value"]["kernel"].dtype
    product = product_for(dtype, platform)

    def dense(name, x):
        return product(x, weights[name]["kernel"]) + weights[name]["bias"][None]

    def layer(name, blocks):
        kernel, bias = weights[name]["kernel"], weights[name]["bias"]
        parts = [product(x, part) for x, part in zip(_combine(blocks), kernel, strict=True)]
        biases = jnp.split(bias, len(parts))
        return [nn.relu(x + part[None]) for x, part in zip(_combine(parts), biases, strict=True)]

    def head(name):
        hidden = jnp.concatenate(layer(f"{name}_hidden", blocks), axis=1)
        return dense(name, hidden).astype(jnp.float32)

    x = nn.relu(dense("Dense_0", planes.reshape(len(planes), -1).astype(dtype)))
    blocks = jnp.split(x, len(group.characters), axis=1)
    for i in range(1, sum(name.startswith("Dense_") for name in weights)):
        blocks = layer(f"Dense_{i}", blocks)
    return head("policy"), jnp.tanh(head("value")[:, 0])


def _combine(blocks: list[jax.Array]) -> list[jax.Array]:
    """Adds and subtracts blocks by the characters: the fast Walsh-Hadamard transform."""
    for bit in itertools.takewhile(lambda bit: bit < len(blocks), (1, 2, 4)):
        pairs = [(block, blocks[i ^ bit], i & bit) for i, block in enumerate(blocks)]
        blocks = [other - block if odd else block + other for block, other, odd in pairs]
    return blocks


def as_mlp(group: Group, weights: dict[str, Layer]) -> dict[str, Layer]:
    """Makes of arranged weights those of the `modules.MLP` that computes the same."""

    def dense(name, layer):
        if name in ("Dense_0", "policy", "value"):
            return layer
        signs = np.einsum("kh,kg->khg", group.characters, group.characters).astype(np.float32)
        kernel = jnp.einsum("khg,kio->higo", signs, layer["kernel"])
        return layer | {"kernel": kernel.reshape(kernel.shape[0] * kernel.shape[1], -1)}

    return {name: dense(name, layer) for name, layer in weights.items()}
