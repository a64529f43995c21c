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
