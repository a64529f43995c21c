"""Training can be lowered for GPUs and TPUs on a CPU, without any choice made for CPUs."""

import dataclasses
import functools
import re
import types
import typing
from typing import Any

import jax
import pytest
from jax import export

from azjax import games, training
from azjax.games.base import init_batch
from azjax.networks import base, make_network
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import Gumbel, make_search

HINTS = typing.get_type_hints(Gumbel)
ENGINES = typing.get_args(HINTS["engine"]) if "engine" in HINTS else (None,)
GAME = games.make("tic_tac_toe")
HOST_ONLY = re.compile(r"lapack|blas_|onednn|cpu|callback")  # In names of custom calls.


def change(config, **sections):
    """Returns a configuration with changed settings in some sections."""
    changed = {name: dataclasses.replace(getattr(config, name), **sections[name])
               for name in sections}  # fmt: skip
    return dataclasses.replace(config, **changed)


# `paper` is lowered for a larger board as well, whose convolutions have another form on CPUs.
CONFIGS = presets.PRESETS | {
    "paper, shallow": change(presets.get("paper"), network={"blocks": 1}),
    "paper on 6x7": dataclasses.replace(presets.get("paper"), game="connect_four"),
    "learning in half": change(presets.get("mlp"), network={"learning_dtype": "bfloat16"}),
    "symmetric in half": change(
        presets.get("connect_four"),
        network={"evaluation_dtype": "float32", "learning_dtype": "bfloat16"},
    ),
}


@functools.cache
def with_engine(name, engine):
    config = CONFIGS[name]
    return change(config, search={"engine": engine}) if engine else config


@functools.cache
def lower(name, engine, platform, program="iteration", devices=1):
    """Exports one program of the training with a preset, without compiling."""
    parts = make_parts(with_engine(name, engine), platform=platform)
    mesh = training.make_mesh(jax.devices()[:devices])
    state = training.abstract_state(parts, mesh)
    if program in ("iteration", "play"):
        make = training.make_iteration if program == "iteration" else training.make_play
        run: Any = make(parts, mesh)
        return export.export(run, platforms=[platform])(state)
    if program == "search":
        search = make_search(parts.search, parts.game, parts.evaluate)
        folded = jax.eval_shape(parts.network.fold, state.learner.average)
        states = jax.eval_shape(lambda: init_batch(parts.game, parts.selfplay.games))
        run = jax.jit(lambda *args: search(*args, 1.0, True).action_weights)
        shapes = folded, jax.eval_shape(lambda: jax.random.key(0)), states
        return export.export(run, platforms=[platform])(*shapes)
    one = jax.eval_shape(lambda: training.example(parts))
    batch = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((parts.replay.batch_size, *leaf.shape), leaf.dtype), one
    )
    update = jax.jit(lambda learner, batch: parts.learner.update(learner, batch, None))
    learner = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state.learner)
    return export.export(update, platforms=[platform])(learner, batch)


def find_forms(text):
    """Returns the arithmetic of a program, from the text of its operations."""
    signs = {
        "convolution": "stablehlo.convolution",
        "winograd": "tensor<25x64x64x",  # A board of 3x3 as 25 points, of 64 channels.
        "bfloat16": "xbf16>",
    }
    return {form for form, sign in signs.items() if sign in text}


def tree_batches(text, config):
    """Returns how many games are searched together: the leading sizes of arrays `[B, N, A]`."""
    nodes, actions = config.search.num_simulations + 1, games.make(config.game).num_actions
    return {int(size) for size in re.findall(rf"tensor<(\d+)x{nodes}x{actions}xf32>", text)}


def host_calls(text):
    called = re.findall(r"custom_call @(\w+)", text)
    return [name for name in called if HOST_ONLY.search(name)]


def check_lowering(name, engine, platform, program, devices=1):
    """Checks that a program follows its configuration, independent of this machine."""
    config, exported = CONFIGS[name], lower(name, engine, platform, program, devices)
    assert (exported.platforms, exported.nr_devices) == ((platform,), devices)
    text, together = exported.mlir_module(), config.selfplay.games // devices
    assert not host_calls(text)
    assert tree_batches(text, config) == (set() if program == "learn" else {together})
    dtypes = {"evaluation_dtype"} if program in ("play", "search") else {"learning_dtype"}
    dtypes |= {"evaluation_dtype"} if program == "iteration" else set()
    chosen = {getattr(config.network, dtype, "float32") for dtype in dtypes}
    wanted = {"bfloat16"} if chosen & {"auto", "bfloat16"} else set()
    if getattr(config.network, "layers", "") == "conv":
        wanted |= {"convolution"}
    assert find_forms(text) == wanted


