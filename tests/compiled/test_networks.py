"""Networks against plain NumPy: evaluation, inference, training, symmetry; what is refused."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import modules
from azjax import games
from azjax.games.base import Symmetries
from azjax.networks import MLPConfig, ResNetConfig, base, from_module, make_network
from azjax.networks.convolution import convolve, is_faster
from azjax.networks.nnx import from_nnx
from azjax.networks.symmetric import make_group
from azjax.search.evaluators import network_evaluator
from guard import sharing
from modules import KINDS, SYMMETRIC, Custom, Model, random_planes, random_variables
from reference import network as reference
from refusals import assert_refused

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def compute(game, config, platform="cpu"):
    """The variables, and the outputs: inferred, inferred in bfloat16; plain layers."""
    network = make_network(config, game, platform)
    coarse = make_network(dataclasses.replace(config, evaluation_dtype="bfloat16"), game, platform)

    @jax.jit
    def every(variables, planes):
        folded, rounded = network.fold(variables), coarse.fold(variables)
        inferred = network.infer(folded, planes), coarse.infer(rounded, planes)
        return *inferred, network.plain(folded).layers, rounded

    with sharing():
        variables = random_variables(network)
        outputs = every(variables, random_planes(game, config.encoding))
    return jax.device_get((variables, outputs))


def check_outputs(inferred, coarse, expected, rounded, tolerance):
    logits, values = expected
    assert logits.std(axis=0).min() > 1e-3 and values.std() > 1e-3  # The planes have an effect.
    np.testing.assert_allclose(inferred[0], logits, **CLOSE)
    np.testing.assert_allclose(inferred[1], values, **CLOSE)
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
    variables, (inferred, coarse, plain, rounded) = compute(game, config)
    planes = random_planes(game)
    expected = reference.outputs(config, {"params": plain}, planes)
    check_outputs(inferred, coarse, expected, rounded, 0.05)
    layer = "Dense_1" if kind == "symmetric" else "block0_a"
    size, width = plain[layer]["kernel"].shape
    assert variables["params"][layer]["kernel"].shape == (size, width // game.num_symmetries)
    kernels = np.stack(rounded["params"][layer]["kernel"])
    assert kernels.shape == (blocks, size // blocks, width // blocks)
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


def test_its_outputs_equal_those_of_the_module(tic_tac_toe):
    """With weights of the same key."""
    network, planes, key = (
        from_nnx(tic_tac_toe, Model),
        random_planes(tic_tac_toe),
        jax.random.key(3),
    )
    module = Model(nnx.Rngs(key))

    @jax.jit
    def ours(variables, planes):
        trained, updated = network.train(variables, planes, None)
        variables = {"params": variables["params"], **updated}
        return trained, network.infer(network.fold(variables), planes), updated

    @nnx.jit
    def theirs(module, planes):
        module.train()
        trained = module(planes)
        module.eval()
        return trained, module(planes)

    with sharing():
        variables = jax.jit(network.init)(key)
        (*outputs, updated), expected = ours(variables, planes), theirs(module, planes)
    for found, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-6)
    mean = module.norm.mean[...]
    np.testing.assert_allclose(updated["state"]["norm"]["mean"], mean, rtol=1e-6)
    assert abs(outputs[0][0] - outputs[1][0]).max() > 1e-3  # By the statistics, not by the batch.


# Groups and arithmetic.


def test_symmetries_may_differ_only_in_their_actions():
    """As in a game with two actions that do the same."""
    symmetries = Symmetries(cells=np.array([[0, 1]] * 2), actions=np.array([[0, 1], [1, 0]]))
    group = make_group(games.make("tic_tac_toe")._replace(symmetries=symmetries))
    assert group.copies.tolist() == group.actions.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four:4x5", "othello:4", "mnk:3x4x3"])
def test_a_group_acts_as_its_symmetries(name):
    """`copies` is how the symmetries compose; characters multiply as their involutions do."""
    game = games.make(name)
    symmetries, group = game.symmetries, make_group(game)
    count, blocks = len(group.cells), len(group.characters)
    assert sorted(map(tuple, group.cells)) == sorted(map(tuple, symmetries.cells))
    for g in range(count):
        row = symmetries.cells.tolist().index(group.cells[g].tolist())
        inverse = np.argsort(symmetries.actions[row])
        np.testing.assert_array_equal(group.actions[g], inverse)
        for copy in range(count):
            composed = group.cells[g][group.cells[copy]]
            np.testing.assert_array_equal(group.cells[group.copies[g, copy]], composed)
    step, commuting = count // blocks, np.arange(blocks)
    composed = step * (commuting[:, None] ^ commuting)  # Of every two of the involutions.
    np.testing.assert_array_equal(group.copies[::step, ::step], composed)
    np.testing.assert_array_equal(
        group.characters @ group.characters, blocks * np.eye(blocks, dtype=int)
    )


def test_the_arithmetic_is_chosen_by_the_processor(tic_tac_toe, monkeypatch):
    def types(config):
        network = make_network(config, tic_tac_toe, "cpu")
        folded = jax.eval_shape(lambda: network.fold(network.init(jax.random.key(0))))
        return {leaf.dtype for leaf in jax.tree.leaves(folded)}

    assert types(MLPConfig()) == {jnp.float32.dtype}
    conv = ResNetConfig(layers="conv")
    for config, flags, dtype in [
        (MLPConfig(), "avx512f", "float32"),
        (MLPConfig(), "amx_bf16", "bfloat16"),
        (conv, "amx_bf16", "float32"),
        (ResNetConfig(), "amx_bf16", "bfloat16"),
    ]:
        text = f"flags: sse {flags}"
        monkeypatch.setattr(base.pathlib.Path, "read_text", lambda path, text=text: text)
        chosen = types(dataclasses.replace(config, evaluation_dtype="auto"))
        assert chosen == {jnp.dtype(dtype)}


def test_the_form_of_convolutions_is_chosen_by_board_arithmetic_and_platform():
    single, half = jnp.float32, jnp.bfloat16
    assert is_faster((3, 3), single, "cpu") and is_faster((5, 5), single, "cpu")
    others = ((3, 3), half, "cpu"), ((3, 3), single, "gpu"), ((5, 6), single, "cpu")
    assert not any(is_faster(*arguments) for arguments in others)


def test_winograd_s_form_of_a_convolution_fits_boards_that_are_not_square():
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(2, 3, 5, 4)), rng.normal(size=(3, 3, 4, 6))
    found = convolve(jnp.moveaxis(jnp.float32(x), 0, -1), jnp.float32(kernel))
    np.testing.assert_allclose(jnp.moveaxis(found, -1, 0), reference.convolve(x, kernel), **CLOSE)


# Refusals.


def test_refused_games(tic_tac_toe):
    """Also refused: settings that do not fit together, or that are out of range."""
    stones = tic_tac_toe._replace(encodings=("stones",))
    odd = MLPConfig(hidden=(20,), head_hidden=8, symmetric=True)
    known = "network.encoding for tic_tac_toe is 'colour': use 'absolute' or 'relative'"
    made = make_network(KINDS["mlp"], tic_tac_toe)
    ten = tic_tac_toe._replace(num_actions=10)
    rows = [
        (make_network, (ResNetConfig(encoding="colour"), tic_tac_toe), known),
        (from_module, (tic_tac_toe, Custom(), "colour"), known),
        (
            make_network,
            (MLPConfig(), stones),
            "network.encoding for tic_tac_toe is 'relative': use 'stones'",
        ),
        (make_network, (odd, tic_tac_toe), "8 symmetries of ... [8, 20], multiples of 8, or"),
        (network_evaluator, (ten, made), "and 9 actions, and tic_tac_toe has [3, 3, 2] and 10"),
    ]
    settings = [
        (ResNetConfig, {"width": 0}, "network.width is 0: use 1 to 65536"),
        (ResNetConfig, {"norm": "group"}, "network.norm is 'group': use 'none', 'layer' or"),
        (ResNetConfig, {"symmetric": True, "norm": "batch"}, "needs dense layers without BatchNo"),
        (MLPConfig, {"hidden": ()}, "network.hidden is ()"),
        (MLPConfig, {"hidden": (8, 0)}, "network.hidden is (8, 0)"),
    ]
    assert_refused(
        *((functools.partial(call, *given), text) for call, given, text in rows),
        *((functools.partial(kind, **given), text) for kind, given, text in settings),
    )


class Returns(nn.Module):
    """A linear layer followed by a function."""

    make: Callable[[jax.Array, bool], Any]

    @nn.compact
    def __call__(self, planes, train=False):
        return self.make(nn.Dense(10)(planes.reshape(len(planes), -1)), train)


def test_refused_linen_modules(tic_tac_toe):
    returns = "for 3 positions of tic_tac_toe the module returns "
    rows = [
        (lambda x, train: (x[:, :9], x[:, 9:]), "(float32[3, 9], float32[3, 1]): make it a tuple"),
        (lambda x, train: {"logits": x[:, :9]}, "{logits: float32[3, 9]}"),
        (lambda x, train: (x[:, :9], x[:, 9:] if train else x[:, 9]), "(float32...3, 1])"),
    ]
    refused = [(Returns(make), returns + text) for make, text in rows]
    refused += [
        (Custom, "the module is the class Custom: pass an instance"),
        (Model(nnx.Rngs(0)), "the module is Model: ... of flax.nnx to from_nnx"),
    ]
    rows = [(functools.partial(from_module, tic_tac_toe, module), text) for module, text in refused]
    assert_refused(*rows)


def layers(*more, width=18):
    """A function of `rngs` that makes a module of NNX with a linear layer and more."""

    def make(rngs):
        linear, last = nnx.Linear(width, 10, rngs=rngs), lambda x: (x[:, :9], jnp.tanh(x[:, 9]))
        others = [each(rngs) for each in more]
        return nnx.Sequential(lambda planes: planes.reshape(len(planes), -1), linear, *others, last)

    return make


class Grows(Model):
    def __call__(self, planes):
        self.seen = nnx.Variable(planes)
        return super().__call__(planes)


def test_refused_nnx_modules(tic_tac_toe):
    rows = [
        (Model(nnx.Rngs(0)), "make is of type Model: give a function of rngs that makes a new"),
        (nn.Dense(3), "make is of type Dense: ... for a module of flax.linen, use from_module"),
        (layers(width=7), "the module cannot be applied to planes bool[3, 3, 3, 2] of tic_tac_"),
        (layers(lambda rngs: nnx.Dropout(0.5, rngs=rngs)), "keeps a random state, but networks"),
        (layers(lambda rngs: nnx.Dropout(0.5)), "or draws random numbers (`determin"),
        (Grows, "training makes ... seen: bool[3, 3, 3, 2]}} of the module's variables"),
    ]
    assert_refused(*((functools.partial(from_nnx, tic_tac_toe, make), text) for make, text in rows))
