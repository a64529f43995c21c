"""The parts of a report that compute nothing: charts, and the description of a run."""

import itertools
import json
import re

import pytest

from azjax import games, runs
from azjax.comparison import Curves
from azjax.runs import Player, make_parts, presets
from azjax.viz import page, report
from azjax.viz.chart import _compare as compare_axis
from azjax.viz.chart import line_chart, side_by_side
from refusals import assert_refused

CONFIG = presets.smoke(presets.get("default"))


def charts(section):
    return {svg.get("aria-label"): svg for svg in section.element.iter("svg")}


def tips(chart):
    """Returns the numbers of each line, `{name: ["x: y", ...]}`."""
    lines = {}
    for group in chart.findall("g[@class='az-series']"):
        name = group.findtext("text")
        texts = [title.text.removeprefix(f"{name}, ") for title in group.iter("title")]
        lines[name] = sorted(texts)
    return lines


def test_curves_show_the_metrics_that_a_run_has(tic_tac_toe):
    """And start at the first iteration that has them."""
    names = ["policy_loss", "value_loss", "blunders", "losing_lines_first", "losing_lines_second"]
    names += ["value_error", "games_per_second"]
    later = {"iteration": 1, "loss": 1} | {name: 100 + n for n, name in enumerate(names)}
    (section,) = report._curves([{"iteration": 0, "loss": 9}, later], tic_tac_toe)
    assert "A blunder is" in section.intro and "labelled" not in section.intro
    drawn = {title: tips(chart) for title, chart in charts(section).items()}
    shown = {title: {x: y[0].split()[1:3] for x, y in one.items()} for title, one in drawn.items()}
    assert shown == {
        "Training loss": {"total": ["0:", "9"], "policy": ["1:", "100"], "value": ["1:", "101"]},
        "Errors of the network alone, all positions": {
            "blunders": ["1:", "102"],
            "losing lines as first": ["1:", "103"],
            "losing lines as second": ["1:", "104"],
        },
        "Mean absolute error of the value, all positions": {"network alone": ["1:", "105"]},
        "Self-play speed": {"games/s": ["1:", "106"]},
    }
    assert drawn["Self-play speed"] == {"games/s": ["iteration 1: 106 games/s"]}
    assert report._curves([], tic_tac_toe) == []


def test_errors_in_labelled_positions_are_percentages():
    record = {"iteration": 1, "error": 0.25, "sign_error": 0.5}
    (section,) = report._curves([record], games.make("connect_four"))
    drawn = tips(charts(section)["Errors of the network alone"])
    assert drawn["wrong moves, mean"] == ["iteration 1: 25 % of labelled positions"]
    assert drawn["wrong value signs"] == ["iteration 1: 50 % of labelled positions"]


NUMBERS = ["decision_states", "blunders", "losing_lines_first", "losing_lines_second"]
CERTIFICATE = dict.fromkeys([*NUMBERS, "value_sign_errors", "moves", "seconds"], 0)
CERTIFICATE |= {"game": "tic_tac_toe", "iterations": 2, "seed": 0, "device": "cpu"}
CERTIFICATE |= {"searches": [], "versions": {}, "perfect": False, "unbeatable": True}


@pytest.fixture
def run(tmp_path):
    """The directory of a run and its player, without a checkpoint."""
    runs.create_run(tmp_path / "run", CONFIG)
    return tmp_path / "run", Player(make_parts(CONFIG), None, iteration=2)


def facts(run):
    rows = report.about(*run[::-1]).element.iter("tr")
    return {row.findtext("th"): row.findtext("td") for row in rows}


def test_a_page_describes_its_run(run):
    lines = [{"iteration": i, "seconds": 1.0, "games": 500} for i in (1, 2, 3)]
    (run[0] / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = facts(run)
    assert int(found.pop("parameters of the network").replace(",", "")) > 0
    assert found == {
        "game": "tic-tac-toe",
        "iterations": "2",
        "search": f"Gumbel with {CONFIG.search.num_simulations} simulations",
        "encoding of its input": "relative",
        "games of self-play": "1,000",  # Not those after the checkpoint.
        "proof": "Nothing was proved about this player",
        "run directory": "run",
    }


def test_pages_give_the_verdict_of_the_run_s_certificate(run):
    path, unproved = run[0] / "certificate.json", "Nothing was proved about this iteration"
    assert report._certificate(path) == []
    for changed, text in [
        ({}, "Unbeatable: no losing line as first or second player"),
        ({"perfect": True}, "Perfect: every move keeps the outcome, in every reachable position"),
        ({"unbeatable": False}, "Not proved: this player can be beaten"),
        ({"iterations": 1}, unproved),
    ]:
        path.write_text(json.dumps(CERTIFICATE | changed))
        assert facts(run)["proof"] == text
        (section,) = report._certificate(path)
        assert text in (section.title, unproved)
    said = f"{path} is damaged: delete it, or verify the run again"
    for content in ({"game": "tic_tac_toe"}, []):
        path.write_text(json.dumps(content))
        assert_refused((lambda: report._certificate(path), said))


# Charts: lines stay inside and rise with their numbers, and text is legible.


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
    least = int(re.findall(r"\.az-chart {.*min-width: (\d+)px", page.style())[0])
    assert least <= 390 - 2 * 16  # Nothing is out of sight on a phone.
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


def test_the_last_point_of_a_long_line_has_a_tooltip():
    texts = tips(line_chart("Any", range(200), {"y": range(200)}))["y"]
    assert "iteration 199: 199" in texts and len(texts) <= 60


def test_curves_of_a_comparison_are_medians_and_end_at_their_last_points():
    errors = [[0.4, 0.1, 0.2], [0.1, 0.0, 0.02]]  # Of two iterations and three seeds.
    make = lambda name, steps: Curves(name, {}, "cpu", steps, steps, steps, steps, errors)  # noqa: E731
    curves = [make("short", [10, 20]), make("long", [15, 40])]
    drawn = compare_axis("evaluations", curves)
    at = lambda xs: [f"evaluations {x}: {y} %" for x, y in xs]  # noqa: E731
    expected = {
        "short": at([(10, 20), (15, 11), (20, 2)]),
        "long": at([(15, 20), (20, 16.4), (40, 2)]),
    }
    assert tips(drawn) == expected
    bands = [e for e in drawn.iter("path") if e.get("class") == "az-band"]
    lines = [group.find("path") for group in drawn.findall("g[@class='az-series']")]
    for band, line in zip(bands, lines, strict=True):
        assert band.get("style").partition(" ")[2] == line.get("style").partition(" ")[2]
        low, *_, high = heights(band.get("d"))
        assert high < heights(line.get("d"))[0] < low
