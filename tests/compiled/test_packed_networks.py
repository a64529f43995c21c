"""Packed networks, decoded: order, rounding and outputs."""

import base64
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.networks import MLPConfig, ResNetConfig
from azjax.runs.config import Config, make_parts
from azjax.runs.player import Player
from azjax.viz import networks
from reference import network as reference
from refusals import assert_refused

DEEP = 12  # Layers; sorted by name, the last ones come before the third.
CONFIGS = {
    "mlp": MLPConfig(hidden=(16,) * DEEP, head_hidden=4, symmetric=True),
    "residual": ResNetConfig(width=16, blocks=2, head_hidden=4, norm="layer"),
    "convolutions": ResNetConfig(
        layers="conv", norm="batch", encoding="absolute", width=4, blocks=1, head_hidden=16
    ),
}


@functools.cache
def make_player(kind):
    """A player of Connect Four on a small board with random weights and biases."""
    parts = make_parts(Config(game="connect_four:4x5", network=CONFIGS[kind]))
    rng = np.random.default_rng(2)

    def draw(path, leaf):
        values = 1.8 * rng.normal(size=leaf.shape) / np.sqrt(max(np.prod(leaf.shape[:-1]), 9))
        return np.float32(0.5 + abs(values) if path[-1].key in ("var", "scale") else values)

    shapes = jax.eval_shape(parts.network.init, jax.random.key(0))
    variables = jax.tree_util.tree_map_with_path(draw, shapes)
    return Player(parts, jax.device_get(parts.network.fold(variables)), 7)


def unpack(text, width):
    """Decodes numbers from their upper bytes."""
    upper = np.frombuffer(base64.b64decode(text), np.uint8).reshape(-1, width)
    return np.pad(upper, ((0, 0), (4 - width, 0))).view("<f4").ravel()


def read(packed):
    """The layers of a packed network, `{name: {"kernel": [I, O], "bias": [O], ...}}`."""

    def read_layer(layer):
        parts = {part: unpack(text, packed["width"]) for part, text in layer.items()}
        return parts | {"kernel": parts["kernel"].reshape(-1, len(parts["bias"]))}

    return {name: read_layer(layer) for name, layer in packed["layers"].items()}


def compute(packed, planes):
    """Computes the outputs of a packed network."""
    layers = read(packed)
    if packed["kind"] == "resnet":
        layout = "conv" if "policy_conv" in layers else "dense"
        norm, blocks = "layer" if packed["norm"] else "none", packed["blocks"]
        for name in layers if "policy_conv" in layers else ():
            kernel = layers[name]["kernel"]
            if name == "stem" or name.startswith("block"):
                layers[name]["kernel"] = kernel.reshape(3, 3, -1, kernel.shape[1])
            elif name.endswith("_conv"):
                layers[name]["kernel"] = kernel[None, None]
        config = ResNetConfig(layers=layout, norm=norm, blocks=blocks)
        return reference.outputs(config, {"params": layers}, planes)[:2]

    def dense(name, x):
        return x @ layers[name]["kernel"] + layers[name]["bias"]

    x = planes.reshape(len(planes), -1)
    for i in range(packed["blocks"]):
        x = np.maximum(dense(f"Dense_{i}", x), 0)
    logits, value = (
        dense(name, np.maximum(dense(f"{name}_hidden", x), 0)) for name in ("policy", "value")
    )
    return logits, np.tanh(value[:, 0])


@pytest.mark.compiles(2)  # Folding, and both ways to compute.
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_packed_network_computes_the_same(kind):
    player = make_player(kind)
    packed, network = networks.pack_weights(player), player.parts.network
    assert (packed["iteration"], packed["encoding"]) == (7, CONFIGS[kind].encoding)
    shape = jax.eval_shape(lambda: player.game.observe(player.game.init(), network.encoding)).shape
    planes = np.float32(np.random.default_rng(1).random((8, *shape)) < 0.4)

    expected, found = jax.jit(network.infer)(player.params, planes), compute(packed, planes)
    assert np.std(expected[0], axis=0).min() > 1e-3 and np.std(expected[1]) > 1e-3
    for output, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(output, other, rtol=1e-3, atol=1e-4)


def test_weights_are_rounded_to_the_nearest_or_exact():
    """In bfloat16 they take two bytes."""
    player = make_player("residual")
    whole = read(networks.pack_weights(player))
    for width, error in ((4, 0), (3, 2**-16), (2, 2**-8)):
        rounded = read(networks.pack_weights(player, width))
        largest = 0.0
        for name, layer in rounded.items():
            for part, found in layer.items():
                far = abs(found - whole[name][part])
                assert (far <= error * abs(whole[name][part])).all()
                largest = max(largest, (far / np.maximum(abs(found), 1e-9)).max())
        assert largest >= error / 2
    half = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), player.params)
    packed = networks.pack_weights(Player(player.parts, half, 7))
    assert packed["width"] == 2 and networks.pack_weights(player)["width"] == 4
    for name, layer in read(packed).items():
        for part, found in layer.items():
            exact = whole[name][part].astype(jnp.bfloat16).astype(np.float32)
            np.testing.assert_array_equal(found, exact)


def test_custom_networks_are_refused():
    player = make_player("mlp")
    network = player.parts.network._replace(plain=None)
    custom = Player(player.parts._replace(network=network), player.params)
    assert_refused(
        (lambda: networks.pack_weights(custom), "cannot compute this network: use an MLP or"),
    )
