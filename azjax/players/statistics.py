"""Rates, scores and ratings with confidence intervals, from counts of games.

All functions run on the host, in float64; all intervals have 95%.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

ELO_PER_LOGIT = 400 / math.log(10)
_TAIL = (1 - 0.95) / 2  # The probability beyond each end of an interval.


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

    estimate: float
    low: float
    high: float


def proportion(count: float, total: int) -> Interval:
    """Estimates a rate from `count` of `total`, with the score interval of Wilson (1927)."""
    if not 0 <= count <= total > 0:
        raise ValueError(f"count is {count} of {total}: use a count up to the total")
    rate, z = count / total, special.ndtri(1 - _TAIL)
    center = rate + z**2 / (2 * total)
    margin = z * math.sqrt(rate * (1 - rate) / total + (z / (2 * total)) ** 2)
    low, high = ((center + sign * margin) / (1 + z**2 / total) for sign in (-1, 1))
    return Interval(rate, max(float(low), 0.0), min(float(high), 1.0))


def mean_proportion(counts: Sequence[int], totals: Sequence[int]) -> Interval:
    """Estimates the mean of the rates of independent samples, such as classes of positions.

    The interval combines the intervals of the rates: the squares of their margins are added (Zou
    and Donner, 2008).
    """
    rates = np.array([proportion(*sample) for sample in zip(counts, totals, strict=True)])
    estimate = rates[:, 0].mean()
    below, above = np.hypot.reduce(rates[:, :1] - rates[:, 1:]) / len(rates)
    return Interval(float(estimate), float(estimate - below), float(estimate + above))


def mean_score(wins: int, draws: int, losses: int) -> Interval:
    """Estimates the expected score of a game: 1 for a win, 1/2 for a draw, 0 for a loss.

    The interval is that of a rate. A draw varies less than a win and a loss, so the interval is
    wider than necessary if there are many.
    """
    return proportion(wins + draws / 2, wins + draws + losses)


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


def fit(names: Sequence[str], first: Any, second: Any, counts: Any) -> Ratings:
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
    """
    names = tuple(names)
    first, second, counts = map(np.asarray, (first, second, counts))
    eye = np.eye(len(names) + 2)  # The parameters are the ratings, the advantage and log nu.
    win = (eye[first] - eye[second] + eye[-2]) / 2
    design = np.stack([win, np.broadcast_to(eye[-1], win.shape), -win], axis=1)
    mode, covariance = _posterior(design, counts)
    relative = np.eye(len(mode))
    relative[:-2, :-2] -= 1 / len(names)  # Subtracts the average from every rating.
    center = ELO_PER_LOGIT * relative @ mode
    errors = ELO_PER_LOGIT * np.sqrt(np.diag(relative @ covariance @ relative.T))
    reach = special.ndtri(1 - _TAIL) * errors
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