@pytest.mark.parametrize(
    ("name", "platform", "engine", "devices"),
    [("connect_four", "cuda", ENGINES[0], 2), ("paper, shallow", "tpu", ENGINES[-1], 1)],
)
def test_an_iteration_is_lowered_for_an_accelerator(name, platform, engine, devices, monkeypatch):
    """Tracing makes no choice: parts built for a platform never read the default backend."""

    def refuse():
        raise AssertionError("the default backend was read")

    monkeypatch.setattr(jax, "default_backend", refuse)
    check_lowering(name, engine, platform, "iteration", devices)


PROGRAMS = [(program, engine) for program in ("iteration", "play", "search") for engine in ENGINES]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "engine"), [*PROGRAMS, ("learn", ENGINES[0])])
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_program_of_every_preset_is_lowered(name, platform, program, engine):
    check_lowering(name, engine, platform, program)


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        pytest.param("symmetric in half", {"bfloat16"}, marks=pytest.mark.slow),
        pytest.param("learning in half", {"bfloat16"}, marks=pytest.mark.slow),
        ("paper, shallow", {"winograd"}),
        pytest.param("paper on 6x7", {"convolution"}, marks=pytest.mark.slow),
    ],
)
def test_the_same_parts_built_for_cpus_have_their_forms(name, forms):
    """Shows that the tests above can fail: these choices differ on a CPU."""
    exported = lower(name, ENGINES[0], "cpu")
    assert exported.platforms == ("cpu",)
    assert find_forms(exported.mlir_module()) == forms
    together = min(256, CONFIGS[name].selfplay.games)
    assert tree_batches(exported.mlir_module(), CONFIGS[name]) == {together}


def test_host_callbacks_would_be_found():
    factorize = export.export(jax.jit(jax.numpy.linalg.qr), platforms=["cpu"])
    assert host_calls(factorize(jax.ShapeDtypeStruct((3, 3), "float32")).mlir_module())


def test_an_unknown_platform_is_rejected():
    for build in (
        make_parts,
        lambda config, platform: make_network(config.network, GAME, platform),
    ):
        with pytest.raises(ValueError, match="platform is 'metal': use one of cpu, gpu, cuda, "):
            build(CONFIGS["default"], platform="metal")


def test_gpus_have_bfloat16_from_ampere_on(monkeypatch):
    for capability, expected in [
        *(("7.5", False), ("8.0", True), ("9.0", True), ("12.0", True)),
        *(("gfx90a", True), (None, True)),
    ]:
        about = {} if capability is None else {"compute_capability": capability}
        device = types.SimpleNamespace(platform="gpu", **about)
        assert base.has_bfloat16(device) == expected
        monkeypatch.setattr(jax, "devices", lambda: [types.SimpleNamespace(), device])
        for convolves in (False, True):
            chosen = base.choose_dtype("auto", "cuda", convolves)
            assert chosen == ("bfloat16" if expected else "float32")
            assert base.choose_dtype("auto", "tpu", convolves) == "bfloat16"
            assert base.choose_dtype("bfloat16", "cuda", convolves) == "bfloat16"


def test_games_played_together_are_chosen_with_the_parts():
    for platform, asked, expected in [
        *((platform, 0, 0) for platform in ("cuda", "gpu", "rocm", "tpu")),
        *((None, 0, 256), ("cpu", 0, 256), ("cpu", 64, 64), ("tpu", 64, 64)),
    ]:
        config = change(CONFIGS["default"], selfplay={"games_at_once": asked})
        parts = make_parts(config, platform=platform)
        assert parts.selfplay == dataclasses.replace(config.selfplay, games_at_once=expected)
        assert config.selfplay.games_at_once == asked


def test_optimizations_are_skipped_only_on_cpus():
    assert training.compiler_options() == training.compiler_options(platform="cpu") != {}
    assert all(training.compiler_options(platform=name) == {} for name in ("gpu", "cuda", "tpu"))
