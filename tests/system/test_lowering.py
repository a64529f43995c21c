"""Every preset is lowered for GPUs and TPUs on a CPU, as its configuration says."""

import dataclasses
import re

import jax
import pytest
from jax import export

from azjax import games, training
from azjax.games.base import init_batch
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import make_search

HOST_ONLY = re.compile(r"lapack|blas_|onednn|cpu|callback")  # In names of custom calls.


def change(config, **sections):
    """Returns a configuration with changed settings in some sections."""
    old = {name: getattr(config, name) for name in sections}
    new = {name: dataclasses.replace(old[name], **fields) for name, fields in sections.items()}
    return dataclasses.replace(config, **new)


# `paper` is lowered for a larger board as well, whose convolutions have another form on CPUs.
SHALLOW = change(presets.get("paper"), network={"blocks": 1})
CONFIGS = presets.PRESETS | {
    "paper": SHALLOW,
    "paper on 6x7": dataclasses.replace(SHALLOW, game="connect_four"),
    "learning in half": change(presets.get("mlp"), network={"learning_dtype": "bfloat16"}),
}


def lower(config, platform, program="iteration", devices=1):
    """Exports one program of the training with a preset, without compiling."""
    parts = make_parts(config, platform=platform)
    mesh = training.make_mesh(jax.devices()[:devices])
    state = training.abstract_state(parts, mesh)
    if program == "iteration":
        arguments, run = (state,), training.make_iteration(parts, mesh)
    elif program == "play":
        arguments, run = (state,), training.make_play(parts, mesh)
    elif program == "search":
        search = make_search(parts.search, parts.game, parts.evaluate)
        folded = jax.eval_shape(parts.network.fold, state.learner.average)
        states = jax.eval_shape(lambda: init_batch(parts.game, parts.selfplay.games))
        run = jax.jit(lambda *args: search(*args, 1.0, True).action_weights)
        arguments = folded, jax.eval_shape(lambda: jax.random.key(0)), states
    else:
        one, rows = jax.eval_shape(lambda: training.example(parts)), parts.replay.batch_size
        batch = jax.tree.map(lambda x: jax.ShapeDtypeStruct((rows, *x.shape), x.dtype), one)
        learner = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state.learner)
        run = jax.jit(lambda learner, batch: parts.learner.update(learner, batch, None))
        arguments = learner, batch
    exported = export.export(run, platforms=[platform])(*arguments)
    assert (exported.platforms, exported.nr_devices) == ((platform,), devices)
    return exported.mlir_module()


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


CASES = [(name, "iteration") for name in CONFIGS]
CASES += [("default", "play"), ("mlp", "search"), ("paper", "learn")]


@pytest.mark.parametrize(("name", "program"), CASES)
def test_programs_follow_their_configuration(name, program):
    """Independent of this machine; platforms, engines of the search and devices take turns."""
    config, number = CONFIGS[name], CASES.index((name, program))
    platform, devices = (
        ("cuda", "tpu")[number % 2],
        1 + (program == "iteration") * (number % 3 == 0),
    )
    if number % 4 >= 2:
        config = change(config, search={"engine": "mctx"})
    text, together = lower(config, platform, program, devices), config.selfplay.games // devices
    assert not host_calls(text)
    assert tree_batches(text, config) == (set() if program == "learn" else {together})
    dtypes = {"evaluation_dtype"} if program in ("play", "search") else {"learning_dtype"}
    dtypes |= {"evaluation_dtype"} if program == "iteration" else set()
    chosen = {getattr(config.network, dtype, "float32") for dtype in dtypes}
    wanted = {"bfloat16"} if chosen & {"auto", "bfloat16"} else set()
    if getattr(config.network, "layers", "") == "conv":
        wanted |= {"convolution"}
    assert find_forms(text) == wanted


def test_the_same_parts_built_for_cpus_have_their_forms():
    """Shows that the test above can fail: these choices differ on a CPU."""
    for name, forms in [("paper", {"winograd"}), ("paper on 6x7", {"convolution"})]:
        text = lower(CONFIGS[name], "cpu")
        assert find_forms(text) == forms
        assert tree_batches(text, CONFIGS[name]) == {min(256, CONFIGS[name].selfplay.games)}
    factorize = export.export(jax.jit(jax.numpy.linalg.qr), platforms=["cpu"])
    assert host_calls(factorize(jax.ShapeDtypeStruct((3, 3), "float32")).mlir_module())
