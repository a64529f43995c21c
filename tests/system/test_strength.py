"""Training is bit for bit the same with matches."""

import jax
import numpy as np

import azjax as az
from azjax.runs import presets

TINY = presets.smoke(presets.get("default"))


def test_training_is_bit_for_bit_the_same_with_matches(tmp_path):
    few = {"max_iterations": 2, "until": "never", "report": False, "display": False}
    plain = az.train(TINY, tmp_path / "plain", **few)
    run = az.train(TINY, tmp_path / "run", strength_every=1, strength_games=4, **few)
    for find in (lambda loop: loop.average, lambda loop: loop.state.learner.variables):
        jax.tree.map(np.testing.assert_array_equal, find(run.loop), find(plain.loop))
    for ours, theirs in zip(run.metrics, plain.metrics, strict=True):
        assert ours["loss"] == theirs["loss"] and "elo_uct" not in theirs
        assert ours["elo_uct_low"] <= ours["elo_uct"] <= ours["elo_uct_high"]
        assert ours["elo_uct_low"] < ours["elo_uct_high"]
