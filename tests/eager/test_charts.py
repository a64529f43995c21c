"""Charts: lines stay inside and rise with their numbers, and text is legible."""

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
