"""Quantized networks: equal bits everywhere, exact symmetry, and close to the float network."""

import functools

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import guard
from azjax import games
from azjax.games.base import choose
from azjax.networks.integers import EXACT, LARGEST, check_sums, make_quantized
from azjax.networks.symmetric import make_group
from azjax.training import AXIS, make_mesh
from integers import evaluate, make_case, observe, positions
from refusals import assert_refused

CASES = {"connect_four:3x4x3": True, "othello:4": True, "hex:3": False}
COUNT = 160  # Positions; a multiple of the number of devices.


class Outputs:
    """The outputs of the networks of one case in the same positions."""

    def __init__(self, name):
        self.case = case = make_case(name, CASES[name])
        states = positions(name)
        rows = np.random.default_rng(0).permutation(len(states.board))[:COUNT]
        self.states = jax.tree.map(
            lambda leaf: np.resize(leaf[rows], (COUNT, *leaf.shape[1:])), states
        )
        self.planes = observe(case.game, self.states)
        self.infer = {
            dtype: self.compile(dtype) for dtype in ("float32", "bfloat16", "float32 on devices")
        }
        with guard.sharing():
            folded = case.network.fold(case.variables)
            self.floats = jax.jit(case.network.infer)(folded, self.planes)

    def compile(self, kind):
        dtype, _, sharded = kind.partition(" ")
        made = self.case.made
        network = make_quantized(
            self.case.game, made.variables, "relative", made.network.symmetric, dtype
        )
        infer = network.infer
        if sharded:
            specs = {"in_specs": (P(), P(AXIS)), "out_specs": P(AXIS)}
            infer = jax.shard_map(infer, mesh=make_mesh(), **specs)
        with guard.sharing():
            folded, compiled = network.fold(made.variables), jax.jit(infer)
        return lambda planes: jax.device_get(compiled(folded, planes))


@functools.cache
def outputs(name):
    with guard.sharing():
        return Outputs(name)


@pytest.mark.parametrize("name", CASES)
def test_every_way_to_compute_gives_equal_bits(name):
    each = outputs(name)
    expected = evaluate(each.case.game, CASES[name], each.case.made.variables, each.planes)
    with guard.sharing():
        for infer in each.infer.values():
            for output, wanted in zip(infer(each.planes), expected, strict=True):
                np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name]])
def test_symmetric_copies_get_exactly_symmetric_outputs(name):
    each, symmetries = outputs(name), outputs(name).case.game.symmetries
    with guard.sharing():
        logits, value = each.infer["float32"](each.planes)
        for cells, actions in zip(symmetries.cells, symmetries.actions, strict=True):
            turned = each.planes.reshape(COUNT, len(cells), -1)[:, cells].reshape(each.planes.shape)
            others, same = each.infer["float32"](turned)
            np.testing.assert_array_equal(others, logits[:, actions])
            np.testing.assert_array_equal(same, value)


@pytest.mark.parametrize("name", CASES)
def test_the_outputs_are_close_to_those_of_the_float_network(name):
    """Kernels and biases of all layers are random, so none of them may be left out."""
    each = outputs(name)
    with guard.sharing():
        rounded, near = each.infer["float32"](each.planes)
    logits, value = each.floats
    assert np.abs(rounded - logits).max() < 0.05 * np.abs(logits).max() + 0.01
    assert np.abs(near - value).max() < 0.02 < np.std(value) and np.abs(value).max() < 0.95
    legal = np.asarray(jax.vmap(each.case.game.legal_actions)(each.states))
    assert np.mean(choose(rounded, legal) == choose(logits, legal)) > 0.9


def test_ties_go_to_the_lowest_action_in_the_canonical_orientation():
    each = outputs("connect_four:3x4x3")
    params = jax.tree.map(np.copy, each.case.made.variables["params"])
    params["policy"]["kernel"][:] = params["policy"]["bias"][:] = 0
    network = make_quantized(each.case.game, {"params": params}, "relative", True)
    with guard.sharing():
        folded = network.fold({"params": params})
        chosen = jax.jit(network.infer)(folded, each.planes)[0].argmax(axis=1)
    for board, action in zip(each.planes, chosen.tolist(), strict=True):
        is_canonical = tuple(board.ravel()) <= tuple(board[:, ::-1].ravel())
        assert action == (0 if is_canonical else each.case.game.num_actions - 1)


# The bound on sums: one more may be refused, one less is not.


GAME = games.make("connect_four:3x3x3")
LAYERS = ["Dense_0", "Dense_1", "policy_hidden", "value_hidden", "policy", "value"]


def random_layers(copies=1, seed=0):
    """A network with one hidden unit for each copy; weights of both signs."""
    rng = np.random.default_rng(seed)

    def layer(inputs, outputs, shift):
        kernel = rng.integers(-127, 128, (inputs, outputs), dtype=np.int8)
        return {"kernel": kernel, "bias": np.zeros(outputs, np.int32), "shift": shift}

    units, one = 2 * copies, np.ones(2, np.uint8)
    layers = {name: layer(units, 2, one) for name in LAYERS[1:4]}
    layers["Dense_0"] = layer(18, 2, one)
    layers["policy"] = layer(2, 3, np.uint8(3)) | {"scale": np.float32(0.5)}
    layers["value"] = layer(2, 1, np.uint8(4)) | {"table": np.zeros(1023, np.float32)}
    return layers


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_the_largest_sum_counts_every_input_with_its_largest_value(name, symmetric, sign):
    """Inputs are planes of 0 and 1, or activations up to 127, with the worst signs."""
    group, copies = make_group(GAME, symmetric), 1 + symmetric
    layers = random_layers(copies)
    kernel = layers[name]["kernel"].astype(int)
    if symmetric and name == "policy":  # Each copy adds to every action.
        sums = np.abs(np.vstack([kernel, kernel[:, ::-1]])).sum(axis=0)
    else:
        sums = np.abs(kernel).sum(axis=0) * (copies if symmetric and name == "value" else 1)
    largest = sums.max() * (1 if name == "Dense_0" else LARGEST)
    limit = EXACT - 1
    if name == "policy":  # After the shift by 3, a rank below 4 is subtracted.
        limit = ((limit // 4 - 1) << 3) + 7
    layers[name]["bias"][sums.argmax()] = sign * (limit - largest)
    check_sums(group, {"params": layers})
    layers[name]["bias"][sums.argmax()] += sign
    said = f"a sum in the layer {name} of the quantized network may be 16777216, and float32 is"
    call = lambda: make_quantized(GAME, {"params": layers}, "relative", symmetric)  # noqa: E731
    assert_refused((call, said, "use a narrower network"))
