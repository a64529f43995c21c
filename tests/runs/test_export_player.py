"""Export of players: the files compute what the players compute, without azjax."""

import dataclasses
import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax as az
from azjax import games
from azjax.cli import export as program
from azjax.games.base import init_batch, random_action
from azjax.networks import MLPConfig, ResNetConfig
from azjax.networks.quantized import VALUES, make_quantized
from azjax.players.overrides import oriented_overrides
from azjax.runs import export as exports
from azjax.runs.export import name_leaves
from azjax.search import PUCT, UCT, Gumbel
from run_directories import make_run
from small import conv

pytest.importorskip("flatbuffers")

SYMMETRIC = {"symmetric": True, "head_hidden": 16}
NETWORKS = {
    "mlp": MLPConfig(hidden=(16, 8), head_hidden=8),
    "quantized": None,
    "batch norm": conv(width=4, head_hidden=8),
    "symmetric mlp": MLPConfig(hidden=(16, 8), **SYMMETRIC),
    "dense": ResNetConfig(width=16, blocks=2, head_hidden=8),
    "symmetric": ResNetConfig(width=16, **SYMMETRIC),
    "convolutions": ResNetConfig(layers="conv", width=4, head_hidden=8),
}


def random_weights(variables):
    """Draws all weights again, so that none is zero."""

    random = np.random.default_rng(0)

    def draw(path, leaf):
        drawn = np.float32(leaf + 0.3 * random.normal(size=leaf.shape))
        return abs(drawn) if "var" in str(path) else drawn

    return jax.tree_util.tree_map_with_path(draw, variables)


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
    config = az.Config(network=NETWORKS[name] or MLPConfig(), search=search or PUCT())
    game = games.make(config.game)
    network = quantized(game) if name == "quantized" else az.make_network(config.network, game)
    variables = network.init(jax.random.key(0))
    variables = variables if name == "quantized" else random_weights(variables)
    return az.Player(az.make_parts(config, game, network), network.fold(variables))


@functools.cache
def positions(game, size):
    """Plays random games; returns positions after up to 3 moves."""

    def move(ply, row, state):
        key = jax.random.fold_in(jax.random.key(ply), row)
        after = game.step(state, random_action(game, key, state))[0]
        return games.base.where(row % 4 > ply, after, state)

    def play(row):
        return functools.reduce(lambda state, ply: move(ply, row, state), range(3), game.init())

    return jax.jit(jax.vmap(play))(jnp.arange(size))


def read(path):
    return jax.export.deserialize(path.read_bytes())


def assert_close(arrays, wanted):
    for array, expected in zip(arrays, wanted, strict=True):
        np.testing.assert_allclose(array, expected, atol=1e-5)


# StableHLO.


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_file_evaluates_any_number_of_positions(name, tmp_path):
    player = make_player(name)
    exported = read(az.export(player, tmp_path / "player.stablehlo"))
    assert exported.platforms == ("cpu", "cuda", "tpu") and exported.nr_devices == 1
    states = positions(player.game, 5)
    assert_close(exported.call(name_leaves(states)), player.evaluate(states))
    assert exported.call(name_leaves(init_batch(player.game, 1)))[1].shape == (1,)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "search",
    [Gumbel(), UCT(), PUCT(), PUCT(engine="mctx")],
    ids=["gumbel", "uct", "puct", "mctx"],
)
def test_a_file_searches_any_number_of_positions(search, tmp_path):
    player = make_player(search=search)
    exported = read(az.export(player, tmp_path / "player.stablehlo", num_simulations=6))
    states = positions(player.game, 4)
    action, weights, value = exported.call(name_leaves(states), 7)
    result = player.search(jax.random.key(7), states, num_simulations=6)
    np.testing.assert_array_equal(action, result.action)
    assert_close((weights, value), (result.action_weights, result.value))


def test_a_file_plays_the_overrides(tmp_path):
    player = make_player("quantized")
    empty = init_batch(player.game, 1)
    corner = 2 if player.evaluate(empty)[0].argmax() == 0 else 0
    after = jax.vmap(player.game.step)(empty, jnp.array([4]))[0]
    overrides = oriented_overrides(player.game, "relative", after, np.array([corner]))
    player = dataclasses.replace(player, alone=True, overrides=overrides)
    exported = read(az.export(player, tmp_path / "player.stablehlo", num_simulations=0))
    states = jax.tree.map(lambda *rows: jnp.concatenate(rows), after, positions(player.game, 5))
    action, weights, value = exported.call(name_leaves(states), 0)
    decision = player.agent.act(player.params, jax.random.key(0), states)
    np.testing.assert_array_equal(action, decision.action)
    assert_close((weights, value), (decision.weights, decision.value))
    assert weights[0].max() == 1


FRESH = """
import pathlib, sys
sys.modules["azjax"] = None  # Imports of azjax fail.
import jax, numpy as np
exported = jax.export.deserialize(pathlib.Path("player.stablehlo").read_bytes())
logits, value = exported.call(dict(np.load("states.npz")))
np.savez("outputs.npz", logits=logits, value=value)
"""


