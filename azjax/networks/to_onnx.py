"""Networks as ONNX graphs, which other programs evaluate.

A graph maps `planes [b, H, W, C]`, of the type that the game has, to `logits float32 [b, A]` and
`value float32 [b]`. It computes in float32. The outputs of a quantized network are equal to JAX's
bit for bit, those of other networks up to rounding. This module needs the package onnx.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from azjax.games.base import Game
from azjax.networks.base import Folded, Network, Plain, observed_planes
from azjax.networks.equivariant import Group
from azjax.networks.quantized import LARGEST, VALUES, num_ranks, symmetry_group, trunk_layers
from azjax.networks.resnet import EPSILON

OPSET, _IR_VERSION = 17, 8  # ONNX 1.12, of 2022; the first with LayerNormalization.


def to_onnx(
    game: Game,
    network: Network,
    folded: Folded,
    batch_size: int | None = None,
    about: Mapping[str, str] | None = None,
) -> bytes:
    """Returns the ONNX file of a network.

    Args:
      game: the rules.
      network: a network whose field `plain` is set.
      folded: its parameters for inference.
      batch_size: the number of positions; None means any number, the dimension `b`.
      about: names and values to store in the file.

    Raises:
      ValueError: if the network has no ONNX form.
    """
    if network.plain is None:
        raise ValueError(
            "this network has no ONNX form, because its field `plain` is None: export it to a name "
            "that ends in .stablehlo"
        )
    plain = network.plain(folded)
    one, graph = observed_planes(game, network.encoding), Graph()
    if plain.kind == "quantized":
        group = symmetry_group(game, network.symmetric)
        logits, value = _quantized(graph, group, plain, one.shape)
    else:
        logits, value = _network(graph, plain)
    graph.add("Identity", logits, output="logits")
    graph.add("Identity", value, output="value")
    batch = "b" if batch_size is None else batch_size

    def describe(name, dtype, shape):
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return onnx.helper.make_tensor_value_info(name, kind, [batch, *shape])

    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            game.name,
            inputs=[describe("planes", one.dtype, one.shape)],
            outputs=[
                describe("logits", np.float32, [game.num_actions]),
                describe("value", np.float32, []),
            ],
            initializer=graph.constants,
        ),
        producer_name="azjax",
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
    )
    onnx.helper.set_model_props(model, dict(about or {}))
    onnx.checker.check_model(model)
    return model.SerializeToString()


class Graph:
    """Collects the nodes and the constants of a graph; tensors are represented by their names."""

    def __init__(self):
        """Makes an empty graph."""
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def _name(self, x: str | np.ndarray) -> str:
        if isinstance(x, str):
            return x
        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(x, name))
        return name

    def add(self, operator: str, *inputs: str | np.ndarray, output: str = "", **look: Any) -> str:
        """Adds a node with attributes; returns the name of its output. Arrays become constants."""
        names, output = [*map(self._name, inputs)], output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, names, [output], name=output, **look))
        return output

    def to_float(self, x: str | np.ndarray) -> str:
        """Converts a tensor to float32."""
        return self.add("Cast", x, to=onnx.TensorProto.FLOAT)

    def flatten(self, x: str) -> str:
        """Reshapes `[b, ...]` to `[b, N]`."""
        return self.add("Flatten", x, axis=1)

    def column(self, x: str) -> str:
        """Reshapes `[b, 1]` to `[b]`."""
        return self.add("Squeeze", x, np.array([1]))


def _floats(array: Any) -> np.ndarray:
    return np.asarray(array).astype(np.float32)


def _network(graph: Graph, plain: Plain) -> tuple[str, str]:
    """Adds an MLP or a residual network; returns its logits and its value."""
    layers = plain.layers
    convolves = plain.kind == "resnet" and np.ndim(layers["stem"]["kernel"]) == 4

    def layer(name: str, x: str) -> str:
        kernel, bias = _floats(layers[name]["kernel"]), _floats(layers[name]["bias"])
        if kernel.ndim == 2:
            return graph.add("Gemm", x, kernel, bias)
        margin = kernel.shape[0] // 2
        return graph.add("Conv", x, kernel.transpose(3, 2, 0, 1), bias, pads=[margin] * 4)

    def relu(name: str, x: str) -> str:
        return graph.add("Relu", layer(name, x))

    def norm(x: str) -> str:
        if not plain.norm:
            return x
        ones = np.ones(layers["stem"]["bias"].shape, np.float32)
        x = graph.add("Transpose", x, perm=[0, 2, 3, 1]) if convolves else x
        x = graph.add("LayerNormalization", x, ones, epsilon=EPSILON)
        return graph.add("Transpose", x, perm=[0, 3, 1, 2]) if convolves else x

    x = graph.to_float("planes")
    x = graph.add("Transpose", x, perm=[0, 3, 1, 2]) if convolves else graph.flatten(x)
    if plain.kind == "mlp":
        for i in range(plain.blocks):
            x = relu(f"Dense_{i}", x)
    else:
        x = relu("stem", x)
        for i in range(plain.blocks):
            inner = layer(f"block{i}_b", relu(f"block{i}_a", norm(x)))
            x = graph.add("Relu", graph.add("Add", x, inner))
        x = norm(x)

    def head(name: str) -> str:
        """Returns the hidden units of a head, of all cells and in the order of JAX."""
        return graph.flatten(graph.add("Transpose", relu(name, x), perm=[0, 2, 3, 1]))

    if convolves:
        policy, value = head("policy_conv"), relu("value_hidden", head("value_conv"))
    else:
        policy, value = relu("policy_hidden", x), relu("value_hidden", x)
    value = graph.column(graph.add("Tanh", layer("value", value)))
    return layer("policy", policy), value


def _quantized(graph: Graph, group: Group, plain: Plain, shape: tuple[int, ...]) -> tuple[str, str]:
    """Adds a quantized network, see `quantized.py`; returns its logits and its value."""
    layers = plain.layers

    def scaled(name: str, x: str) -> str:
        layer = layers[name]
        kernel = graph.to_float(_floats(layer["kernel"]).astype(np.int8))
        total = graph.add("Add", graph.add("MatMul", x, kernel), _floats(layer["bias"]))
        return graph.add("Floor", graph.add("Mul", total, _floats(layer["factor"])))

    def clip(x: str, low: float, high: float) -> str:
        return graph.add("Clip", x, np.array(low, np.float32), np.array(high, np.float32))

    def hidden(name: str, x: str) -> str:
        return clip(scaled(name, x), 0, LARGEST)

    planes = graph.to_float("planes")
    x = graph.flatten(planes)
    for name in trunk_layers(layers):
        x = hidden(name, x)
    count = np.array(num_ranks(group), np.float32)
    totals = graph.add("Mul", scaled("policy", hidden("policy_hidden", x)), count)
    totals = graph.add("Sub", totals, _rank(graph, group, planes, shape[-1]))
    found = graph.column(scaled("value", hidden("value_hidden", x)))
    index = graph.add("Add", clip(found, -VALUES, VALUES), np.array(VALUES, np.float32))
    index = graph.add("Cast", index, to=onnx.TensorProto.INT64)
    value = graph.add("Gather", _floats(layers["value"]["table"]), index)
    return graph.add("Mul", totals, _floats(layers["policy"]["scale"])), value


def _rank(graph: Graph, group: Group, planes: str, channels: int) -> str:
    """Adds the number of each action in the canonical orientation, float32 `[b, A]`.

    It is `quantized._rank`, and the copies are compared as in `quantized.orient`.
    """
    grid = graph.add("Reshape", planes, np.array([0, group.cells.shape[1], channels]))
    copies = [graph.flatten(graph.add("Gather", grid, order, axis=1)) for order in group.cells]
    smallest = copies[0]
    for other in copies[1:]:
        is_same = graph.to_float(graph.add("Equal", smallest, other))
        first = graph.add("ArgMin", is_same, axis=1)  # The first difference.
        entries = [graph.add("GatherElements", x, first, axis=1) for x in (other, smallest)]
        smallest = graph.add("Where", graph.add("Less", *entries), other, smallest)
    none, true = (np.array(x, np.float32) for x in (group.actions.shape[1], 1))
    ranks = []
    for copy, numbers in zip(copies, group.actions, strict=True):
        is_same = graph.to_float(graph.add("Equal", smallest, copy))
        leads = graph.add("Equal", graph.add("ReduceMin", is_same, axes=[1]), true)
        ranks.append(graph.add("Where", leads, _floats(numbers)[None], none))
    return graph.add("Min", *ranks)
