"""Rounding a trained network to integers, see `quantized.py`."""

from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games.base import Game, State, check_batch
from azjax.networks.base import Network, Variables
from azjax.networks.equivariant import Group
from azjax.networks.quantized import (
    LARGEST,
    TRUNK,
    VALUES,
    expand,
    make_quantized,
    symmetry_group,
)

_END = 3.8  # The table of values covers tanh from -_END to _END.

Layer = dict[str, Any]  # Arrays by name.


class Quantized(NamedTuple):
    """A quantized network.

    Attributes:
      network: a `Network` that cannot be trained.
      variables: its integers; `network.fold(variables)` prepares them for inference.
    """

    network: Network
    variables: Variables


def quantize(game: Game, network: Network, variables: Variables, states: State) -> Quantized:
    """Rounds a trained MLP to integers.

    Args:
      game: the game of the network.
      network: an MLP, symmetric or not.
      variables: its trained variables.
      states: several thousand positions `[N, ...]` like those that the network will evaluate.
        They determine the range of each unit.

    Raises:
      ValueError: if the network is not an MLP, the planes are not boolean, or the layers are so
        wide that float32 cannot hold all sums exactly.
    """
    check_batch(game, states)
    plain = None if network.plain is None else network.plain(network.fold(variables))
    if plain is None or plain.kind != "mlp":
        raise ValueError("this network cannot be quantized: use an MLP, `MLPConfig`")
    planes = jax.vmap(lambda state: game.observe(state, network.encoding))(states)
    if planes.dtype != bool:
        raise ValueError(
            f"the planes of {game.name} are of type {planes.dtype}: quantized networks need bool"
        )
    group = symmetry_group(game, network.symmetric)
    layers = {name: jax.tree.map(np.asarray, layer) for name, layer in plain.layers.items()}
    rounding = _Rounding(group, layers, {})
    x, units = np.asarray(planes).reshape(len(planes), -1), np.ones(planes[0].size)
    for name in (f"{TRUNK}{i}" for i in range(plain.blocks)):
        x, units = rounding.hidden(name, x, units)
    rounding.policy(*rounding.hidden("policy_hidden", x, units))
    rounding.value(rounding.hidden("value_hidden", x, units)[1])
    integers = {"params": rounding.params}
    made = make_quantized(game, integers, network.encoding, network.symmetric)
    return Quantized(made, integers)


class _Rounding(NamedTuple):
    """Rounds layer by layer; `params` collects the results."""

    group: Group
    layers: dict[str, Layer]
    params: dict[str, Layer]

    def hidden(self, name: str, x: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rounds a hidden layer.

        Args:
          name: the layer.
          x: its inputs `[N, I]`, integers.
          units: `[I]`, the real number that the integer 1 represents in each input.

        Returns:
          Its outputs `[N, O]`, integers, and the real number that 1 represents in each, `[O]`.
        """
        copies = len(self.group.copies)
        kernel, bias = (self.layers[name][part].astype(np.float64) for part in ("kernel", "bias"))
        first = kernel.shape[1] // copies  # The other copies follow from the first.
        weights = kernel[:, :first] * units[:, None]
        scale = np.maximum(np.abs(weights).max(axis=0), 1e-12) / LARGEST
        layer = {
            "kernel": np.rint(weights / scale).astype(np.int8),
            "bias": np.rint(bias[:first] / scale).astype(np.int32),
            "shift": np.zeros(first, np.uint8),
        }
        dense = {part: np.asarray(each) for part, each in expand(self.group, name, layer).items()}
        totals = x.astype(np.float32) @ dense["kernel"].astype(np.float32) + dense["bias"]
        shift = _choose_shifts(np.maximum(totals, 0).reshape(-1, copies, first))
        layer["shift"], layer["bias"] = shift.astype(np.uint8), layer["bias"] + 2 ** (shift - 1)
        self.params[name] = layer
        shifts = np.tile(shift, copies)
        totals = np.floor((totals + 2.0 ** (shifts - 1)) * 2.0**-shifts)
        return np.clip(totals, 0, LARGEST), np.tile(scale * 2.0**shift, copies)

    def policy(self, x: np.ndarray, units: np.ndarray) -> None:
        """Rounds the layer of the logits, with one power of two for all of them."""
        group, layer = self.group, self.layers["policy"]
        weights = (layer["kernel"] * units[:, None])[: len(units) // len(group.copies)]
        scale = 2.0 ** np.ceil(np.log2(np.abs(weights).max() / LARGEST))
        bias = np.rint(layer["bias"] / scale)[group.actions.min(axis=0)]  # One for all copies.
        kernel = np.rint(weights / scale).astype(np.int8)
        rounded: dict[str, Any] = {"kernel": kernel, "bias": bias.astype(np.int32), "shift": 0}
        dense = np.asarray(expand(group, "policy", rounded)["kernel"]).astype(np.int64)
        most = int((np.abs(dense).sum(axis=0) * LARGEST + np.abs(bias)).max())
        ranks = (group.actions.shape[1] - 1).bit_length()
        rounded["shift"] = np.uint8(max(most.bit_length() + ranks + 1 - 24, 0))
        rounded["scale"] = np.float32(scale * 2.0 ** int(rounded["shift"]) / 2**ranks)
        self.params["policy"] = rounded

    def value(self, units: np.ndarray) -> None:
        """Rounds the layer of the value, and computes the table that replaces tanh."""
        layer, copies = self.layers["value"], len(self.group.copies)
        weights = (layer["kernel"] * units[:, None])[: len(units) // copies]
        scale = np.abs(weights).max() / LARGEST
        shift = max(int(np.ceil(np.log2(_END / VALUES / scale))), 1)
        bias = np.rint(layer["bias"] / scale).astype(np.int32) + 2 ** (shift - 1)
        steps = np.arange(-VALUES, VALUES + 1) * scale * 2.0**shift
        self.params["value"] = {
            "kernel": np.rint(weights / scale).astype(np.int8),
            "bias": bias.astype(np.int32),
            "shift": np.uint8(shift),
            "table": np.tanh(steps).astype(np.float32),
        }


def _choose_shifts(totals: np.ndarray) -> np.ndarray:
    """Returns `int [O]`, the shifts that round nonnegative `totals [N, G, O]` with least error."""
    largest = np.maximum(totals.max(axis=(0, 1)), 1)
    most = np.maximum(np.ceil(np.log2(largest / LARGEST)), 1).astype(np.int32)
    candidates = [np.maximum(most - fewer, 1) for fewer in range(3)]

    def error(shift):
        rounded = np.clip(np.floor(totals * 2.0**-shift + 0.5), 0, LARGEST) * 2.0**shift
        return np.square(rounded - totals).mean(axis=(0, 1))

    best = np.argmin([error(shift) for shift in candidates], axis=0)
    return np.take_along_axis(np.stack(candidates), best[None], axis=0)[0]
