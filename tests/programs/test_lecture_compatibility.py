"""The p-value of a count, checked against an enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from experiments.lecture.compatibility import count_p_value
from refusals import assert_refused


def urn_probability(triple, reference):
    """Computes the Dirichlet-multinomial probability with Polya's urn, game by game."""
    urn = [2 * count + 1 for count in reference]
    ways = math.factorial(sum(triple)) // math.prod(map(math.factorial, triple))
    probability = Fraction(ways)
    for kind, count in enumerate(triple):
        for _ in range(count):
            probability *= Fraction(urn[kind], sum(urn))
            urn[kind] += 2
    return probability


def test_count_p_value_is_the_enumeration():
    for observed, reference in [
        ((2, 1, 0), (3, 2, 1)),
        ((1, 3, 1), (5,) * 3),
        ((0, 0, 6), (9, 1, 0)),
    ]:
        values = range(sum(observed) + 1)
        triples = [t for t in itertools.product(values, repeat=3) if sum(t) == sum(observed)]
        chances = [urn_probability(triple, reference) for triple in triples]
        assert sum(chances) == 1
        likely = urn_probability(observed, reference)
        exact = sum(chance for chance in chances if chance <= likely)
        assert count_p_value(observed, reference) == pytest.approx(float(exact), rel=1e-9)


def test_count_p_value_is_uniform_under_equal_rates():
    random = np.random.default_rng(1)
    pairs = [random.multinomial([60, 2000], (0.3, 0.69, 0.01)) for _ in range(500)]
    p_values = np.array([count_p_value(*pair) for pair in pairs])
    assert 0.02 < np.mean(p_values < 0.05) < 0.065
    assert 0.42 < np.mean(p_values < 0.5) < 0.55


def test_count_p_value_detects_differences():
    assert count_p_value((80, 10, 10), (4000, 3000, 3000)) < 1e-12
    assert count_p_value((40, 30, 30), (400_000, 300_000, 300_000)) > 0.99
    assert count_p_value((250, 75, 50), (70_000, 20_000, 10_000)) < 0.1
    # Half a loss and half a draw in 100,000 games are expected: two triples of 1 in 2,000 each.
    assert count_p_value((99, 0, 1), (100_000, 0, 0)) == pytest.approx(1e-3, rel=0.01)


def test_rejects_invalid_counts():
    rows = [
        (lambda: count_p_value((1, 2), (1, 2, 3)), "observed is [1, 2]: use three"),
        (lambda: count_p_value((1, 2, 3), (0.5, 2, 3)), "reference is [0.5, 2.0, 3.0]: use"),
    ]
    assert_refused(*rows)
