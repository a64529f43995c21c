"""Training is lowered for an accelerator on a CPU, without any choice made for CPUs.

`tests/system/test_lowering.py` lowers every preset.
"""

import dataclasses

import jax
from jax import export

from azjax import training
from azjax.runs import presets
from azjax.runs.config import make_parts
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


def test_an_iteration_on_a_gpu_has_no_loop_of_unknown_length(monkeypatch):
    """Loops of known length are `scan` in the traced program; Gumbel noise needs no loop."""
    small, mesh = presets.smoke(presets.get("default")), training.make_mesh(jax.devices()[:1])
    on_cpu, on_gpu = (make_parts(small, platform=platform) for platform in ("cpu", "cuda"))
    unresolved = on_gpu._replace(selfplay=dataclasses.replace(on_gpu.selfplay, engine=None))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for parts, has_loops in ((on_cpu, True), (on_gpu, False), (unresolved, False)):
        traced = training.make_iteration(parts, mesh).trace(training.abstract_state(parts, mesh))
        assert ("while[" in str(traced.jaxpr)) == has_loops
