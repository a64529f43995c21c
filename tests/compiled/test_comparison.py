"""All seeds of a setting in one program."""

import jax
import numpy as np
import pytest

from azjax import comparison


@pytest.mark.compiles(2)
def test_each_seed_starts_from_its_key(monkeypatch):
    monkeypatch.setattr(comparison, "init", lambda parts, key: jax.random.key_data(key) + parts)
    monkeypatch.setattr(comparison, "iteration", lambda parts, state: (2 * state + parts, state))
    states, advance = comparison.compile_seeds(1, 3)
    expected = [np.asarray(jax.random.key_data(jax.random.key(seed))) + 1 for seed in range(3)]
    np.testing.assert_array_equal(states, expected)
    states, _ = advance(states)
    np.testing.assert_array_equal(states, 2 * np.array(expected) + 1)