def test_another_process_reads_a_file_without_azjax(tmp_path):
    player = make_player("quantized")
    states = positions(player.game, 4)
    az.export(player, tmp_path / "player.stablehlo")
    np.savez(tmp_path / "states.npz", **name_leaves(jax.device_get(states)))
    environment = {name: x for name, x in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", FRESH], cwd=tmp_path, env=environment, check=True)
    logits, value = player.evaluate(states)
    with np.load(tmp_path / "outputs.npz") as outputs:
        np.testing.assert_array_equal(outputs["logits"], logits)
        np.testing.assert_array_equal(outputs["value"], value)


def test_a_player_whose_code_needs_a_batch_size_says_so(tmp_path):
    player, path = make_player(), tmp_path / "player.stablehlo"

    def infer(folded, planes):
        return jnp.zeros((len(planes), 9)), jnp.zeros(len(planes))

    network = player.parts.network._replace(infer=infer)
    player = dataclasses.replace(player, parts=player.parts._replace(network=network))
    with pytest.raises(ValueError, match="variable number of positions, .*: choose a batch size"):
        az.export(player, path)
    assert not path.exists()
    exported = read(az.export(player, path, batch_size=2))
    assert exported.call(name_leaves(init_batch(player.game, 2)))[0].shape == (2, 9)


def test_leaves_have_the_names_of_their_fields():
    assert name_leaves({"a": (1, [2])}) == {"a.0": 1, "a.1.0": 2}
    assert [*name_leaves(games.make("tic_tac_toe").init())] == ["board", "player", "over"]
    assert name_leaves(np.float32(3)) == {"state": 3}


# ONNX.


@pytest.mark.parametrize(
    ("name", "batch_size"), [("quantized", 6), *((name, None) for name in NETWORKS)]
)
def test_an_onnx_file_computes_the_network(name, batch_size, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    player = make_player(name)
    path = az.export(player, tmp_path / "player.onnx", batch_size=batch_size)
    session = runtime.InferenceSession(path)
    (given,) = session.get_inputs()
    assert (given.name, given.shape) == ("planes", [batch_size or "b", 3, 3, 2])
    about = session.get_modelmeta().custom_metadata_map
    assert about == {"game": "tic_tac_toe", "encoding": "relative", "iteration": "0"}
    states = positions(player.game, 6)
    planes = jax.vmap(lambda state: player.game.observe(state, "relative"))(states)
    logits, value = session.run(None, {"planes": np.asarray(planes)})
    if batch_size is None:
        empty = session.run(None, {"planes": np.asarray(planes)[:0]})
        assert [outputs.shape for outputs in empty] == [(0, 9), (0,)]
    expected = jax.device_get(player.evaluate(states))
    if name == "quantized":
        assert (
            logits.tobytes() == expected[0].tobytes() and value.tobytes() == expected[1].tobytes()
        )
    else:
        assert_close((logits, value), expected)


def test_an_onnx_file_needs_plain_layers(tmp_path):
    pytest.importorskip("onnx")
    player = make_player()
    custom = player.parts._replace(network=player.parts.network._replace(plain=None))
    with pytest.raises(ValueError, match="no ONNX form, .* that ends in .stablehlo"):
        az.export(dataclasses.replace(player, parts=custom), tmp_path / "player.onnx")


# Errors, before a player is loaded.


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("player.pt", {}, "use a name that ends in .stablehlo or .onnx"),
        ("missing/player.onnx", {}, "there is no folder .*missing"),
        ("player.onnx", {"num_simulations": 0}, "ONNX files contain only the network"),
        ("player.stablehlo", {"num_simulations": -1}, "num_simulations is -1: use 0"),
        ("player.stablehlo", {"batch_size": 0}, "batch_size is 0: use 1 or more"),
        ("player.stablehlo", {"num_simulations": "8"}, "num_simulations is '8', which is not of"),
        ("player.onnx", {"batch_size": 2.5}, "batch_size is 2.5, which is not of type int"),
    ],
)
def test_invalid_arguments_are_refused(name, arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        exports.check_export(tmp_path / name, **arguments)


@pytest.mark.parametrize(("name", "package"), [("x.onnx", "onnx"), ("x.stablehlo", "flatbuffers")])
def test_a_missing_package_is_named(name, package, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=f"needs the package {package}: .* install {package}$"):
        exports.check_export(tmp_path / name)


# The program.


def test_the_program_writes_a_run_or_a_player_that_comes_with_azjax(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    config = az.Config(network=NETWORKS["mlp"])
    run_dir = make_run(tmp_path / "run", config)
    assert program.main(["--run-dir", str(run_dir), "--out", "run.stablehlo"]) == 0
    assert capfd.readouterr().out.endswith(
        "input: {board: int8[b, 9], over: bool[b], player: int8[b]}\n"
    )
    assert program.main(["hex:4", "--simulations", "0", "--batch-size", "2"]) == 0
    assert read(tmp_path / "player.stablehlo").out_avals[0].shape == (2,)
    assert read(tmp_path / "run.stablehlo").out_avals[0].shape[1:] == (9,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--out player.pt", "player.pt has no known extension"),
        ("hex:7", "no player 'hex:7' comes with azjax: use "),
        ("hex:4 --run-dir run", "hex:4 and --run-dir run name two players: leave"),
        ("--batch-size 0", "--batch-size is 0: use 1 or more"),
    ],
)
def test_the_program_refuses_invalid_options(arguments, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert program.main(arguments.split()) == 2
    assert capfd.readouterr().err.startswith(f"error: {message}")
    assert not [*tmp_path.iterdir()]
