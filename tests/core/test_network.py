"""The networks: shapes, the inference form, forms of convolution, statistics over devices."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from azjax import convolution, games
from azjax.network import NetworkConfig, make_network

TINY = NetworkConfig(channels=4, blocks=1, value_hidden=8)
FORMS = ("dense", "gather", "xla", "fourier")
KINDS = {
    "mlp": dataclasses.replace(TINY, kind="mlp", hidden=(16, 8), head_hidden=4),
    "batch": TINY,
    "layer": dataclasses.replace(TINY, norm="layer"),
    "none": dataclasses.replace(TINY, norm="none"),
}


def shapes(network):
    """The shape of every parameter, by name."""
    variables = jax.eval_shape(network.init, jax.random.key(0))
    flat = flatten_dict(variables["params"], sep="/")
    return {name: leaf.shape for name, leaf in flat.items()}


def random_variables(network, seed=0):
    """Variables away from their initial values; variances stay positive."""
    rng = np.random.default_rng(seed)

    def draw(path, leaf):
        values = 0.5 * rng.normal(size=leaf.shape)
        if path[-1].key in ("var", "scale"):
            values = 0.5 + abs(values)
        return jnp.asarray(values, leaf.dtype)

    return jax.tree_util.tree_map_with_path(draw, jax.eval_shape(network.init, jax.random.key(0)))


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
    """Evaluation mode and inference form, in every form of convolution, from one set of weights."""
    game = games.make(name)
    config = dataclasses.replace(KINDS[kind], encoding=encoding)
    forms = FORMS if config.kind == "tower" else ("auto",)
    forms = forms if game.board_shape == (3, 3) else forms[:3]
    networks = [make_network(dataclasses.replace(config, convolution=form), game) for form in forms]

    @jax.jit
    def outputs(variables, planes):
        evaluated = [network.apply(variables, planes, False) for network in networks]
        inferred = [network.infer(network.fold(variables), planes) for network in networks]
        return evaluated, inferred

    variables, planes = random_variables(networks[0]), random_planes(game, config.encoding)
    evaluated, inferred = outputs(variables, planes)
    logits, values, stats = evaluated[0]
    assert (logits.shape, values.shape) == ((8, game.num_actions), (8,))
    assert logits.std(axis=0).min() > 1e-3 and values.std() > 1e-3  # The planes matter.
    assert (abs(values) <= 1).all()
    for other_logits, other_values, *_ in evaluated + inferred:
        np.testing.assert_allclose(other_logits, logits, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(other_values, values, rtol=1e-5, atol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, stats, variables.get("batch_stats", {}))


@pytest.mark.parametrize(
    "name", ["tic_tac_toe", pytest.param("connect_four", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "kind",
    ["batch", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "batch")],
)
def test_evaluation_in_bfloat16_is_less_exact_and_learning_is_not(name, kind):
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
    assert 1e-5 < difference < 0.03 * abs(logits).max()
    np.testing.assert_allclose(coarse_values, values, atol=0.05)
    np.testing.assert_allclose(coarse.apply(variables, planes, False)[0], logits, atol=1e-5)


@pytest.mark.parametrize(("name", "form"), [("tic_tac_toe", "fourier"), ("connect_four", "xla")])
def test_auto_chooses_the_form_by_the_size_of_the_board(name, form):
    networks = [
        make_network(dataclasses.replace(TINY, convolution=convolution), games.make(name))
        for convolution in ("auto", form)
    ]
    auto, chosen = (jax.eval_shape(n.fold, random_variables(n)) for n in networks)
    assert auto == chosen


@pytest.mark.parametrize(("kind", "encoding"), [("mlp", "absolute"), ("batch", "relative")])
def test_a_fresh_network_is_tame(tic_tac_toe, kind, encoding):
    """Statistics that started at zero variance would make logits huge."""
    config = dataclasses.replace(KINDS[kind], encoding=encoding, blocks=0)
    network = make_network(config, tic_tac_toe)
    planes = random_planes(tic_tac_toe, encoding)

    @jax.jit
    def fresh(key):
        variables = network.init(key)
        return network.apply(variables, planes, False)

    logits, values, stats = fresh(jax.random.key(0))
    assert 1e-3 < abs(logits).max() < 20
    assert (abs(values) < 1).all()
    variances = [leaf for path, leaf in flatten_dict(stats).items() if path[-1] == "var"]
    assert len(variances) == (0 if kind == "mlp" else 3)
    assert all((leaf == 1).all() for leaf in variances)


def test_tower_has_the_shapes_of_the_textbook(tic_tac_toe):
    network = make_network(NetworkConfig(encoding="absolute"), tic_tac_toe)
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
    network = make_network(NetworkConfig(kind="mlp"), tic_tac_toe)
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


@pytest.mark.parametrize("norm", ["layer", "none"])
def test_only_the_convolution_that_nothing_normalises_has_a_bias(tic_tac_toe, norm):
    names = shapes(make_network(KINDS[norm], tic_tac_toe))
    assert ("stem/bias" in names) == (norm == "none")
    assert ("stem_norm/bias" in names) == (norm == "layer")


@pytest.fixture(scope="module")
def trained(tic_tac_toe):
    """One step of the statistics: on one device, and for each of two (leading axis)."""
    network = make_network(TINY, tic_tac_toe)
    shared = make_network(TINY, tic_tac_toe, axis_name="batch")
    variables = random_variables(network)
    planes = random_planes(tic_tac_toe, TINY.encoding, batch=16)
    mesh = Mesh(np.array(jax.devices()[:2]), ("batch",))

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(P(), P("batch")), out_specs=P("batch"), check_vma=False
    )
    def on_each(variables, planes):
        logits, values, stats = shared.apply(variables, planes, True)
        return logits, values, jax.tree.map(lambda leaf: leaf[None], stats)

    one = jax.jit(network.apply, static_argnums=2)(variables, planes, True)
    return variables["batch_stats"], one, jax.jit(on_each)(variables, planes)


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
    """The stem's input is the planes themselves, so its mean is one product away."""
    old, (_, _, new), _ = trained
    network = make_network(dataclasses.replace(TINY, convolution="xla"), tic_tac_toe)
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
        ({"channels": 0}, "network.channels is 0: use 1 to 65536"),
        ({"value_hidden": 0}, "network.value_hidden is 0"),
        ({"head_hidden": -1}, "network.head_hidden is -1"),
        ({"blocks": -1}, "network.blocks is -1: use 0 to 100"),
        ({"hidden": ()}, r"network.hidden is \(\)"),
        ({"hidden": (8, 0)}, r"network.hidden is \(8, 0\)"),
        ({"kind": "cnn"}, "network.kind is 'cnn': use 'tower' or 'mlp'"),
        ({"norm": "group"}, "network.norm is 'group': use 'batch' or 'layer' or 'none'"),
        ({"encoding": "colour"}, "network.encoding is 'colour': use 'absolute' or 'relative'"),
        ({"convolution": "fft"}, "network.convolution is 'fft': use 'auto' or 'fourier'"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        NetworkConfig(**setting)


def test_spectra_are_for_boards_of_3_by_3():
    config = dataclasses.replace(TINY, convolution="fourier")
    with pytest.raises(ValueError, match="for boards of 3 by 3, and this one has 6 by 7"):
        make_network(config, games.make("connect_four"))


def test_spectra_are_those_of_the_discrete_fourier_transform():
    """Against NumPy's, of which four frequencies are real and six stand for their conjugates."""
    board = np.arange(1.0, 10.0).reshape(3, 3)
    expected = np.fft.fft2(np.pad(board, (0, 1)))
    found = convolution._TO_SPECTRUM @ board.ravel()
    np.testing.assert_allclose(found[:4], [expected[f].real for f in convolution._REAL], atol=1e-5)
    pairs = [expected[f] for f in convolution._PAIRS]
    np.testing.assert_allclose(found[4:], np.ravel([[z.real, z.imag] for z in pairs]), atol=1e-5)
    kept = {*convolution._REAL, *convolution._PAIRS}
    mirrored = {(-row % 4, -column % 4) for row, column in kept}
    assert len(kept) == 10 and len(kept | mirrored) == 16


def test_spectra_are_exact_where_the_numbers_are():
    """Every factor is 0, 1 or -1, so that whole numbers stay whole."""
    assert set(np.unique(convolution._TO_SPECTRUM)) == {-1, 0, 1}
    rng = np.random.default_rng(0)
    kernel = rng.integers(-9, 10, (3, 3, 2, 2)).astype(np.float32)
    planes = rng.integers(-9, 10, (5, 3, 3, 2)).astype(np.float32)

    def convolve(form):
        x = convolution.to_layout(form, planes)
        y = convolution.convolve(form, x, convolution.arrange(form, kernel, (3, 3)))
        return convolution.from_layout(form, y)

    np.testing.assert_array_equal(convolve("fourier"), convolve("dense"))
