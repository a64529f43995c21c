"""Players with random weights, for tests of exported files."""

import functools

import jax
import numpy as np
import pytest

import azjax as az
from azjax import games
from azjax.networks import MLPConfig
from azjax.networks.quantized import VALUES, make_quantized
from azjax.search import PUCT
from modules import KINDS, SYMMETRIC, random_variables

NETWORKS = KINDS | SYMMETRIC | {"quantized": MLPConfig()}


def quantized(game):
    """A symmetric network of few small integers, so that many logits are equal."""
    random = np.random.default_rng(0)

    def dense(inputs, outputs):
        kernel = random.integers(-1, 2, (inputs, outputs), np.int8)
        bias = random.integers(-2, 3, outputs).astype(np.int32)
        return {"kernel": kernel, "bias": bias, "shift": np.full(outputs, 1, np.uint8)}

    params = {"Dense_0": dense(18, 2), "policy_hidden": dense(16, 2), "value_hidden": dense(16, 2)}
    params["policy"] = dense(2, 9) | {"shift": np.uint8(0), "scale": np.float32(2**-6)}
    params["policy"]["bias"][:] = 0
    table = np.linspace(-1, 1, 2 * VALUES + 1).astype(np.float32)
    params["value"] = dense(2, 1) | {"shift": np.uint8(0), "table": table}
    return make_quantized(game, {"params": params}, "relative", symmetric=True)


@functools.cache
def make_player(name="mlp", search=None):
    config = az.Config(network=NETWORKS[name], search=search or PUCT())
    game, is_quantized = games.make(config.game), name == "quantized"
    network = quantized(game) if is_quantized else az.make_network(config.network, game)
    variables = network.init(jax.random.key(0)) if is_quantized else random_variables(network)
    return az.Player(az.make_parts(config, game, network), network.fold(variables))


def read(path):
    return jax.export.deserialize(path.read_bytes())


def assert_close(arrays, wanted):
    for array, expected in zip(arrays, wanted, strict=True):
        np.testing.assert_allclose(array, expected, atol=1e-4)


def assert_onnx(name, states, folder):
    """Checks that an ONNX file computes the network of a player."""
    runtime = pytest.importorskip("onnxruntime")
    player = make_player(name)
    planes = np.asarray(jax.vmap(lambda state: player.game.observe(state, "relative"))(states))
    expected = jax.device_get(player.parts.network.infer(player.params, planes))
    for size in (len(planes), None):
        path = az.export(player, folder / "player.onnx", batch_size=size)
        session = runtime.InferenceSession(path)
        (given,) = session.get_inputs()
        assert (given.name, given.shape) == ("planes", [size or "b", 3, 3, 2])
        outputs = session.run(None, {"planes": planes})
        if name == "quantized":
            assert [x.tobytes() for x in outputs] == [x.tobytes() for x in expected]
        assert_close(outputs, expected)
    about = session.get_modelmeta().custom_metadata_map
    assert about == {"game": "tic_tac_toe", "encoding": "relative", "iteration": "0"}
