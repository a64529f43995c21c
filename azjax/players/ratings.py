"""Elo ratings of a tournament, from counts of games; runs on the host, in float64."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse, special

from azjax.players.statistics import ELO_PER_LOGIT, Interval, check_confidence

# Standard deviation of the prior. With it, 100 wins in 100 games are 1282 Elo. 60 wins in 100 games
# are 70 Elo, as without a prior.
PRIOR_ELO = 1000.0


class Ratings(NamedTuple):
    """The result of `fit`, in Elo."""

    names: tuple[str, ...]  # Of the `P` players.
    ratings: np.ndarray  # `float64 [P]`, relative to the average of the players.
    low: np.ndarray  # `float64 [P]`, the ends of the intervals of `ratings`.
    high: np.ndarray
    first_move_advantage: Interval  # The Elo that moving first adds to a rating.
    draw_parameter: float  # nu of Davidson (1970); equal players draw `nu / (2 + nu)` of games.


def fit(
    names: Sequence[str], first: Any, second: Any, counts: Any, confidence: float = 0.95
) -> Ratings:
    """Fits the ratings of a tournament: Bradley-Terry with draws and the advantage of moving first.

    The model is that of Davidson (1970): win : draw : loss = exp(x / 2) : nu : exp(-x / 2), where
    `x` is the difference of the ratings plus the first mover's advantage, in logits. The fit is the
    mode under independent Gaussian priors of mean 0 and standard deviation `PRIOR_ELO` on each
    rating, the advantage and log nu (in the same unit). The priors keep the ratings of players
    without a win finite. The intervals are Laplace approximations, from the inverse Hessian.

    Args:
      names: the names of the `P` players.
      first: `int [M]`, the players who moved first, as indices of `names`.
      second: `int [M]`, those who moved second.
      counts: `int [M, 3]`, games that the first mover won, drew and lost.
      confidence: the confidence level of the intervals.
    """
    names = tuple(names)
    check_confidence(confidence)
    first, second, counts = _check_games(names, first, second, counts)
    eye = np.eye(len(names) + 2)  # The parameters are the ratings, the advantage and log nu.
    win = (eye[first] - eye[second] + eye[-2]) / 2
    design = np.stack([win, np.broadcast_to(eye[-1], win.shape), -win], axis=1)
    mode, covariance = _posterior(design, counts)
    relative = np.eye(len(mode))
    relative[:-2, :-2] -= 1 / len(names)  # Subtracts the average from every rating.
    center = ELO_PER_LOGIT * relative @ mode
    errors = ELO_PER_LOGIT * np.sqrt(np.diag(relative @ covariance @ relative.T))
    reach = special.ndtri((1 + confidence) / 2) * errors
    low, high = center - reach, center + reach
    advantage = Interval(float(center[-2]), float(low[-2]), float(high[-2]))
    return Ratings(names, center[:-2], low[:-2], high[:-2], advantage, math.exp(mode[-1]))


def _posterior(design: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mode `[P + 2]` of the parameters, in logits, and the covariance there.

    `design [M, 3, P + 2]` are the derivatives of the logits of a win, a draw and a loss.
    """
    games, precision = counts.sum(axis=1, keepdims=True), (ELO_PER_LOGIT / PRIOR_ELO) ** 2

    def loss(theta: np.ndarray) -> float:
        log_rates = special.log_softmax(design @ theta, axis=1)
        return precision / 2 * theta @ theta - np.sum(counts * log_rates)

    def gradient(theta: np.ndarray) -> np.ndarray:
        surplus = counts - games * special.softmax(design @ theta, axis=1)
        return precision * theta - np.tensordot(surplus, design, axes=2)

    def hessian(theta: np.ndarray) -> np.ndarray:
        rates = special.softmax(design @ theta, axis=1)[..., None]
        centered = (design - np.sum(rates * design, axis=1, keepdims=True)).reshape(-1, len(theta))
        weights = (games[..., None] * rates).reshape(-1, 1)
        return precision * np.eye(len(theta)) + centered.T @ (weights * centered)

    start = np.zeros(design.shape[-1])
    mode = optimize.minimize(loss, start, jac=gradient, hess=hessian, method="trust-exact").x
    mode = mode - np.linalg.solve(hessian(mode), gradient(mode))  # Newton, for full precision.
    return mode, np.linalg.inv(hessian(mode))


def _check_games(names: tuple[str, ...], *games: Any) -> list[np.ndarray]:
    """Returns `first`, `second` and `counts` as arrays, after checking them."""
    first, second, counts = arrays = [np.asarray(array) for array in games]
    if first.ndim != 1 or second.shape != first.shape or counts.shape != (*first.shape, 3):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"first, second, counts have shapes {shapes}: use [M], [M] and [M, 3]")
    if any(array.dtype.kind not in "iu" for array in arrays) or counts.min(initial=0) < 0:
        raise ValueError("first, second or counts are not natural numbers: use integers, 0 or more")
    if len(set(names)) < len(names):
        raise ValueError(f"names are {names}: use a different one for each player")
    for player in first[np.equal(first, second)]:
        raise ValueError(f"{names[player]!r} plays against itself: use two different players")
    played = np.any(counts, axis=1)
    met = sparse.coo_array((played[played], (first[played], second[played])), [len(names)] * 2)
    number, labels = sparse.csgraph.connected_components(met, directed=False)
    groups = [[n for n, of in zip(names, labels, strict=True) if of == g] for g in range(number)]
    for group in groups[1:]:
        raise ValueError(f"{groups[0]} and {group} never met, even indirectly: fit each alone")
    return arrays
