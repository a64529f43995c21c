"""Every setting changes the program, and every preset is lowered for GPUs and TPUs on a CPU."""

import dataclasses
import re

import jax
import pytest
from jax import export

from azjax import games, training
from azjax.runs import presets
from azjax.runs.config import make_parts
from reference import mctx_loop
from traced_settings import OTHERS, without_effect

PAPER = presets.get("paper")
SHALLOW = dataclasses.replace(PAPER, network=dataclasses.replace(PAPER.network, blocks=1))
# On a larger board, convolutions have another form on CPUs.
CONFIGS = presets.PRESETS | {"paper": dataclasses.replace(SHALLOW, game="connect_four")}


@pytest.mark.parametrize("name", CONFIGS)
def test_an_iteration_follows_its_configuration(name):
    """Independent of this machine; platforms, loops of the search and devices take turns."""
    config, number = CONFIGS[name], [*CONFIGS].index(name)
    platform, devices = ("cuda", "tpu")[number % 2], 2 if number % 3 == 0 else 1
    parts, mesh = make_parts(config, platform=platform), training.make_mesh(jax.devices()[:devices])
    if number % 4 >= 2:
        parts = parts._replace(grow=mctx_loop.grow)
    run, state = training.make_iteration(parts, mesh), training.abstract_state(parts, mesh)
    text = export.export(run, platforms=[platform])(state).mlir_module()
    called = " ".join(re.findall(r"custom_call @(\w+)", text))
    assert not re.search(r"lapack|blas_|onednn|cpu|callback", called)
    # Games that are searched together: the leading sizes of arrays `[B, N, A]`.
    nodes, actions = config.search.num_simulations + 1, games.make(config.game).num_actions
    batches = re.findall(rf"tensor<(\d+)x{nodes}x{actions}xf32>", text)
    assert {*map(int, batches)} == {config.selfplay.games // devices}
    dtypes = {getattr(config.network, f"{name}_dtype", "") for name in ("evaluation", "learning")}
    assert ("xbf16>" in text) == bool(dtypes & {"auto", "bfloat16"})
    assert ("stablehlo.convolution" in text) == (getattr(config.network, "layers", "") == "conv")


@pytest.mark.parametrize("settings", OTHERS, ids=lambda settings: type(settings).__name__)
def test_every_setting_changes_the_program(settings):
    assert without_effect(settings, OTHERS[settings]) == []
