"""The parts of a report that compute nothing: curves, and the description of a run."""

import json
import re

import pytest

from azjax import games, runs
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from azjax.viz import report
from refusals import assert_refused

CONFIG = presets.smoke(presets.get("default"))


def charts(section):
    return {svg.get("aria-label"): svg for svg in section.element.iter("svg")}


def lines(chart):
    """Returns the numbers that a chart shows, by line."""
    shown = {}
    for group in chart.findall("g[@class='az-series']"):
        tips = [title.text.split(": ")[1] for title in group.iter("title")]
        shown[group.findtext("text")] = tips
    return shown


def test_curves_show_the_metrics_that_a_run_has(tic_tac_toe):
    names = ["loss", "policy_loss", "value_loss", "blunders", "losing_lines_first"]
    names += ["losing_lines_second", "value_error", "elo_uct", "elo_best", "games_per_second"]
    records = [
        {"iteration": i} | {name: i * 100 + n for n, name in enumerate(names)} for i in (1, 2)
    ]
    for record in records:
        record |= {"elo_uct_low": 0, "elo_uct_high": 900, "elo_best_low": 1, "elo_best_high": 901}
    records = [{"iteration": 0, "loss": 0}, *records, {"iteration": 3, "loss": 300}]
    (section,) = report._curves(records, tic_tac_toe)
    assert "A blunder is" in section.intro and "labelled" not in section.intro
    drawn = {title: lines(chart) for title, chart in charts(section).items()}
    assert drawn["Training loss"]["total"][0] == "300 mean over an iteration"
    assert [*drawn["Training loss"]] == ["total", "policy", "value"]
    at = dict(zip(names, range(100, 110), strict=True))
    expected = {
        "Training loss": {"policy": "policy_loss", "value": "value_loss"},
        "Errors of the network alone, all positions": {
            "blunders": "blunders",
            "losing lines as first": "losing_lines_first",
            "losing lines as second": "losing_lines_second",
        },
        "Mean absolute error of the value, all positions": {"network alone": "value_error"},
        "Strength: Elo differences, 95% intervals": {
            "against UCT": "elo_uct",
            "against the best older network": "elo_best",
        },
        "Self-play speed": {"games/s": "games_per_second"},
    }
    assert drawn.keys() == expected.keys()
    for title, names in expected.items():
        for label, name in names.items():
            assert drawn[title][label][-1].split()[0] == str(at[name]), label
    tips = [e.text for e in charts(section)["Self-play speed"].iter("title")]
    assert tips == ["games/s, iteration 2: 209 games/s", "games/s, iteration 1: 109 games/s"]
    for chart in charts(section).values():  # Nothing is out of sight on a phone.
        assert int(re.findall(r"min-width: (\d+)px", chart.get("style"))[0]) <= 390 - 2 * 16
    bands = [c.findall("path[@class='az-band']") for c in charts(section).values()]
    assert [len(found) for found in bands] == [0, 0, 0, 2, 0]
    assert report._curves([], tic_tac_toe) == []


def test_errors_in_labelled_positions_are_percentages():
    record = {"iteration": 1, "error": 0.25, "sign_error": 0.5}
    (section,) = report._curves([record], games.make("connect_four"))
    drawn = lines(charts(section)["Errors of the network alone"])
    assert drawn["wrong moves, mean"] == ["25 % of labelled positions"]
    assert drawn["wrong value signs"] == ["50 % of labelled positions"]


def certificate(**changed):
    numbers = ["decision_states", "blunders", "losing_lines_first", "losing_lines_second"]
    content = dict.fromkeys([*numbers, "value_sign_errors", "moves", "seconds"], 0)
    content |= {"game": "tic_tac_toe", "iterations": 2, "seed": 0, "device": "cpu"}
    content |= {"searches": [], "versions": {}, "perfect": False, "unbeatable": True}
    return content | changed


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
    given = path, "tic_tac_toe", CONFIG
    assert report._certificate(*given) == []
    for changed, text in [
        ({}, "Unbeatable: no losing line as first or second player"),
        ({"perfect": True}, "Perfect: every move keeps the outcome, in every reachable position"),
        ({"unbeatable": False}, "Not proved: this player can be beaten"),
        ({"iterations": 1}, unproved),
    ]:
        path.write_text(json.dumps(certificate(**changed)))
        assert facts(run)["proof"] == text
        (section,) = report._certificate(*given)
        assert text in (section.title, unproved)
    for content in (certificate(seed=1), certificate(game="nim"), {"game": "tic_tac_toe"}, []):
        path.write_text(json.dumps(content))
        assert_refused(
            (
                lambda: report._certificate(*given),
                f"{path} is damaged, or of another run: delete it, or make it again",
            )
        )
