"""Every preset is lowered for GPUs and TPUs on a CPU, as its configuration says."""

import dataclasses
import re

import jax
import pytest
from jax import export

from azjax import games, training
from azjax.runs import presets
from azjax.runs.config import make_parts

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


def lower(config, platform, devices=1):
    """Exports an iteration of the training with a preset, without compiling."""
    parts = make_parts(config, platform=platform)
    mesh = training.make_mesh(jax.devices()[:devices])
    run, state = training.make_iteration(parts, mesh), training.abstract_state(parts, mesh)
    exported = export.export(run, platforms=[platform])(state)
    assert (exported.platforms, exported.nr_devices) == ((platform,), devices)
    return exported.mlir_module()


def find_forms(text):
    """Returns the arithmetic of a program, from the text of its operations."""
    signs = {
        "convolution": "stablehlo.convolution",
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


@pytest.mark.parametrize("name", CONFIGS)
def test_an_iteration_follows_its_configuration(name):
    """Independent of this machine; platforms, engines of the search and devices take turns."""
    config, number = CONFIGS[name], [*CONFIGS].index(name)
    platform, devices = ("cuda", "tpu")[number % 2], 2 if number % 3 == 0 else 1
    if number % 4 >= 2:
        config = change(config, search={"engine": "mctx"})
    text = lower(config, platform, devices)
    assert not host_calls(text)
    assert tree_batches(text, config) == {config.selfplay.games // devices}
    dtypes = [getattr(config.network, f"{name}_dtype", "") for name in ("evaluation", "learning")]
    wanted = {"bfloat16"} if {*dtypes} & {"auto", "bfloat16"} else set()
    if getattr(config.network, "layers", "") == "conv":
        wanted |= {"convolution"}
    assert find_forms(text) == wanted
