"""Networks against plain NumPy: evaluation, inference, training, symmetry."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import modules
from azjax import games
from azjax.networks import make_network
from azjax.networks.nnx import from_nnx
from guard import sharing
from modules import KINDS, SYMMETRIC, Model, random_planes, random_variables
from reference import network as reference

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def compute(game, config, platform="cpu"):
    """The variables, and the outputs: evaluated, inferred, inferred in bfloat16; plain layers."""
    network = make_network(config, game, platform)
    coarse = make_network(dataclasses.replace(config, evaluation_dtype="bfloat16"), game, platform)

    @jax.jit
    def every(variables, planes):
        folded, rounded = network.fold(variables), coarse.fold(variables)
        inferred = network.infer(folded, planes), coarse.infer(rounded, planes)
        return network.apply(variables, planes), *inferred, network.plain(folded).layers, rounded

    with sharing():
        variables = random_variables(network)
        outputs = every(variables, random_planes(game, config.encoding))
    return jax.device_get((variables, outputs))


def check_outputs(evaluated, inferred, coarse, expected, rounded, tolerance):
    logits, values = expected
    assert logits.std(axis=0).min() > 1e-3 and values.std() > 1e-3  # The planes have an effect.
    for found in (evaluated, inferred):
        np.testing.assert_allclose(found[0], logits, **CLOSE)
        np.testing.assert_allclose(found[1], values, **CLOSE)
    assert {each.dtype for each in (*inferred, *coarse)} == {np.dtype("float32")}
    assert {leaf.dtype for leaf in jax.tree.leaves(rounded)} == {jnp.bfloat16.dtype}
    difference = abs(coarse[0] - logits).max()
    assert 1e-5 < difference < tolerance * abs(logits).max()
    np.testing.assert_allclose(coarse[1], values, atol=0.05)


@pytest.mark.parametrize("kind", [*KINDS, "conv_gpu"])
def test_every_form_of_a_network_equals_its_formula(kind, tic_tac_toe):
    kind, platform, _ = kind.partition("_gpu")
    config, platform = KINDS[kind], "gpu" if platform else "cpu"
    variables, (*outputs, plain, rounded) = compute(tic_tac_toe, config, platform)
    expected = reference.outputs(config, variables, random_planes(tic_tac_toe))
    tolerance = 0.05 if "LayerNorm" in kind else 0.03  # LayerNorm amplifies small differences.
    check_outputs(*outputs, expected, rounded, tolerance)
    norm = "layer" if "LayerNorm" in kind else "none"  # BatchNorm is folded into the layers.
    plain_config = dataclasses.replace(config, **({} if kind == "mlp" else {"norm": norm}))
    found = reference.outputs(plain_config, {"params": plain}, random_planes(tic_tac_toe))
    np.testing.assert_allclose(found[0], expected[0], **CLOSE)


@pytest.mark.parametrize(
    ("name", "kind", "blocks"),
    [
        ("tic_tac_toe", "symmetric", 4),  # 8 symmetries, not all of which commute.
        ("tic_tac_toe", "symmetric_LayerNorm", 4),
        ("connect_four:4x5", "symmetric", 2),
        ("othello:4", "symmetric", 4),  # 4, with diagonals.
    ],
)
def test_symmetric_copies_get_symmetric_outputs(name, kind, blocks):
    """Shared weights save products, and compute the same as a plain network."""
    game, config = games.make(name), SYMMETRIC[kind]
    variables, (evaluated, inferred, coarse, plain, rounded) = compute(game, config)
    planes = random_planes(game)
    expected = reference.outputs(config, {"params": plain}, planes)
    check_outputs(evaluated, inferred, coarse, expected, rounded, 0.05)
    layer = "Dense_1" if kind == "symmetric" else "block0_a"
    size, width = plain[layer]["kernel"].shape
    assert variables["params"][layer]["kernel"].shape == (size, width // game.num_symmetries)
    assert rounded[layer]["kernel"].shape == (blocks, size // blocks, width // blocks)
    images = planes.reshape(8, -1, planes.shape[-1])[:, game.symmetries.cells]
    for g, actions in enumerate(game.symmetries.actions):
        image = images[:, g].reshape(planes.shape)
        logits, values = reference.outputs(config, {"params": plain}, image)
        np.testing.assert_allclose(logits, expected[0][:, actions], **CLOSE)
        np.testing.assert_allclose(values, expected[1], **CLOSE)


# Initial weights.


def test_untrained_networks(tic_tac_toe):
    """A last layer of a block is zero, other layers have the scale of their inputs."""
    kinds = {kind: KINDS[kind] for kind in ("conv", "dense", "dense_BatchNorm")}
    kinds["shared"] = dataclasses.replace(SYMMETRIC["symmetric_LayerNorm"], head_hidden=512)
    networks = {kind: make_network(config, tic_tac_toe) for kind, config in kinds.items()}
    with sharing():
        draw = jax.jit(lambda key: {kind: each.init(key) for kind, each in networks.items()})
        every = jax.device_get(draw(jax.random.key(0)))
    for kind, variables in every.items():
        for name, layer in variables["params"].items():
            is_zero = name.endswith("_b") and kinds[kind].norm != "batch"
            assert "kernel" not in layer or (layer["kernel"] == 0).all() == is_zero
            assert not np.asarray(layer.get("bias", 0)).any()
    assert [len(every[kind]["batch_stats"]) for kind in ("conv", "dense_BatchNorm")] == [5, 7]
    kernel = every["shared"]["params"]["policy"]["kernel"]  # A part of 512 inputs.
    assert kernel.shape == (64, 9) and np.std(kernel) * np.sqrt(512) == pytest.approx(1, abs=0.1)
    kernel = every["conv"]["params"]["block0_a"]["kernel"]
    assert np.std(kernel) * np.sqrt(4 * 9 / 2) == pytest.approx(1, abs=0.25)


# Training.


@pytest.fixture(scope="module")
def trained(tic_tac_toe):
    """One update on one device and on two."""
    networks = modules.networks(tic_tac_toe)
    variables = {name: random_variables(network) for name, network in networks.items()}
    planes = random_planes(tic_tac_toe, batch=16)
    return modules.train_on_one_and_two(networks, variables, planes)


@pytest.mark.parametrize("name", ["conv", "on_mesh", "nnx"])
def test_batches_are_normalized_over_all_devices(name, trained):
    one, two, _ = trained
    (whole, updated), (parts, each) = one[name], two[name]
    for found, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(found, expected, **CLOSE)
    for found, expected in zip(*map(jax.tree.leaves, (each, updated)), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_allclose(found[0], expected, **CLOSE)


@pytest.mark.parametrize("name", ["custom", "counts"])
def test_statistics_without_an_axis_are_averaged_over_devices(name, trained):
    """The average of the statistics of each half of the batch."""
    _, two, halves = trained
    average = jax.tree.map(lambda a, b: (a + b) / 2, *(half[name][1] for half in halves))
    for found, expected in zip(*map(jax.tree.leaves, (two[name][1], average)), strict=True):
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)
    differences = jax.tree.map(lambda a, b: abs(a - b).max(), *(half[name][1] for half in halves))
    assert max(jax.tree.leaves(differences)) > 1e-3


# NNX modules.


@pytest.fixture(scope="module")
def network(tic_tac_toe):
    return from_nnx(tic_tac_toe, Model)


@pytest.fixture(scope="module")
def variables(network):
    return jax.device_get(jax.jit(jax.vmap(network.init))(jax.random.split(jax.random.key(3))))


def test_weights_are_drawn_from_the_key(variables):
    one, other = variables["params"]["first"]["kernel"]
    assert (one != other).mean() > 0.9
    np.testing.assert_array_equal(variables["state"]["order"], [np.arange(18)[::-1]] * 2)


def test_its_outputs_equal_those_of_the_module(network, variables, tic_tac_toe):
    planes = random_planes(tic_tac_toe)
    variables = jax.tree.map(lambda leaf: leaf[0], variables)
    module = Model(nnx.Rngs(jax.random.split(jax.random.key(3))[0]))

    @jax.jit
    def ours(variables, planes):
        trained, updated = network.train(variables, planes, None)
        return trained, network.apply({"params": variables["params"], **updated}, planes), updated

    @nnx.jit
    def theirs(module, planes):
        module.train()
        trained = module(planes)
        module.eval()
        return trained, module(planes)

    with sharing():
        (*outputs, updated), expected = ours(variables, planes), theirs(module, planes)
    for found, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-6)
    mean = module.norm.mean[...]
    np.testing.assert_allclose(updated["state"]["norm"]["mean"], mean, rtol=1e-6)
    assert abs(outputs[0][0] - outputs[1][0]).max() > 1e-3  # By the statistics, not by the batch.
