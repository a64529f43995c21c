"""Evaluation of a player on labelled positions, for games too large to enumerate.

The labels are used only for evaluation; training never depends on them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import ILLEGAL, Policy, Positions, choose
from azjax.games.rows import in_batches
from azjax.players.statistics import Interval, mean_proportion, proportion
from azjax.proof.verify import has_wrong_sign

MEAN = "mean"  # The key of the mean over all classes that are not in `Positions.apart`.
_SLICE = 500  # Positions in one call of a policy.


class ErrorCounts(NamedTuple):
    """Numbers of positions of each class, all `int32 [K]`."""

    positions: jax.Array
    errors: jax.Array  # The action worsens the outcome.
    decisive: jax.Array  # Exactly one action keeps the outcome.
    decisive_errors: jax.Array
    decided: jax.Array  # Won or lost.
    sign_errors: jax.Array  # Decided, and the value is 0 or NaN, or has the wrong sign.


class Rates(NamedTuple):
    """Shares with 95% intervals by class name, and their means under the name `MEAN`.

    Each dictionary leaves out the classes that have no positions to count.
    """

    errors: dict[str, Interval]  # Among all positions.
    decisive_errors: dict[str, Interval]  # Among the decisive positions.
    sign_errors: dict[str, Interval]  # Among the decided positions.


def count_errors(positions: Positions, scores: Any, values: Any) -> ErrorCounts:
    """Counts the errors of a policy, `scores [S, A]` and `values [S]`, by class."""
    outcomes = jnp.asarray(positions.outcomes)
    actions = choose(scores, outcomes != ILLEGAL)
    chosen = jnp.take_along_axis(outcomes, actions[:, None], axis=1)[:, 0]
    best = jnp.max(outcomes, axis=1)
    is_error = chosen < best
    is_decisive = jnp.sum(outcomes == best[:, None], axis=1) == 1
    flags = (
        jnp.ones_like(is_error),
        is_error,
        is_decisive,
        is_decisive & is_error,
        best != 0,
        has_wrong_sign(values, best),
    )
    nothing = jnp.zeros(len(positions.classes), jnp.int32)
    return ErrorCounts(*(nothing.at[positions.class_of].add(flag) for flag in flags))


def rates(positions: Positions, counts: ErrorCounts) -> Rates:
    """Computes the shares on the host."""
    lists = [np.asarray(count).tolist() for count in counts]
    return Rates(*(_shares(positions, *lists[i : i + 2]) for i in (0, 2, 4)))


def _shares(positions: Positions, totals: list[int], counts: list[int]) -> dict[str, Interval]:
    rows = list(zip(positions.classes, counts, totals, strict=True))
    shares = {name: proportion(count, total) for name, count, total in rows if total}
    averaged = [row for row in rows if row[0] in shares and row[0] not in positions.apart]
    if averaged:
        _, counts, totals = map(list, zip(*averaged, strict=True))
        shares[MEAN] = mean_proportion(counts, totals)
    return shares


def random_errors(positions: Positions) -> dict[str, float]:
    """Returns the expected share of errors of uniformly random moves, by class, and `MEAN`."""
    outcomes = positions.outcomes
    keeps = (outcomes == outcomes.max(axis=1, keepdims=True)).sum(axis=1)
    errors = 1 - keeps / (outcomes != ILLEGAL).sum(axis=1)
    shares = {
        name: float(errors[positions.class_of == k].mean())
        for k, name in enumerate(positions.classes)
    }
    averaged = [share for name, share in shares.items() if name not in positions.apart]
    return shares | {MEAN: float(np.mean(averaged))}


def in_slices(
    policy: Policy, notify: Callable[[int], None] = lambda done: None, size: int = _SLICE
) -> Policy:
    """Returns a policy that calls a compiled one in batches of one size; see `rows.in_batches`."""
    return lambda states: in_batches(policy, (states,), size, notify)
