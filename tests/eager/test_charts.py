"""Charts: lines stay inside and rise with their numbers, and text is legible."""

import itertools
import re

import pytest

from azjax.comparison import Curves, Effect
from azjax.viz import comparison
from azjax.viz.chart import line_chart, side_by_side


def paths(chart):
    return [e.get("d") for e in chart.iter("path")]


def heights(d):
    return [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", d)]


@pytest.mark.parametrize("log", [False, True])
def test_charts_of_any_numbers_stay_inside(log):
    for xs, ys, points in [
        ([1], [5.0], 1),
        ([1, 2], [0, 0], 2),
        ([1, 2], [7, 7], 2),
        ([1, 2, 3], [None, 2, float("nan")], 1),
        ([1, 2], [-2.5, 3.5], 2),
        ([10, 5000], [1e6, 3e6], 2),
        ([1, 2], [1e-7, 2e-7], 2),
    ]:
        if not log or ys[0] != -2.5:
            chart = line_chart("Any", xs, {"y": ys}, log=log)
            [d] = paths(chart)
            assert [e.get("r") for e in chart.iter("circle")].count("3") == (points == 1)  # A dot.
            assert len(heights(d)) == points
            assert heights(d) == sorted(heights(d), reverse=True)  # Larger numbers are higher.
            assert all(39 <= y <= 205 for y in heights(d))


def test_a_logarithmic_scale_gives_each_power_of_ten_the_same_room():
    [d] = paths(line_chart("Any", [1, 2, 3], {"y": [99, 999, 9999]}, log=True))
    low, middle, high = heights(d)
    assert low - middle == pytest.approx(middle - high, abs=0.2)


def test_each_chart_scrolls_if_it_would_be_too_small_to_read():
    one = line_chart("Any", [1, 2], {"y": [1, 2], "z": [0, 1]})
    grid = side_by_side([one, one])
    assert [(box.get("class"), box.get("tabindex")) for box in grid] == [("az-scroll", "0")] * 2
    least = int(re.findall(r"min-width: (\d+)px", one.get("style", ""))[0])
    smallest = min(float(e.get("font-size", 0)) for e in one.iter("text"))
    assert smallest * least / float(one.get("width", 0)) >= 9


def test_long_names_and_many_lines_have_room():
    names = [f"search.algorithm=gumbel targets.outcome_weight={i}" for i in range(20)]
    chart = line_chart("Any", [1, 2], {name: [0, i % 2] for i, name in enumerate(names)})
    labels = [e for e in chart.iter("text") if e.text in names]
    ys = sorted(float(e.get("y")) for e in labels)
    assert len(ys) == 20 and ys[0] >= 40 and ys[-1] < float(chart.get("height"))
    assert min(b - a for a, b in itertools.pairwise(ys)) >= 14.9
    right = max(float(e.get("x")) + 6 * len(e.text) for e in labels)
    assert right <= float(chart.get("width"))


def tips(chart):
    """Returns the numbers of each line, `{name: ["x: y", ...]}`."""
    lines = {}
    for group in chart.findall("g[@class='az-series']"):
        texts = [title.text.split(", ", 1)[1] for title in group.iter("title")]
        lines[group.findtext("text")] = sorted(texts)
    return lines


def test_the_last_point_of_a_long_line_has_a_tooltip():
    texts = tips(line_chart("Any", range(200), {"y": range(200)}))["y"]
    assert "iteration 199: 199" in texts and len(texts) <= 60


def test_curves_of_a_comparison_are_medians_and_end_at_their_last_points():
    errors = [[0.4, 0.1, 0.2], [0.1, 0.0, 0.02]]  # Of two iterations and three seeds.
    make = lambda name, steps: Curves(name, {}, "cpu", steps, steps, steps, steps, errors)  # noqa: E731
    curves = [make("short", [10, 20]), make("long", [15, 40])]
    chart = comparison._chart("evaluations", curves)
    at = lambda xs: [f"evaluations {x}: {y} %" for x, y in xs]  # noqa: E731
    expected = {
        "short": at([(10, 20), (15, 11), (20, 2)]),
        "long": at([(15, 20), (20, 16.4), (40, 2)]),
    }
    assert tips(chart) == expected
    bands = [e for e in chart.iter("path") if e.get("class") == "az-band"]
    lines = [group.find("path") for group in chart.findall("g[@class='az-series']")]
    for band, line in zip(bands, lines, strict=True):
        assert band.get("style").partition(" ")[2] == line.get("style").partition(" ")[2]
        low, high, middle = (
            heights(band.get("d"))[0],
            heights(band.get("d"))[-1],
            heights(line.get("d"))[0],
        )
        assert high < middle < low
    table = comparison._table(curves, [Effect("evaluations", (0.5, 0.25, 0.75), 0.01)])
    assert [e.text for e in table.iter("td")] == ["0.50", "0.25 to 0.75", "0.010"]
    assert [e.text for e in table.find("table").find("tbody").iter("th")] == ["long"]
