"""Errors of a policy on labelled positions, for games too large to enumerate.

Training never depends on the labels.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import ILLEGAL, Positions, choose
from azjax.players.statistics import Interval, mean_proportion, proportion
from azjax.proof.enumeration import has_wrong_sign

MEAN = "mean"  # The key of the mean over all classes that are not in `Positions.apart`.
BATCH = 500  # Labelled positions in one call of a policy.


class ErrorCounts(NamedTuple):
    """Numbers of positions of each class, all `int32 [K]`."""

    positions: jax.Array
    errors: jax.Array  # The action worsens the outcome.
    decided: jax.Array  # Won or lost.
    sign_errors: jax.Array  # Decided, and the value is 0 or NaN, or has the wrong sign.


class Rates(NamedTuple):
    """Shares with 95% intervals by class name, and their means under the name `MEAN`.

    Each dictionary leaves out the classes that have no positions to count.
    """

    errors: dict[str, Interval]  # Among all positions.
    sign_errors: dict[str, Interval]  # Among the decided positions.


def count_errors(positions: Positions, scores: Any, values: Any) -> ErrorCounts:
    """Counts the errors of a policy, `scores [S, A]` and `values [S]`, by class."""
    outcomes = jnp.asarray(positions.outcomes)
    actions = choose(scores, outcomes != ILLEGAL)
    chosen = jnp.take_along_axis(outcomes, actions[:, None], axis=1)[:, 0]
    best = jnp.max(outcomes, axis=1)
    is_any = jnp.ones(len(best), bool)
    flags = is_any, chosen < best, best != 0, has_wrong_sign(values, best)
    nothing = jnp.zeros(len(positions.classes), jnp.int32)
    return ErrorCounts(*(nothing.at[positions.class_of].add(flag) for flag in flags))


def rates(positions: Positions, counts: ErrorCounts) -> Rates:
    """Computes the shares on the host."""
    total, errors, decided, signs = (np.asarray(count).tolist() for count in counts)
    return Rates(_shares(positions, total, errors), _shares(positions, decided, signs))


def _shares(positions: Positions, totals: list[int], counts: list[int]) -> dict[str, Interval]:
    rows = list(zip(positions.classes, counts, totals, strict=True))
    shares = {name: proportion(count, total) for name, count, total in rows if total}
    averaged = [row for row in rows if row[0] in shares and row[0] not in positions.apart]
    if averaged:
        _, counts, totals = map(list, zip(*averaged, strict=True))
        shares[MEAN] = mean_proportion(counts, totals)
    return shares
