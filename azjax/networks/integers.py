"""Quantized networks, whose arithmetic is exact: every machine computes the same outputs.

A float network may choose another move on another processor, because the order of a sum changes its
last bit. Here weights are integers in [-127, 127], activations are integers in [0, 127], and sums
are integers below `2 ** 24`, which float32 holds exactly in any order and on any device.

A hidden layer computes `clip(floor((x @ kernel + bias) * 2 ** -shift), 0, 127)`, where the bias
contains `2 ** (shift - 1)` to round to the nearest integer. The value is read from a table.
`experiments.quantize` chooses the integers.

Ties go to the action with the lowest number in the canonical orientation of the board, see
`orient`, except that actions which are symmetric copies of each other have equal logits.
"""

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import resolve_platform
from azjax.games.base import Game
from azjax.games.symmetries import orient
from azjax.networks.base import Folded, Network, Outputs, Plain, Variables, choose_dtype, sizes
from azjax.networks.config import DType
from azjax.networks.symmetric import FIRST, HEADS, OUTPUTS, Group, copy_weights, make_group

LARGEST = 127  # The largest weight and activation.
VALUES = 511  # The table of values has an entry for each integer from -VALUES to VALUES.
EXACT = 2**24  # float32 holds all integers up to this one.


def make_quantized(
    game: Game, variables: Variables, encoding: str, symmetric: bool, dtype: DType = "auto"
) -> Network:
    """Makes a network from integers. It cannot be trained, and `init` returns the given integers.

    `variables` are `{"params": {layer: arrays}}`. Every layer has a `kernel` `int8 [I, O]`, a
    `bias` `int32 [O]` and a `shift`: `uint8 [O]` in hidden layers, `uint8 []` in `policy` and
    `value`. `policy` also has a `scale` `float32 []`, and `value` a `table` `float32 [1023]`. In a
    `symmetric` network, these are the weights of copy 0, see `symmetric.py`. `dtype` is the type of
    the factors in products; the results do not depend on it.
    """
    group = make_group(game, symmetric)
    check_sums(group, variables)
    factors = choose_dtype(dtype, resolve_platform(None))
    layers = [f"Dense_{i}" for i in range(len(variables["params"]) - len(HEADS + OUTPUTS))]

    def fold(variables: Variables) -> Folded:
        """Returns dense layers: kernels in the type of the factors, all else in float32."""

        def dense(name, layer):
            layer = jax.tree.map(jnp.asarray, copy_weights(group, name, layer))
            factor = jnp.ldexp(jnp.float32(1), -layer["shift"].astype(jnp.int32))
            floats = {part: each.astype(jnp.float32) for part, each in layer.items()}
            return floats | {"kernel": layer["kernel"].astype(factors), "factor": factor}

        return {name: dense(name, layer) for name, layer in variables["params"].items()}

    def infer(folded: Folded, planes: jax.Array) -> Outputs:
        def scaled(name, x):
            layer = folded[name]
            x = x.astype(layer["kernel"].dtype)
            total = jnp.matmul(x, layer["kernel"], preferred_element_type=jnp.float32)
            factor = jnp.atleast_1d(layer["factor"])  # One, or one for each unit.
            return jnp.floor((total + layer["bias"][None]) * factor[None])

        def hidden(name, x):
            return jnp.clip(scaled(name, x), 0, LARGEST)

        x = planes.reshape(planes.shape[0], -1)
        for name in layers:
            x = hidden(name, x)
        ranked = scaled("policy", hidden("policy_hidden", x)) * num_ranks(group)
        ranked = ranked - _rank(group, planes)
        value = scaled("value", hidden("value_hidden", x))[:, 0]
        index = jnp.clip(value, -VALUES, VALUES).astype(jnp.int32) + VALUES
        return ranked * folded["policy"]["scale"], folded["value"]["table"][index]

    def train(variables, planes, axis_name):
        raise ValueError(
            "a quantized network cannot be trained: train the network that it was made from, and "
            "quantize it again"
        )

    return Network(
        encoding=encoding,
        init=lambda key: variables,
        train=train,
        infer=infer,
        fold=fold,
        plain=lambda folded: Plain("quantized", len(layers), False, folded),
        symmetric=symmetric and game.num_symmetries > 1,
        made_for=sizes(game, encoding),
        exact=True,
    )


def check_sums(group: Group, variables: Variables) -> None:
    """Raises ValueError if a sum in a layer may reach `2 ** 24`, so float32 may round it."""
    for name, layer in variables["params"].items():
        dense = copy_weights(group, name, layer)
        weights, bias = (np.abs(np.asarray(dense[part], np.int64)) for part in ("kernel", "bias"))
        largest = int((weights.sum(axis=0) * (1 if name in FIRST else LARGEST) + bias).max())
        if name == "policy":
            largest = ((largest >> int(layer["shift"])) + 1) * num_ranks(group)
        if largest >= EXACT:
            raise ValueError(
                f"a sum in the layer {name} of the quantized network may be {largest}, and float32 "
                f"is exact below {EXACT}: use a narrower network"
            )


def num_ranks(group: Group) -> int:
    """Returns the smallest power of two that is at least the number of actions."""
    return 1 << int(group.actions.shape[1] - 1).bit_length()


def _rank(group: Group, planes: jax.Array) -> jax.Array:
    """Returns `float32 [B, A]`, the number of each action in the canonical orientation.

    If symmetric copies of a position are equal, an action gets the lowest of its numbers.
    """
    _, leads = orient(group.cells, planes)
    numbers = jnp.where(leads[:, :, None], group.actions[None], group.actions.shape[1])
    return jnp.min(numbers, axis=1).astype(jnp.float32)
