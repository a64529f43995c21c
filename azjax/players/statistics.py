"""Rates, scores and Elo differences with confidence intervals, from counts of games.

All functions run on the host, in float64. Triples are wins, draws, losses.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, optimize, special, stats

ELO_PER_LOGIT = 400 / math.log(10)


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

    estimate: float
    low: float
    high: float


def proportion(count: int, total: int, confidence: float = 0.95) -> Interval:
    """Estimates a rate from `count` of `total`, with the score interval of Wilson (1927)."""
    if not (count % 1 == total % 1 == 0 <= count <= total > 0):
        raise ValueError(f"count is {count} of {total}: use whole numbers, total 1 or more")
    check_confidence(confidence)
    ends = stats.binomtest(int(count), int(total)).proportion_ci(confidence, method="wilson")
    return Interval(count / total, float(ends.low), float(ends.high))


def mean_proportion(
    counts: Sequence[int], totals: Sequence[int], confidence: float = 0.95
) -> Interval:
    """Estimates the mean of the rates of independent samples, such as classes of positions.

    The interval combines the intervals of the rates: the squares of their margins are added (Zou
    and Donner, 2008).
    """
    if not len(counts) == len(totals) > 0:
        raise ValueError(
            f"there are {len(counts)} counts of {len(totals)} totals: give as many counts as totals"
        )
    samples = zip(counts, totals, strict=True)
    rates = np.array([proportion(*sample, confidence) for sample in samples])
    estimate = rates[:, 0].mean()
    below, above = np.hypot.reduce(rates[:, :1] - rates[:, 1:]) / len(rates)
    return Interval(float(estimate), float(estimate - below), float(estimate + above))


def mean_score(wins: int, draws: int, losses: int, confidence: float = 0.95) -> Interval:
    """Estimates the expected score of a game: 1 for a win, 1/2 for a draw, 0 for a loss.

    The interval inverts a test: at each end, a total score at least as extreme as the observed one
    has probability `(1 - confidence) / 2`. Without draws, it is the interval of Clopper and Pearson
    (1934). The rate of draws is the most likely one given the mean (the estimated p-value of Lloyd
    2008). In a test with 20 games, the coverage of the 95% interval exceeds 95%. The normal
    approximation is used for more than 10,000 games if the second most frequent of win, draw and
    loss occurs at least 1,000 times.
    """
    counts = np.asarray((wins, draws, losses))
    if counts.dtype.kind not in "iu" or counts.min() < 0 or not counts.any():
        wanted = "three whole numbers, 0 or more, with a sum above 0"
        raise ValueError(f"(wins, draws, losses) is {counts.tolist()}: use {wanted}")
    check_confidence(confidence)
    tail, games, score = (1 - confidence) / 2, int(counts.sum()), int(counts @ [2, 1, 0])

    if games > 10_000 and np.sort(counts)[1] >= 1_000:
        mean, variance = score / (2 * games), np.cov([1, 0.5, 0], fweights=counts)
        width = float(stats.norm.isf(tail) * np.sqrt(variance / games))
        return Interval(mean, mean - width, mean + width)

    def excess(mean: float, scores: slice) -> float:
        return _score_distribution(_likely_rates(mean, counts), games)[scores].sum() - tail

    low: Any = optimize.brentq(excess, 0, 1, (slice(score, None),)) if score > 0 else 0
    high: Any = optimize.brentq(excess, 0, 1, (slice(score + 1),)) if score < 2 * games else 1
    estimate = score / (2 * games)
    return Interval(estimate, float(low), float(high))


def elo_difference(wins: int, draws: int, losses: int, confidence: float = 0.95) -> Interval:
    """Estimates the Elo difference of two players from one match: `400 log10(s / (1 - s))`.

    The score `s` and its interval are those of `mean_score`, clipped to [1 / (2 N), 1 - 1 / (2 N)]
    for `N` games. The result is therefore finite: at most `400 log10(2 N - 1)` in absolute value.
    """
    least = 0.5 / (wins + draws + losses or 1)
    scores = np.clip(mean_score(wins, draws, losses, confidence), least, 1 - least)
    return Interval(*(ELO_PER_LOGIT * special.logit(scores)).tolist())


def _likely_rates(mean: float, counts: np.ndarray) -> tuple[float, float, float]:
    """Returns the most likely rates of wins, draws and losses, given the mean score."""
    wins, draws, losses = counts.tolist()
    if draws == 0:
        return mean, 0.0, 1 - mean
    # Half the rate of draws is the smaller root of sum(counts) u^2 - slope u + constant.
    slope, constant = draws + wins * (1 - mean) + losses * mean, draws * mean * (1 - mean)
    root = math.sqrt(max(slope**2 - 4 * (wins + draws + losses) * constant, 0.0))
    half = 2 * constant / (slope + root)
    return mean - half, 2 * half, 1 - mean - half


def _score_distribution(rates: tuple[float, float, float], games: int) -> np.ndarray:
    """Returns the probabilities `[2 games + 1]` of the total score in halves of a point."""
    win, draw, loss = rates
    size: Any = fft.next_fast_len(2 * games + 1, real=True)
    z = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    probabilities: Any = fft.irfft((loss + draw * z + win * z**2) ** games, size)
    return probabilities[: 2 * games + 1]


def check_confidence(confidence: float) -> None:
    """Checks that a confidence is strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}: use a number between 0 and 1, such as 0.95")
