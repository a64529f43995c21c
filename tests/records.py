"""A record of an iteration, with every metric, for tests of what shows and keeps it."""

import dataclasses

from azjax.training.metrics import Record

LOSSES = {
    "loss": 2.0,
    "value_loss": 0.5,
    "policy_loss": 1.5,
    "policy_kl": 0.25,
    "l2": 0.0,
    "grad_norm": 1.0,
}
PROOF = {"blunders": 4321, "losing_lines_first": 87, "losing_lines_second": 553}
PROOF |= {"value_sign_errors": 99, "value_error": 0.5}
NO_PROOF = dict.fromkeys(PROOF)
ERRORS = {"error": 0.1234, "error/few": 0.2, "sign_error": 0.3}


def record(iteration, **changes):
    plain = Record(iteration, 1.5 * iteration, 100, 1234.5, LOSSES, **PROOF)
    return dataclasses.replace(plain, **changes)
