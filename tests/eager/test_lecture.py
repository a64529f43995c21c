"""The lecture's experiments: their arithmetic and their page."""

import itertools
import math
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest

from azjax.players.statistics import Interval
from experiments.lecture import exploration, learning, matches
from experiments.lecture.cast import classic, learner
from experiments.lecture.matches import count_p_value


def shown(show, results):
    """Returns the elements that an experiment adds to the page, below one root."""
    root = ElementTree.Element("div")
    root.extend(show(results))
    return root


def text(element):
    return " ".join(" ".join(element.itertext()).split())


def column(root, title):
    """Returns the cells below a title, in every table that has it."""
    cells = []
    for table in root.iter("table"):
        titles = [text(cell) for cell in table.iter("th")]
        if title in titles:
            rows = table.findall("tbody/tr")
            cells += [text(row[titles.index(title)]) for row in rows]
    return cells


def test_a_curve_is_u_shaped_only_if_both_ends_are_significantly_higher():
    for estimates, verdict in [
        ((0.5, 0.2, 0.5), "yes: both ends lose"),
        ((0.5, 0.2, 0.25), "no: only too little exploration loses"),
        ((0.25, 0.2, 0.5), "no: only too much exploration loses"),
        ((0.25, 0.2, 0.25), "no: neither end loses"),
        ((0.2, 0.5, 0.6), "no: only too much exploration loses"),
    ]:
        lost = [Interval(x, x - 0.1, x + 0.1) for x in estimates]
        constant, interval, answer = exploration._find_u([0, 1, 10], lost).values()
        assert answer == f"{verdict} significantly more"
        assert constant == f"{(0, 1, 10)[int(np.argmin(estimates))]:.2f}"
        assert interval.startswith("0.200 [")


def test_flat_curves_are_not_called_u_shaped():
    flat = {"random": [90, 0, 10], "minimax": [0, 50, 50]}
    rows = [{"simulations": 10, "constant": c} | flat for c in (0.0, 1.0, 10.0)]
    page = shown(exploration.show_constant, {"rows": rows, "games": 100})
    assert column(page, "U-shaped?") == ["no: neither end loses significantly more"] * 2
    for row in (rows[0], rows[2]):
        row["random"] = [50, 0, 50]
    page = shown(exploration.show_constant, {"rows": rows, "games": 100})
    assert [answer[:4] for answer in column(page, "U-shaped?")] == ["yes:", "no: "]
    assert column(page, "points lost with it")[0].startswith("0.100 [")


def test_a_missing_verdict_has_a_reason():
    row = {"first": "a", "second": "b", "lecture": None, "counts": [1, 2, 3]}
    page = shown(matches.show_matches, [row | {"p-value": None}])
    assert column(page, "compatible") == ["– no count to compare with"]
    series = learning.SERIES[1]._replace(lecture=(375, 0, 0))
    for learners, verdict in ((4, "– a range needs 100 learners, not 4"), (100, "yes")):
        outcomes = np.ones((375, learners), np.int8)
        page = shown(learning.show, [learning._summarize(series, "last", outcomes)])
        assert column(page, "compatible") == [verdict]


def test_a_series_is_summarized_game_by_game():
    outcomes = np.array([[1, -1], [0, -1], [1, 1]], np.int8)  # Three games of two learners.
    series = learning.Series(10, "minimax", 3, (1, 1, 1))
    summary = learning._summarize(series, "last", outcomes)
    assert summary["mean counts"] == [1.5, 0.5, 1.0]
    np.testing.assert_allclose(summary["per game"], [0, -0.5, 1])
    np.testing.assert_allclose(summary["running"], [0, -0.25, (2 / 3 - 1 / 3) / 2])
    behind_then_ahead = np.where(np.arange(200) < 60, -0.5, 0.5)
    assert 64 <= learning._crossing(behind_then_ahead) <= 66
    assert learning._crossing(np.full(100, 0.2)) == 1
    assert learning._crossing(np.full(100, -0.2)) is None


def test_the_worked_example_of_ucb1_and_shared_programs():
    assert (
        column(shown(exploration.show_bound, exploration.compute_bound(None)), "equal")
        == ["yes"] * 5
    )
    assert classic(10).act is classic(500, 0.1).act
    assert learner(10).learn is learner(10).learn


# The p-value of a count.


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
    assert count_p_value((80, 10, 10), (4000, 3000, 3000)) < 1e-12
    assert count_p_value((40, 30, 30), (400_000, 300_000, 300_000)) > 0.99
    # Half a loss and half a draw in 100,000 games are expected: two triples of 1 in 2,000 each.
    assert count_p_value((99, 0, 1), (100_000, 0, 0)) == pytest.approx(1e-3, rel=0.01)


def test_the_numbers_of_all_games_are_compared_with_the_lectures():
    corner, edge, center = (14_652, 5_184, 7_896), (14_232, 5_184, 10_176), (15_648, 4_608, 5_616)
    moves = [corner, edge, corner, edge, center, edge, corner, edge, corner]
    results = {"all": [131_184, 46_080, 77_904], "by first move": [[*row] for row in moves]}
    page = shown(matches.show_all, results)
    assert ": the same." in text(page) and "NOT" not in text(page)
    assert column(page, "equal") == ["yes"] * 3
    results["by first move"][0][0] += 1
    assert column(shown(matches.show_all, results), "equal") == ["no", "yes", "yes"]
