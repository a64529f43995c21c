"""Simulated samples: intervals and ratings cover the true values, and are not wide."""

import functools
import itertools
import math

import numpy as np
import pytest

from azjax.players.ratings import fit
from azjax.players.statistics import mean_score

ELO = 400 / math.log(10)
PAIRS = np.array(list(itertools.permutations(range(5), 2)))
RATES = [(0.4, 0.3, 0.3), (0, 0.02, 0.98), (0.01, 0.01, 0.98), (1e-3, 0, 0.999), (0.1, 0.9, 0)]


def tournament(seed, elo, advantage, nu, games):
    """Counts `[20, 3]` of all ordered pairs of five players."""
    x = (elo[PAIRS[:, 0]] - elo[PAIRS[:, 1]] + advantage) / ELO
    weights = np.stack([np.exp(x / 2), np.full(len(x), nu), np.exp(-x / 2)], axis=1)
    rates = weights / weights.sum(axis=1, keepdims=True)
    return np.random.default_rng(seed).multinomial(games, rates)


@pytest.mark.parametrize("rates", RATES)
def test_mean_score_covers_and_is_not_wide(rates, games=100, samples=1000):
    interval = functools.lru_cache(mean_score)
    drawn = np.random.default_rng(0).multinomial(games, rates, samples).tolist()
    result = np.array([interval(*triple) for triple in drawn])
    mean = rates[0] + rates[1] / 2
    covered = np.mean((result[:, 1] <= mean) & (mean <= result[:, 2]))
    assert covered >= 0.93
    normal = 2 * 1.96 * math.sqrt((rates[0] + rates[1] / 4 - mean**2) / games)
    assert np.mean(result[:, 2] - result[:, 1]) < normal + 3 / games


def test_ratings_cover_the_true_values():
    seed = 0
    elo = np.random.default_rng(seed).normal(0, 200, 5)
    truth = np.append(elo - elo.mean(), 60.0)
    covered = []
    for number in range(200):
        counts = tournament([seed, number], elo, 60, 0.7, 20)
        result = fit("abcde", *PAIRS.T, counts)
        low = np.append(result.low, result.first_move_advantage.low)
        high = np.append(result.high, result.first_move_advantage.high)
        covered.append((low <= truth) & (truth <= high))
    share = np.mean(covered, axis=0)
    assert ((share >= 0.9) & (share <= 0.99)).all()
