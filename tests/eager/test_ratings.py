"""Intervals have their coverage, and ratings are the mode of the posterior."""

import math

import numpy as np
import pytest
from scipy import stats

from azjax.players.ratings import fit
from azjax.players.statistics import elo_difference, mean_proportion, mean_score, proportion
from refusals import assert_refused

ELO = 400 / math.log(10)


def test_proportion_is_the_formula_of_wilson():
    for count, total in [(0, 10), (3, 10), (10, 10), (999, 100_000)]:
        for confidence, z in [(0.95, 1.959964), (0.5, 0.6744898)]:
            rate, weight = count / total, z * z / total
            root = math.sqrt(weight * rate * (1 - rate) + weight**2 / 4)
            ends = [(rate + weight / 2 + sign * root) / (1 + weight) for sign in (-1, 1)]
            assert proportion(count, total, confidence) == pytest.approx([rate, *ends], abs=1e-7)


def test_the_squared_margins_of_a_mean_are_those_of_its_rates_summed():
    few, many = proportion(1, 10), proportion(11, 12)
    below, above = (
        math.hypot(*(rate.estimate - rate[end] for rate in (few, many))) / 2 for end in (1, 2)
    )
    mean = (few.estimate + many.estimate) / 2
    assert abs(below - above) > 0.01
    result = mean_proportion(np.array([1, 11]), np.array([10, 12]))
    assert result == pytest.approx([mean, mean - below, mean + above])


def test_mean_score_of_decided_games_is_the_interval_of_clopper_and_pearson():
    for wins, losses in [(0, 20), (1, 19), (7, 13), (20, 0), (400, 600)]:
        exact = stats.binomtest(wins, wins + losses).proportion_ci(method="exact")
        result = mean_score(wins, 0, losses)
        assert result == pytest.approx([wins / (wins + losses), *exact], abs=1e-9)


def test_mean_score_covers_every_mean_of_twenty_games():
    """The coverage is summed over all 231 triples of counts."""
    triples = [(w, d, 20 - w - d) for w in range(21) for d in range(21 - w)]
    intervals = np.array([mean_score(*triple) for triple in triples])
    assert intervals.min() == 0 and intervals.max() == 1
    assert (np.diff(intervals[:, [1, 0, 2]]) >= 0).all()
    grid = [0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 0.99]
    for win, draw in [(w, d) for w in grid for d in grid if w + d <= 1]:
        mean = win + draw / 2
        covers = (intervals[:, 1] <= mean + 1e-12) & (mean - 1e-12 <= intervals[:, 2])
        chance = stats.multinomial.pmf(triples, 20, [win, draw, max(1 - win - draw, 0)])
        assert (chance * covers).sum() > 0.95


def test_mean_score_is_symmetric():
    for wins, draws, losses in [(3, 5, 12), (0, 30, 1), (1, 0, 50)]:
        left, right = mean_score(wins, draws, losses, 0.8), mean_score(losses, draws, wins, 0.8)
        assert left == pytest.approx([1 - right[0], 1 - right[2], 1 - right[1]], abs=1e-9)
        wide = mean_score(wins, draws, losses, 0.99)
        assert wide.low < left.low < left.estimate < left.high < wide.high


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
    result = fit(names, *games, confidence=0.6826895)  # One standard deviation.
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
    np.testing.assert_allclose(result.high - result.ratings, deviations[:-2], rtol=1e-3)
    np.testing.assert_allclose(result.ratings - result.low, deviations[:-2], rtol=1e-3)
    advantage = result.first_move_advantage
    assert advantage.high - advantage.estimate == pytest.approx(deviations[-2], rel=1e-3)


def test_a_player_without_a_win_has_a_low_finite_rating():
    result = fit("abc", [0, 1, 2, 0], [1, 0, 0, 2], [[6, 0, 4], [5, 0, 5], [0, 0, 50], [50, 0, 0]])
    assert -2000 < result.ratings[2] < result.low[:2].min() - 300
    assert -3000 < result.low[2] < result.high[2] < 0
    assert result.ratings.mean() == pytest.approx(0, abs=1e-9)


def test_refusals():
    game, met = [[1, 0, 1]], [[1, 0, 1]] * 2 + [[0] * 3]
    assert_refused(
        (lambda: proportion(-1, 5), "count is -1 of 5: use"),
        (lambda: proportion(0, 0), "count is 0 of 0"),
        (lambda: proportion(0.5, 5), "count is 0.5 of 5"),
        (lambda: proportion(1, 5, 1.0), "confidence is 1.0: use a number between 0 and 1"),
        (lambda: mean_proportion([], []), "counts of ... totals: give as many"),
        (lambda: mean_proportion([1], [2, 3]), "counts of ... totals: give as many"),
        (lambda: mean_score(1, -2, 3), "(wins, draws, losses) is [1, -2, 3]: use three whole"),
        (lambda: mean_score(0, 0, 0), "is [0, 0, 0]: ... with a sum above 0"),
        (lambda: fit("ab", [0], [1, 0], game), "have shapes (1,), (2,), (1, 3): use [M]"),
        (lambda: fit("ab", [0.0], [1.0], game), "not natural"),
        (lambda: fit("ab", [0], [1], [[2, -1, 2]]), "not natural numbers"),
        (lambda: fit("aa", [0], [1], game), "use a different one for each"),
        (lambda: fit("ab", [0], [1], [[0, 0, 0]]), "counts sum to 0"),
        (lambda: fit("ab", [0], [2], game), "there is no player 2: use 0 to 1"),
        (lambda: fit("ab", [1], [1], game), "'b' plays against itself"),
        (lambda: fit("abc", [0], [1], game), "['a', 'b'] and ['c'] never met"),
        (lambda: fit("abcd", [0, 1, 0], [2, 3, 1], met), "['a', 'c'] and"),
        (lambda: fit("ab", [0], [1], game, confidence=95), "confidence is 95: use"),
    )


def test_the_difference_of_two_players():
    result = elo_difference(60, 0, 20)
    assert result.estimate == pytest.approx(400 * np.log10(3))
    assert 0 < result.low < result.estimate < result.high
    mirrored = elo_difference(20, 0, 60)
    np.testing.assert_allclose(mirrored, [-result.estimate, -result.high, -result.low], atol=1e-6)
    most = 400 * np.log10(2 * 64 - 1)
    won = elo_difference(64, 0, 0)
    assert won.estimate == won.high == pytest.approx(most) and 300 < won.low < most
