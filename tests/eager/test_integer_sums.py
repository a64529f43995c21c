"""The bound on sums of integer networks is exact: one more may be refused, one less is not."""

import numpy as np
import pytest

from azjax import games
from azjax.networks.quantized import EXACT, LARGEST, check_sums, make_quantized, symmetry_group
from refusals import assert_refused

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
    group, copies = symmetry_group(GAME, symmetric), 1 + symmetric
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
