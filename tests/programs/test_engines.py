"""Training with the engine `mctx`: the same run bit for bit, and a perfect player."""

import json

import jax
import numpy as np
import pytest

import azjax
from azjax import runs
from azjax.cli import train
from azjax.proof import certificate
from azjax.runs.storage import read_summary
from trained import network_alone

pytestmark = pytest.mark.slow  # `test_bridge.py` compares the engines search by search.


def train_by(engine, run_dir, *arguments):
    """Trains in a new folder; returns the exit status."""
    options = ["--search.engine", engine, "--no-report", "--run-dir", str(run_dir)]
    return train.main([*arguments, *options])


def test_both_engines_train_the_same_network_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(certificate, "search_policy", network_alone)
    found = []
    for engine in ("azjax", "mctx"):
        assert train_by(engine, tmp_path / engine, "--smoke") == 0
        assert runs.read_config(tmp_path / engine).search.engine == engine
        found.append(azjax.load(tmp_path / engine))
    ours, theirs = found
    assert ours.iteration == theirs.iteration == 3
    jax.tree.map(np.testing.assert_array_equal, ours.params, theirs.params)
    folders = [tmp_path / engine / "checkpoints" / "3" for engine in ("azjax", "mctx")]
    ours, theirs = (read_summary(folder).files for folder in folders)
    assert ours == theirs  # The whole state, including the buffer.
    assert ours.keys() == {"player/arrays.npz", "state/arrays.npz"}


def test_training_with_mctx_becomes_perfect(tmp_path):
    assert train_by("mctx", tmp_path / "run", "--max-iterations", "60") == 0
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert certificate["blunders"] == 0
    assert all(search["blunders"] == 0 for search in certificate["searches"])
