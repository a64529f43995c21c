"""Trained networks as JSON, for pages that search without Python.

In a small game, a network is stored as its outputs in every position with a decision; in other
games, as its weights. In float32 a page then computes the same searches as Python.
"""

import base64
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from azjax.games.solver import Solution
from azjax.networks.equivariant import Group
from azjax.networks.quantized import symmetry_group
from azjax.runs.player import Player
from azjax.viz.page import pack


def pack_answers(iteration: int, solution: Solution, logits: Any, values: Any) -> dict[str, Any]:
    """Packs a network's outputs, for `openNetworks` in `js/network.js`.

    They are `logits [D, A]` and `values [D]`, in the `D` positions that have a decision.
    """
    legal = solution.legal[solution.decisions]
    packed = {"logits": pack(np.asarray(logits)[legal], "<f4"), "values": pack(values, "<f4")}
    return {"iteration": iteration, "kind": "answers"} | packed


def pack_weights(player: Player, width: int | None = None) -> dict[str, Any]:
    """Packs the folded weights of a network, for `openNetworks` in `js/network.js`.

    Args:
      player: the player whose network is packed.
      width: bytes per weight, 2 to 4; by default all bytes, 4 in float32 and 2 in bfloat16. With 3
        a weight is rounded by up to 2**-16 of itself.
    """
    network = player.parts.network
    plain = None if network.plain is None else network.plain(player.params)
    if plain is None:
        raise ValueError("a page cannot compute this network: use an MLP or a residual network")
    if plain.kind == "quantized":
        return _pack_integers(player)
    kind, blocks, norm, layers = plain
    size = width or jax.tree.leaves(layers)[0].dtype.itemsize
    header = {"kind": kind, "blocks": blocks, "norm": norm, "iteration": player.iteration}
    packed = {
        name: {part: _pack_floats(weights, size) for part, weights in layer.items()}
        for name, layer in layers.items()
    }
    return header | {"encoding": network.encoding, "width": size, "layers": packed}


def _pack_integers(player: Player) -> dict[str, Any]:
    """Packs the integers of a quantized network, for `Quantized` in `js/quantized.js`."""
    network = player.parts.network
    arrays, content = list_arrays(integers(player))
    return {
        "kind": "quantized",
        "iteration": player.iteration,
        "encoding": network.encoding,
        "width": 1,
        "group": list_group(symmetry_group(player.game, network.symmetric)),
        "arrays": arrays,
        "bytes": base64.b64encode(content).decode(),
    }


def integers(player: Player) -> dict[str, dict[str, Any]]:
    """Returns the arrays of each layer of a quantized network."""
    params = player.parts.network.init(jax.random.key(0))["params"]
    return {name: dict(layer) for name, layer in params.items()}


def list_arrays(layers: Mapping[str, Mapping[str, Any]]) -> tuple[list[Any], bytes]:
    """Returns `[layer, name, type, shape]` of each array, and their bytes in the same order."""
    arrays = [
        (layer, name, np.ascontiguousarray(np.atleast_1d(np.asarray(array))))
        for layer, parts in layers.items()
        for name, array in parts.items()
    ]
    listed = [[layer, name, array.dtype.str[1:], [*array.shape]] for layer, name, array in arrays]
    return listed, b"".join(array.tobytes() for _, _, array in arrays)


def list_group(group: Group) -> dict[str, list[list[int]]]:
    """Returns the permutations of cells, copies and actions as lists."""
    return {name: getattr(group, name).tolist() for name in ("cells", "copies", "actions")}


def _pack_floats(weights: Any, width: int) -> str:
    """Rounds float32 numbers to their `width` upper bytes; returns base64."""
    bits = np.asarray(weights, "<f4").view("<u4")
    dropped = 4 - width
    bits = bits + np.uint32(2 ** (8 * dropped) // 2)
    return pack(bits.reshape(-1, 1).view("u1")[:, dropped:], "u1")
