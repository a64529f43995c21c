"""Networks: shapes, inference forms, convolutions, statistics over devices, custom modules."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from azjax import games
from azjax.games.base import init_batch
from azjax.networks import (
    MLPConfig,
    ResNetConfig,
    base,
    convolution,
    equivariant,
    from_module,
    make_network,
    resnet_inference,
)
from azjax.networks.group import make_group
from azjax.runs import presets
from azjax.search.evaluators import network_evaluator
from azjax.training.learner import LearnerConfig, configured_learner
from azjax.training.targets import Sample

TINY = ResNetConfig(layers="conv", width=4, blocks=1, norm="batch", head_hidden=8)
FORMS = tuple(convolution.FORMS)
DENSE = ResNetConfig(width=16, blocks=2, norm="none", head_hidden=8)
KINDS = {
    "mlp": MLPConfig(hidden=(16, 8), head_hidden=4),
    "batch": TINY,
    "conv without norm": dataclasses.replace(TINY, norm="none"),
    "conv with LayerNorm": dataclasses.replace(TINY, norm="layer"),
    "dense": DENSE,
    "dense with LayerNorm": dataclasses.replace(DENSE, norm="layer"),
    "dense with BatchNorm": dataclasses.replace(DENSE, norm="batch"),
    "symmetric": MLPConfig(hidden=(16, 8), head_hidden=8, symmetric=True),
    "symmetric dense": dataclasses.replace(DENSE, symmetric=True),
    "symmetric with LayerNorm": dataclasses.replace(DENSE, norm="layer", symmetric=True),
}


def shapes(network):
    """The shape of every parameter, by name."""
    variables = jax.eval_shape(network.init, jax.random.key(0))
    flat = flatten_dict(variables["params"], sep="/")
    return {name: leaf.shape for name, leaf in flat.items()}


def random_variables(network, seed=0):
    """Random variables with positive variances."""
    rng = np.random.default_rng(seed)

    def draw(path, leaf):
        values = 0.5 * rng.normal(size=leaf.shape)
        if len(leaf.shape) == 2:  # Wide layers would saturate all values at 1 or -1.
            values *= min(1, 2 / np.sqrt(leaf.shape[0]))
        if path[-1].key in ("var", "scale"):
            values = 0.5 + abs(values)
        return jnp.asarray(values, leaf.dtype)

    return jax.tree_util.tree_map_with_path(draw, jax.eval_shape(network.init, jax.random.key(0)))


def make_in_form(form, config, game):
    """A network with a given form of convolutions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resnet_inference, "choose_form", lambda *about: convolution.FORMS[form])
        return make_network(config, game)


