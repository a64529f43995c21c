"""Training is lowered for an accelerator on a CPU, without any choice made for CPUs.

`tests/system/test_lowering.py` lowers every preset.
"""

import dataclasses

import jax
from jax import export

from azjax import training
from azjax.games.base import init_batch
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import make_search, uniform_evaluator
from small import conv


def test_an_iteration_is_lowered_for_an_accelerator(monkeypatch):
    """Tracing makes no choice: parts built for a platform never read the default backend."""

    def refuse():
        raise AssertionError("the default backend was read")

    smoke = presets.smoke(presets.get("paper"))
    small = dataclasses.replace(smoke, network=conv(width=4, blocks=1))
    monkeypatch.setattr(jax, "default_backend", refuse)
    parts, mesh = make_parts(small, platform="cuda"), training.make_mesh(jax.devices()[:2])
    run = training.make_iteration(parts, mesh)
    exported = export.export(run, platforms=["cuda"])(training.abstract_state(parts, mesh))
    assert (exported.platforms, exported.nr_devices) == (("cuda",), 2)
    assert "stablehlo.convolution" in exported.mlir_module()


def test_a_search_on_a_gpu_has_no_loop_of_unknown_length():
    """Loops of known length are `scan` in the traced program; Gumbel noise needs no loop."""
    small = presets.smoke(presets.get("default"))
    for platform, has_loops in (("cpu", True), ("cuda", False)):
        parts = make_parts(small, platform=platform)
        search = make_search(parts.search, parts.game, uniform_evaluator(parts.game), parts.grow)
        given = None, jax.random.key(0), init_batch(parts.game, 2), 1.0, True
        assert ("while[" in str(jax.make_jaxpr(search)(*given))) == has_loops
