"""Charts: lines, intervals, ticks and names, to scale."""

import re

import numpy as np
import pytest

from azjax.players.statistics import Interval
from azjax.viz.chart import interval_chart, line_chart, side_by_side


def paths(chart):
    return [e.get("d") for e in chart.iter("path")]


def places_of(chart):
    """Returns `{text: x}` of a chart."""
    return {"".join(e.itertext()).strip(): float(e.get("x")) for e in chart.iter("text")}


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
            assert all(39 <= y <= 205 for y in heights(d))


def test_each_chart_scrolls_if_it_would_be_too_small_to_read():
    one = line_chart("Any", [1, 2], {"y": [1, 2], "z": [0, 1]})
    grid = side_by_side([one, one])
    assert [(box.get("class"), box.get("tabindex")) for box in grid] == [("az-scroll", "0")] * 2
    least = int(re.findall(r"min-width: (\d+)px", one.get("style", ""))[0])
    smallest = min(float(e.get("font-size", 0)) for e in one.iter("text"))
    assert smallest * least / float(one.get("width", 0)) >= 9


def test_a_chart_of_intervals_is_to_scale():
    intervals = {"a & b": Interval(10.0, -20.0, 50.0), "c": Interval(-95.5, -100.0, -91.0)}
    chart = interval_chart("Elo", intervals)
    at = places_of(chart)
    assert {"a & b", "c", "-100", "-50", "0", "50"} <= at.keys()
    lines = [e for e in chart.iter("line") if e.get("y1") == e.get("y2")]
    places = np.array([
        [float(line.get("x1")), float(dot.get("cx")), float(line.get("x2"))]
        for line, dot in zip(lines, chart.iter("circle"), strict=True)
    ])  # fmt: skip
    values = (places - at["0"]) / (at["50"] - at["0"]) * 50
    np.testing.assert_allclose(values, [[-20, 10, 50], [-100, -95.5, -91]], atol=0.1)
    titles = [e.text for e in chart.iter("title")]
    assert titles == ["a & b: 10 [-20, 50]", "c: -95.5 [-100, -91]"]
