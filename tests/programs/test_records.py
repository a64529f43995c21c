"""What a run says of an iteration: every number in its place, and which checkpoint is better."""

import time

import jax.numpy as jnp
import pytest
from azjax.cli.records import make_record, score

from azjax.proof.verify import Verdict
from azjax.training.step import Metrics

NAMES = ("loss", "value_loss", "policy_loss", "policy_kl", "l2", "grad_norm", "another")
LOSSES = dict(sorted(zip(NAMES, jnp.arange(1.0, 8.0), strict=True)))  # As XLA returns them.
MEASURED = Metrics(LOSSES, games=jnp.float32(40), moves=jnp.float32(90))
VERDICT = Verdict(
    decision_states=jnp.int32(4520),
    blunders=jnp.int32(11),
    losing_lines=jnp.array([3, 5]),
    value_sign_errors=jnp.int32(7),
    value_error=jnp.float32(0.25),
    is_blunder=jnp.zeros(1),
    actions=jnp.zeros(1),
)


def test_every_number_has_its_place():
    now = time.time()
    errors = {"error": 0.25, "error/few": 0.5}
    record = make_record(9, MEASURED, VERDICT, errors, before=now - 2, started=now - 30)
    assert list(record.losses.items()) == list(zip(NAMES, range(1, 8), strict=True))
    assert (record.iteration, record.games) == (9, 40)
    assert 15 < record.games_per_second <= 20 and 30 <= record.seconds < 40
    assert (record.blunders, record.value_sign_errors, record.value_error) == (11, 7, 0.25)
    assert (record.losing_lines_first, record.losing_lines_second) == (3, 5)
    assert record.errors == errors and record.as_dict()["error/few"] == 0.5


@pytest.mark.parametrize("verdict", [VERDICT, None])
def test_a_better_checkpoint_has_fewer_blunders_then_less_loss(verdict):
    def scored(blunders, loss, always_examined=True):
        measured = MEASURED._replace(losses=LOSSES | {"loss": jnp.float32(loss)})
        found = verdict and verdict._replace(blunders=jnp.int32(blunders))
        record = make_record(1, measured, found, {}, time.time(), time.time())
        return score(record, always_examined)

    assert scored(0, 0.5) > scored(0, 0.6)
    assert (scored(0, 9.0) > scored(1, 0.1)) == (verdict is not None)
    assert scored(0, 9.0, False) < scored(1, 0.1, False)