def random_planes(game, encoding, batch=8):
    shape = jax.eval_shape(lambda: game.observe(game.init(), encoding)).shape
    return jnp.asarray(np.random.default_rng(1).random((batch, *shape)) < 0.4)


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("tic_tac_toe", "relative"),
        pytest.param("connect_four", "absolute", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_all_forms_of_a_network_agree(name, encoding, kind):
    """Evaluation mode and inference form, with every form of convolution and the same weights."""
    game = games.make(name)
    config = dataclasses.replace(KINDS[kind], encoding=encoding)
    convolves, is_small = getattr(config, "layers", "") == "conv", name == "tic_tac_toe"
    forms = FORMS if convolves and is_small else ("xla",)
    networks = [make_in_form(form, config, game) for form in forms]

    @jax.jit
    def outputs(variables, planes):
        evaluated = [network.apply(variables, planes) for network in networks]
        inferred = [network.infer(network.fold(variables), planes) for network in networks]
        return evaluated, inferred

    variables, planes = random_variables(networks[0]), random_planes(game, config.encoding)
    evaluated, inferred = outputs(variables, planes)
    logits, values = evaluated[0]
    assert (logits.shape, values.shape) == ((8, game.num_actions), (8,))
    assert logits.std(axis=0).min() > 1e-3 and values.std() > 1e-3  # The planes have an effect.
    assert (abs(values) <= 1).all()
    for other_logits, other_values in evaluated + inferred:
        np.testing.assert_allclose(other_logits, logits, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(other_values, values, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["tic_tac_toe", pytest.param("connect_four", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "kind",
    ["batch", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "batch")],
)
def test_bfloat16_evaluation_is_approximate_and_training_is_exact(name, kind):
    game = games.make(name)
    exact = make_network(KINDS[kind], game)
    coarse = make_network(dataclasses.replace(KINDS[kind], evaluation_dtype="bfloat16"), game)
    variables, planes = random_variables(exact), random_planes(game, "relative")
    folded = coarse.fold(variables)
    assert {leaf.dtype for leaf in jax.tree.leaves(folded)} == {jnp.bfloat16.dtype}
    logits, values = jax.jit(exact.infer)(exact.fold(variables), planes)
    coarse_logits, coarse_values = jax.jit(coarse.infer)(folded, planes)
    assert coarse_logits.dtype == coarse_values.dtype == jnp.float32
    difference = abs(coarse_logits - logits).max()
    most = 0.05 if "LayerNorm" in kind else 0.03  # LayerNorm amplifies small differences.
    assert 1e-5 < difference < most * abs(logits).max()
    np.testing.assert_allclose(coarse_values, values, atol=0.05)
    np.testing.assert_allclose(coarse.apply(variables, planes)[0], logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_float32_for_every_arithmetic(kind, tic_tac_toe):
    network = make_network(
        dataclasses.replace(KINDS[kind], evaluation_dtype="bfloat16"), tic_tac_toe
    )

    def answer(key, planes):
        return network.infer(network.fold(network.init(key)), planes)

    outputs = jax.eval_shape(answer, jax.random.key(0), random_planes(tic_tac_toe, "relative"))
    assert [output.dtype for output in outputs] == [jnp.float32] * 2


def test_bfloat16_training_is_approximate_and_evaluation_is_exact(tic_tac_toe):
    exact, coarse = (
        make_network(dataclasses.replace(KINDS["mlp"], learning_dtype=dtype), tic_tac_toe)
        for dtype in ("float32", "bfloat16")
    )
    variables, planes = random_variables(exact), random_planes(tic_tac_toe, "relative", 64)

    @functools.partial(jax.jit, static_argnums=0)
    def gradient(train):
        def loss(variables):
            logits, values = train(variables, planes, None)[0]
            return jnp.mean(logits**2) + jnp.mean(values)

        return jax.grad(loss)(variables)

    wanted, found = (jax.tree.leaves(gradient(network.train)) for network in (exact, coarse))
    errors = [abs(f - w).max() / abs(w).max() for f, w in zip(found, wanted, strict=True)]
    assert {leaf.dtype for leaf in found} == {jnp.float32.dtype}
    assert 1e-5 < max(errors) < 0.05
    answers = (network.apply(variables, planes) for network in (exact, coarse))
    np.testing.assert_array_equal(*map(jnp.column_stack, answers))


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four:4x5", "othello:4", "mnk:3x4x3"])
def test_symmetric_copies_get_symmetric_outputs(name):
    """With 8 symmetries, not all of which commute, 2, and 4 with and without diagonals."""
    game = games.make(name)
    network = make_network(KINDS["symmetric"], game)
    planes = random_planes(game, "relative")
    symmetries = game.symmetries
    images = planes.reshape(8, -1, planes.shape[-1])[:, symmetries.cells]

    @jax.jit
    def answer(variables, planes):
        return network.apply(variables, planes)

    variables = random_variables(network)
    logits, values = answer(variables, planes)
    assert logits.std(axis=0).min() > 1e-3 and values.std() > 1e-3
    for g, actions in enumerate(symmetries.actions):
        image_logits, image_values = answer(variables, images[:, g].reshape(planes.shape))
        np.testing.assert_allclose(image_logits, logits[:, actions], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(image_values, values, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "blocks"), [("tic_tac_toe", 4), ("connect_four", 2), ("othello:4", 4)]
)
def test_shared_weights_save_products_and_equal_a_plain_mlp(name, blocks):
    game = games.make(name)
    config = KINDS["symmetric"]
    network = make_network(config, game)
    variables, planes = random_variables(network), random_planes(game, "relative")
    folded = network.fold(variables)
    assert folded["Dense_1"]["kernel"].shape == (blocks, 16 // blocks, 8 // blocks)
    whole = make_network(dataclasses.replace(config, symmetric=False), game)
    group = make_group(game.symmetries)
    found = whole.apply({"params": equivariant.as_dense(group, folded)}, planes)
    for mine, other in zip(found, network.apply(variables, planes), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


def test_shared_heads_are_initialized_with_the_scale_of_plain_heads():
    kernel = equivariant._init(jax.random.key(0), 512, 64, copies=8)["kernel"]
    assert kernel.shape == (64, 64)
    assert np.std(kernel) * np.sqrt(512) == pytest.approx(1, abs=0.1)


def test_widths_that_symmetries_do_not_divide_are_rejected(tic_tac_toe):
    config = MLPConfig(hidden=(20,), head_hidden=8, symmetric=True)
    with pytest.raises(ValueError, match=r"8 symmetries of .* \(20,\) and 8, multiples"):
        make_network(config, tic_tac_toe)


def test_a_game_without_symmetries_gets_a_plain_network(tic_tac_toe):
    game = tic_tac_toe._replace(symmetries=None)
    symmetric = make_network(MLPConfig(hidden=(20,), head_hidden=8, symmetric=True), game)
    plain = make_network(MLPConfig(hidden=(20,), head_hidden=8), game)
    assert not symmetric.symmetric and shapes(symmetric) == shapes(plain)


@pytest.mark.parametrize(
    ("kind", "flags", "dtype"),
    [
        (MLPConfig, "avx512f", "float32"),
        (MLPConfig, "amx_bf16", "bfloat16"),
        (functools.partial(ResNetConfig, layers="conv"), "amx_bf16", "float32"),
        (ResNetConfig, "amx_bf16", "bfloat16"),
    ],
)
def test_the_arithmetic_is_chosen_by_the_processor(tic_tac_toe, monkeypatch, kind, flags, dtype):
    monkeypatch.setattr(base.pathlib.Path, "read_text", lambda path: f"flags: sse {flags}")
    network = make_network(kind(evaluation_dtype="auto"), tic_tac_toe)
    folded = jax.eval_shape(lambda key: network.fold(network.init(key)), jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(folded)} == {jnp.dtype(dtype)}


@pytest.mark.parametrize(
    ("shape", "dtype", "form"),
    [
        ((3, 3), "float32", "winograd"),
        ((3, 3), "bfloat16", "xla"),
        ((5, 5), "float32", "winograd"),
        ((5, 6), "float32", "xla"),
    ],
)
def test_the_form_is_chosen_by_arithmetic_and_platform(shape, dtype, form):
    game = games.make("tic_tac_toe")._replace(
        observe=lambda state, encoding: jnp.zeros((*shape, 2), bool)
    )
    config = dataclasses.replace(TINY, evaluation_dtype=dtype)
    found, expected = make_network(config, game), make_in_form(form, config, game)
    found, expected = (jax.eval_shape(n.fold, random_variables(n)) for n in (found, expected))
    assert found == expected


@pytest.mark.parametrize(("kind", "encoding"), [("mlp", "absolute"), ("batch", "relative")])
def test_an_untrained_network_has_small_outputs(tic_tac_toe, kind, encoding):
    """A variance initialized to zero would make logits huge."""
    config = dataclasses.replace(KINDS[kind], encoding=encoding)
    network = make_network(config, tic_tac_toe)
    planes = random_planes(tic_tac_toe, encoding)

    @jax.jit
    def fresh(key):
        variables = network.init(key)
        return *network.apply(variables, planes), variables.get("batch_stats", {})

    logits, values, stats = fresh(jax.random.key(0))
    assert 1e-3 < abs(logits).max() < 20
    assert (abs(values) < 1).all()
    variances = [leaf for path, leaf in flatten_dict(stats).items() if path[-1] == "var"]
    assert len(variances) == (0 if kind == "mlp" else 5)
    assert all((leaf == 1).all() for leaf in variances)


@pytest.mark.parametrize("kind", ["dense", "dense with LayerNorm", "symmetric dense"])
def test_an_untrained_residual_block_is_the_identity(kind, tic_tac_toe):
    """Its last layer is initialized to zero, so it equals a network without blocks."""
    config = KINDS[kind]
    network = make_network(config, tic_tac_toe)
    stem_alone = make_network(dataclasses.replace(config, blocks=0), tic_tac_toe)
    variables = network.init(jax.random.key(0))
    planes = random_planes(tic_tac_toe, config.encoding)
    kept = {n: layer for n, layer in variables["params"].items() if not n.startswith("block")}
    expected = stem_alone.apply({"params": kept}, planes)
    for found, output in zip(network.apply(variables, planes), expected, strict=True):
        np.testing.assert_allclose(found, output, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("norm", ["none", "layer"])
def test_a_residual_network_equals_its_formula(norm, tic_tac_toe):
    config = ResNetConfig(width=16, blocks=2, norm=norm, head_hidden=8)
    network = make_network(config, tic_tac_toe)
    variables, planes = random_variables(network), random_planes(tic_tac_toe, "relative")
    layers = jax.tree.map(np.float64, variables["params"])

    def dense(name, x):
        return x @ layers[name]["kernel"] + layers[name]["bias"]

    def normalize(x):
        if norm == "none":
            return x
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)

    x = np.maximum(dense("stem", np.float64(planes).reshape(8, -1)), 0)
    for i in range(2):
        inner = np.maximum(dense(f"block{i}_a", normalize(x)), 0)
        x = np.maximum(x + dense(f"block{i}_b", inner), 0)
    heads = {
        name: dense(name, np.maximum(dense(f"{name}_hidden", normalize(x)), 0))
        for name in ("policy", "value")
    }
    logits, values = network.apply(variables, planes)
    np.testing.assert_allclose(logits, heads["policy"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(values, np.tanh(heads["value"][:, 0]), rtol=1e-4, atol=1e-4)


def test_paper_has_the_shapes_of_the_textbook(tic_tac_toe):
    network = make_network(presets.get("paper").network, tic_tac_toe)
    blocks = [f"block{i}_{half}" for i in (0, 1) for half in "ab"]
    norms = {"stem": 64, **dict.fromkeys(blocks, 64), "policy_conv": 2, "value_conv": 1}
    assert shapes(network) == {
        "stem/kernel": (3, 3, 3, 64),
        **{f"{block}/kernel": (3, 3, 64, 64) for block in blocks},
        "policy_conv/kernel": (1, 1, 64, 2),
        "policy/kernel": (2 * 9, 9),
        "policy/bias": (9,),
        "value_conv/kernel": (1, 1, 64, 1),
        "value_hidden/kernel": (9, 64),
        "value_hidden/bias": (64,),
        "value/kernel": (64, 1),
        "value/bias": (1,),
        **{f"{name}_norm/{leaf}": (c,) for name, c in norms.items() for leaf in ("scale", "bias")},
    }


def test_mlp_has_the_shapes_of_the_textbook(tic_tac_toe):
    config = MLPConfig(hidden=(128, 128, 64), head_hidden=32)
    network = make_network(config, tic_tac_toe)
    kernels = {name: s for name, s in shapes(network).items() if name.endswith("kernel")}
    assert kernels == {
        "Dense_0/kernel": (18, 128),
        "Dense_1/kernel": (128, 128),
        "Dense_2/kernel": (128, 64),
        "policy_hidden/kernel": (64, 32),
        "policy/kernel": (32, 9),
        "value_hidden/kernel": (64, 32),
        "value/kernel": (32, 1),
    }


@pytest.fixture(scope="module")
def trained(tic_tac_toe):
    """One update of the statistics: on one device, and on each of two (leading axis)."""
    network = make_network(TINY, tic_tac_toe)
    variables = random_variables(network)
    planes = random_planes(tic_tac_toe, TINY.encoding, batch=16)
    return variables["batch_stats"], *train_on_one_and_two(network, variables, planes)


def train_on_one_and_two(network, variables, planes):
    """Results of `Network.train` on one device, and on two with statistics `[2, ...]`."""

    def step(variables, planes, axis_name):
        (logits, values, *_), updated = network.train(variables, planes, axis_name)
        return logits, values, updated["batch_stats"]

    @functools.partial(
        jax.shard_map,
        mesh=Mesh(np.array(jax.devices()[:2]), ("batch",)),
        in_specs=(P(), P("batch")),
        out_specs=P("batch"),
        check_vma=False,
    )
    def on_each(variables, planes):
        logits, values, stats = step(variables, planes, "batch")
        return logits, values, jax.tree.map(lambda leaf: leaf[None], stats)

    one = jax.jit(step, static_argnums=2)(variables, planes, None)
    return one, jax.jit(on_each)(variables, planes)


def test_statistics_over_two_devices_are_those_of_the_whole_batch(trained):
    assert len(jax.devices()) >= 2
    old, (logits, values, whole), (logits_two, values_two, each) = trained
    np.testing.assert_allclose(logits_two, logits, atol=1e-4)
    np.testing.assert_allclose(values_two, values, atol=1e-4)
    for before, expected, found in zip(*map(jax.tree.leaves, (old, whole, each)), strict=True):
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)
        assert (before != expected).any()


def test_statistics_move_a_tenth_of_the_way(tic_tac_toe, trained):
    """The stem reads the planes, so its statistics follow from one convolution."""
    old, (_, _, new), _ = trained
    network = make_network(TINY, tic_tac_toe)
    kernel = random_variables(network)["params"]["stem"]["kernel"]
    planes = random_planes(tic_tac_toe, TINY.encoding, batch=16).astype(jnp.float32)
    padded = np.pad(planes, ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    convolved = np.einsum("bhwirc,rcio->bhwo", patches, kernel)
    for name, batch in (("mean", convolved.mean((0, 1, 2))), ("var", convolved.var((0, 1, 2)))):
        before, after = (stats["stem_norm"][name] for stats in (old, new))
        np.testing.assert_allclose(after, 0.9 * before + 0.1 * batch, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"width": 0}, "network.width is 0: use 1 to 65536"),
        ({"head_hidden": 0}, "network.head_hidden is 0"),
        ({"blocks": -1}, "network.blocks is -1: use 0 to 100"),
        ({"encoding": 3}, "network.encoding is 3, which is not of type str"),
        ({"kind": "mlp"}, "network.kind is 'mlp': use 'resnet'"),
        ({"norm": "group"}, "network.norm is 'group': use 'none' or 'layer' or 'batch'"),
        ({"symmetric": True, "norm": "batch"}, "needs dense layers without BatchNorm"),
        ({"symmetric": True, "layers": "conv"}, "but network.layers is 'conv'"),
    ],
)
def test_bad_settings_of_a_residual_network_are_rejected(setting, message):
    with pytest.raises(ValueError, match=message):
        ResNetConfig(**setting)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"head_hidden": -1}, "network.head_hidden is -1"),
        ({"hidden": ()}, r"network.hidden is \(\)"),
        ({"hidden": (8, 0)}, r"network.hidden is \(8, 0\)"),
    ],
)
def test_bad_settings_of_the_mlp_are_rejected(setting, message):
    with pytest.raises(ValueError, match=message):
        MLPConfig(**setting)


@pytest.mark.parametrize(
    "make",
    [
        lambda game: make_network(ResNetConfig(encoding="colour"), game),
        lambda game: make_network(MLPConfig(encoding="colour"), game),
        lambda game: from_module(game, Custom(), "colour"),
    ],
)
def test_an_unknown_encoding_is_rejected(make, tic_tac_toe):
    message = "network.encoding is 'colour': use 'absolute' or 'relative', which tic_tac_toe has"
    with pytest.raises(ValueError, match=message):
        make(tic_tac_toe)


def test_a_game_may_have_a_custom_encoding(tic_tac_toe):
    game = tic_tac_toe._replace(
        encodings=("stones",), observe=lambda state, name: (state.board != 0).reshape(3, 3, 1)
    )
    with pytest.raises(ValueError, match="network.encoding is 'relative': use 'stones', which"):
        make_network(MLPConfig(), game)
    assert shapes(make_network(MLPConfig(encoding="stones"), game))["Dense_0/kernel"][0] == 9


def test_a_network_reads_its_encoding(tic_tac_toe):
    for encoding, planes in (("absolute", 3), ("relative", 2)):
        network = make_network(MLPConfig(encoding=encoding), tic_tac_toe)
        assert network.encoding == encoding
        assert shapes(network)["Dense_0/kernel"][0] == planes * 9


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4), (4, 5), (5, 5)])
def test_every_form_convolves_and_restores_its_kernel(shape, name):
    """Against a convolution in NumPy."""
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(3, 3, 4, 5)).astype(np.float32)
    planes = rng.normal(size=(3, *shape, 4)).astype(np.float32)
    padded = np.pad(planes, ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    form = convolution.FORMS[name]
    x = jnp.moveaxis(planes, 0, -1) if form.batch_last else planes
    for size, expected in (
        (3, np.einsum("bhwirc,rcio->bhwo", patches, kernel)),
        (1, planes @ kernel[0, 0]),
    ):
        arranged = form.arrange(kernel[:size, :size], shape)
        found = form.apply(x, arranged)
        found = jnp.moveaxis(found, -1, 0) if form.batch_last else found
        np.testing.assert_allclose(found, expected, atol=2e-4)
        restored = form.restore(arranged, shape)
        np.testing.assert_allclose(restored, kernel[:size, :size], atol=1e-5)


# --- Custom modules ----------------------------------------------------------------------


class Custom(nn.Module):
    """A custom network with BatchNorm and a third head, without an `axis_name`."""

    @nn.compact
    def __call__(self, planes, train=False):
        x = nn.Dense(8)(planes.reshape(len(planes), -1))
        x = nn.relu(nn.BatchNorm(not train, momentum=0.5)(x))
        value = nn.tanh(nn.Dense(1)(x))[:, 0]
        return nn.Dense(9)(x), value, {"plies left": nn.Dense(1)(x)[:, 0]}


class OnMesh(nn.Module):
    """The same, normalized by the batches of all devices."""

    axis_name: str | None = None

    @nn.compact
    def __call__(self, planes, train=False):
        x = nn.Dense(8)(planes.reshape(len(planes), -1))
        x = nn.relu(nn.BatchNorm(not train, momentum=0.5, axis_name=self.axis_name)(x))
        return nn.Dense(9)(x), nn.tanh(nn.Dense(1)(x))[:, 0]


def test_a_custom_module_keeps_its_heads_in_every_form(tic_tac_toe):
    network = from_module(tic_tac_toe, Custom())
    variables, planes = random_variables(network), random_planes(tic_tac_toe, "relative")
    applied = network.apply(variables, planes)
    inferred = jax.jit(lambda v, x: network.infer(network.fold(v), x))(variables, planes)
    logits, value, more = applied
    assert (logits.shape, value.shape, more["plies left"].shape) == ((8, 9), (8,), (8,))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), inferred, applied)
    evaluate, states = network_evaluator(tic_tac_toe, network), init_batch(tic_tac_toe, 2)
    observed = jax.vmap(lambda state: tic_tac_toe.observe(state, "relative"))(states)
    found, expected = evaluate(variables, None, states), network.apply(variables, observed)
    assert len(found) == 2
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected[:2])


