"""Charts: lines stay inside and rise with their numbers, and text is legible."""

import itertools
import re

import pytest

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
            [d] = paths(line_chart("Any", xs, {"y": ys}, log=log))
            assert len(heights(d)) == points
            assert heights(d) == sorted(heights(d), reverse=True)  # Larger numbers are higher.
            assert all(39 <= y <= 205 for y in heights(d))


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
