"""The initial state of a training."""

import dataclasses

import jax

from azjax.programs import prepare
from azjax.runs.config import Config


def test_a_run_uses_the_seed_of_its_settings(monkeypatch):
    keys = []

    def note(parts, key, *others):
        keys.append(key)

    monkeypatch.setattr(prepare.training, "make_state", note)
    for seed in (7, 8):
        prepare._make_state(dataclasses.replace(Config(), seed=seed), None, None)
    assert keys == [jax.random.key(7), jax.random.key(8)]