def test_statistics_of_a_custom_module_are_averaged_over_devices(tic_tac_toe):
    """The average of the statistics of each half of the batch."""
    network = from_module(tic_tac_toe, Custom())
    variables = random_variables(network)
    planes = random_planes(tic_tac_toe, "relative", batch=16)
    (_, _, whole), (_, _, two) = train_on_one_and_two(network, variables, planes)
    halves = [network.train(variables, half, None)[1] for half in (planes[:8], planes[8:])]
    average = jax.tree.map(lambda a, b: (a + b) / 2, *halves)["batch_stats"]
    for found, expected, alone in zip(*map(jax.tree.leaves, (two, average, whole)), strict=True):
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)
        assert found[0].shape == alone.shape
    assert (
        abs(halves[0]["batch_stats"]["BatchNorm_0"]["mean"] - two["BatchNorm_0"]["mean"][0]) > 1e-3
    ).any()


def test_a_module_with_an_axis_normalizes_by_the_whole_batch(tic_tac_toe):
    network = from_module(tic_tac_toe, OnMesh())
    variables = random_variables(network)
    planes = random_planes(tic_tac_toe, "relative", batch=16)
    whole, two = train_on_one_and_two(network, variables, planes)
    for found, expected in zip(two[:2], whole[:2], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for found, expected in zip(*map(jax.tree.leaves, (two[2], whole[2])), strict=True):
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_custom_module_learns(devices, tic_tac_toe):
    """Parameters and statistics stay equal on all devices."""
    network = from_module(tic_tac_toe, Custom())
    learner = configured_learner(LearnerConfig(warmup_steps=0), network)
    policy, value = jax.nn.one_hot(jnp.arange(8), 9), jnp.linspace(-1, 1, 8)
    planes = random_planes(tic_tac_toe, "relative")
    samples = Sample(planes, jnp.ones((8, 9), bool), policy, value)
    state = learner.init(random_variables(network))

    def learn(state, samples):
        found = jax.lax.scan(
            lambda state, _: learner.update(state, samples, "batch"), state, length=100
        )
        return jax.tree.map(lambda leaf: leaf[None], found)

    mesh = Mesh(np.array(jax.devices()[:devices]), ("batch",))
    specs = {"in_specs": (P(), P("batch")), "out_specs": P("batch")}
    on_mesh = jax.shard_map(learn, mesh=mesh, check_vma=False, **specs)
    after, losses = jax.jit(on_mesh)(state, samples)
    assert losses["loss"][0, -1] < losses["loss"][0, 0] / 2
    for leaf in jax.tree.leaves((after, losses)):
        np.testing.assert_array_equal(leaf, np.broadcast_to(leaf[:1], leaf.shape))
    before, moved = (s.variables["batch_stats"]["BatchNorm_0"]["mean"] for s in (state, after))
    assert (abs(moved - before) > 1e-3).any()


class Returns(nn.Module):
    """A linear layer followed by a function."""

    make: Callable[[jax.Array, bool], Any]

    @nn.compact
    def __call__(self, planes, train=False):
        return self.make(nn.Dense(10)(planes.reshape(len(planes), -1)), train)


@pytest.mark.parametrize(
    ("make", "outputs"),
    [
        (lambda x, train: (x[:, :9], x[:, 9:]), r"\(float32\[3, 9\], float32\[3, 1\]\)"),
        (lambda x, train: (x, x[:, 0]), r"\(float32\[3, 10\], float32\[3\]\)"),
        (lambda x, train: x[:, :9], r"float32\[3, 9\]"),
        (lambda x, train: (x[:, :9],), r"\(float32\[3, 9\],\)"),
        (lambda x, train: {"logits": x[:, :9]}, r"{logits: float32\[3, 9\]}"),
        (lambda x, train: (x[:, :9], x[:, 9:] if train else x[:, 9]), r"\(float32.*3, 1\]\)"),
    ],
)
def test_outputs_of_wrong_shapes_are_rejected(make, outputs, tic_tac_toe):
    message = f"for 3 positions of tic_tac_toe the module returns {outputs}: make it a tuple that "
    message += r"starts with logits \[3, 9\] and value \[3\]$"
    with pytest.raises(ValueError, match=message):
        from_module(tic_tac_toe, Returns(make))
