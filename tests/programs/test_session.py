"""How a training begins."""

import jax

from azjax.cli import options, session


def test_a_run_draws_from_the_seed_of_its_settings(monkeypatch):
    keys = []
    monkeypatch.setattr(
        session.training, "make_state", lambda parts, key, *others: keys.append(key)
    )
    for seed in ("7", "8"):
        parsed = options.parse(["--smoke", "--seed", seed])
        session._make_state(parsed, None, None)
    assert keys == [jax.random.key(7), jax.random.key(8)]
