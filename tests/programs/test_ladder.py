"""The ladder of solved games: its trainings, their results, and the slope."""

import json

import jax
import pytest

from azjax import runs
from experiments import ladder
from experiments.ladder import Rung, find_slopes
from refusals import check_program


def rung(game, width, decisions, *points):
    moves, errors = zip(*points, strict=True)
    return Rung(game, width, decisions, list(moves), list(errors), seconds=1.0)


def test_the_slope_is_the_exponent_of_positions():
    """Ten times as many positions, a hundred times as many moves: a slope of 2."""
    rungs = [
        rung("small", 64, 1000, (10, 5.0), (20, 1.0), (30, 0.0)),
        rung("large", 64, 10_000, (1000, 3.0), (2000, 0.5)),
        rung("small", 128, 1000, (10, 0.5)),
        rung("large", 128, 10_000, (5000, 2.0)),
    ]
    assert [r.cost(1.0) for r in rungs] == [20, 2000, 10, None]
    assert find_slopes(rungs, 1.0) == {"64": pytest.approx(2.0)}
    assert find_slopes(rungs, 2.0)["128"] == pytest.approx(2.699, abs=1e-3)


@pytest.mark.slow
def test_a_ladder_trains_draws_and_continues(tmp_path, monkeypatch, capfd):
    cache = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", cache)
    arguments = ["--smoke", "--games", "tic_tac_toe", "--widths", "8"]
    arguments += ["--out", str(tmp_path / "ladder")]
    assert ladder.main(arguments) == 0
    content = json.loads((tmp_path / "ladder" / "ladder.json").read_text())
    assert [(r["game"], r["width"]) for r in content["rungs"]] == [("tic_tac_toe", 8)]
    trained = runs.read_config(tmp_path / "ladder" / "tic_tac_toe-8")
    assert trained.game == "tic_tac_toe" and trained.network.width == 8
    assert all(r["decisions"] == 4520 and len(r["moves"]) == 2 for r in content["rungs"])
    assert all(0 < error < 100 for r in content["rungs"] for error in r["errors"])
    picture = (tmp_path / "ladder" / "tic_tac_toe.svg").read_text()
    assert "blunders in 4,520 positions" in picture and "prefers-color-scheme: dark" in picture
    assert "iteration    2" in capfd.readouterr().out
    assert ladder.main(arguments) == 0  # Everything is trained already.
    assert "iteration" not in capfd.readouterr().out


def test_a_ladder_without_games_that_can_be_solved_is_refused(capfd):
    rows = [
        ("--games connect_four", "connect_four cannot be solved: use smaller games"),
        ("--games", "a ladder needs a game and a width"),
    ]
    check_program(ladder.main, rows, capfd)
