"""Intervals have their coverage, and ratings are the mode of the posterior."""

import math

import numpy as np
import pytest
from scipy import stats

from azjax.players.statistics import elo_difference, fit, mean_proportion, mean_score, proportion
from refusals import assert_refused

ELO = 400 / math.log(10)


def test_the_squared_margins_of_a_mean_are_those_of_its_rates_summed():
    few, many = proportion(1, 10), proportion(11, 12)
    below, above = (
        math.hypot(*(rate.estimate - rate[end] for rate in (few, many))) / 2 for end in (1, 2)
    )
    mean = (few.estimate + many.estimate) / 2
    assert abs(below - above) > 0.01
    result = mean_proportion(np.array([1, 11]), np.array([10, 12]))
    assert result == pytest.approx([mean, mean - below, mean + above])


def test_mean_score_is_symmetric():
    for wins, losses in ((7, 13), (19_990, 10)):
        exact = stats.binomtest(wins, wins + losses).proportion_ci()
        assert mean_score(wins, 0, losses)[1:] == pytest.approx([*exact], abs=1e-6)
    for wins, draws, losses in [(3, 5, 12), (0, 30, 1), (1, 0, 50)]:
        left, right = mean_score(wins, draws, losses), mean_score(losses, draws, wins)
        assert left == pytest.approx([1 - right[0], 1 - right[2], 1 - right[1]], abs=1e-9)
        assert left.low < left.estimate < left.high


def test_the_elo_difference_of_a_match_that_was_won_is_finite():
    won, lost = elo_difference(10, 0, 0), elo_difference(0, 0, 10)
    assert won.estimate == won.high == pytest.approx(400 * math.log10(19))
    assert lost == pytest.approx([-won.estimate, -won.high, -won.low])


def log_posterior(theta, first, second, counts):
    """The log posterior of the ratings, the advantage and log nu, in logits."""
    total = -sum(t * t for t in theta) / 2 / (1000 / ELO) ** 2
    for one, two, (wins, draws, losses) in zip(first, second, counts, strict=True):
        x = theta[one] - theta[two] + theta[-2]
        scale = math.log(math.exp(x / 2) + math.exp(theta[-1]) + math.exp(-x / 2))
        total += (wins - losses) * x / 2 + draws * theta[-1] - (wins + draws + losses) * scale
    return total


@pytest.mark.parametrize(
    ("names", "games"),
    [
        ("abc", ([0, 1, 2, 0], [1, 2, 0, 2], [[5, 1, 2], [3, 0, 4], [2, 6, 1], [1, 1, 0]])),
        ("ab", ([0], [1], [[1, 0, 0]])),
    ],
)
def test_the_fit_is_the_mode_and_its_curvature(names, games):
    size = len(names)
    result = fit(names, *games)
    mode = np.array([*result.ratings, result.first_move_advantage.estimate]) / ELO
    mode = np.append(mode, math.log(result.draw_parameter))
    steps = 1e-3 * np.eye(size + 2)

    def value(step):
        return log_posterior(mode + step, *games)

    slope = [(value(s) - value(-s)) / 2e-3 for s in steps]
    np.testing.assert_allclose(slope, 0, atol=1e-6)
    hessian = [
        [(value(s + t) - value(s - t) - value(t - s) + value(-s - t)) / 4e-6 for t in steps]
        for s in steps
    ]
    contrasts = np.eye(size + 2) - np.pad(np.full((size, size), 1 / size), (0, 2))
    deviations = ELO * np.sqrt(np.diag(contrasts @ np.linalg.inv(-np.array(hessian)) @ contrasts))
    deviations *= 1.959964
    np.testing.assert_allclose(result.high - result.ratings, deviations[:-2], rtol=1e-3)
    np.testing.assert_allclose(result.ratings - result.low, deviations[:-2], rtol=1e-3)
    advantage = result.first_move_advantage
    assert advantage.high - advantage.estimate == pytest.approx(deviations[-2], rel=1e-3)


def test_refusals():
    assert_refused(
        (lambda: proportion(-1, 5), "count is -1 of 5: use"),
        (lambda: mean_score(1, -2, 3), "(wins, draws, losses) is [1, -2, 3]: use three whole"),
    )
