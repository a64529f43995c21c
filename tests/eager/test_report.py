"""The parts of a report that compute nothing: curves, the certificate and games."""

import json

import numpy as np

from azjax.runs import presets
from azjax.viz import report
from azjax.viz.games import Move, finish_game
from refusals import assert_refused

CONFIG = presets.smoke(presets.get("default"))
WIN_OF_X = [0, 3, 1, 4, 2]
WIN_OF_O = [0, 3, 1, 4, 8, 5]
DRAW = [0, 1, 2, 4, 3, 5, 7, 6, 8]


def replay(game, actions):
    """Plays a game by hand; returns its moves with outcomes computed from the rewards."""
    state, moves = game.init(), []
    for action in actions:
        after, reward = game.step(state, action)
        move = Move(state, action, np.full(9, 1 / 9, np.float32), 0.25, int(reward))
        moves.append((int(game.player(state)), move))
        state = after
    assert bool(game.is_over(state))
    return finish_game(moves)


def test_outcomes_are_for_the_player_who_moves(tic_tac_toe):
    for actions, outcomes in [
        (WIN_OF_X, [1, -1, 1, -1, 1]),
        (WIN_OF_O, [-1, 1, -1, 1, -1, 1]),
        (DRAW, [0] * 9),
    ]:
        assert [move.outcome for move in replay(tic_tac_toe, actions)] == outcomes
    moves = [(0, 0), (0, 0), (1, 0), (0, -1)]  # Who moves, and the reward.
    games = finish_game([(player, Move(None, 0, np.ones(1), 0.0, r)) for player, r in moves])
    assert [move.outcome for move in games] == [-1, -1, 1, -1]


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
    records.append({"iteration": 3, "loss": 300})  # Not verified.
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
    bands = [c.findall("path[@class='az-band']") for c in charts(section).values()]
    assert [len(found) for found in bands] == [0, 0, 0, 2, 0]
    assert report._curves([], tic_tac_toe) == []


def certificate(**changed):
    numbers = ["decision_states", "blunders", "losing_lines_first", "losing_lines_second"]
    content = dict.fromkeys([*numbers, "value_sign_errors", "moves", "seconds"], 0)
    content |= {"game": "tic_tac_toe", "iterations": 2, "seed": 0, "device": "cpu"}
    content |= {"searches": [], "versions": {}, "perfect": False, "unbeatable": True}
    return content | changed


def test_the_certificate_of_another_run_is_refused(tmp_path):
    path = tmp_path / "certificate.json"
    assert report._certificate(path, "tic_tac_toe", CONFIG) == []
    path.write_text(json.dumps(certificate()))
    (section,) = report._certificate(path, "tic_tac_toe", CONFIG)
    assert section.title == "Unbeatable: no losing line as first or second player"
    for content in (certificate(seed=1), certificate(game="nim"), {"game": "tic_tac_toe"}, []):
        path.write_text(json.dumps(content))
        assert_refused(
            (
                lambda: report._certificate(path, "tic_tac_toe", CONFIG),
                f"{path} is damaged, or of another run: delete it, or make it again",
            )
        )
