"""The program `azjax arena`: its tables, its plot, and its errors."""

import os
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from azjax.cli import arena
from azjax.players import ratings
from azjax.players.arena import Match, Tally, rate
from azjax.runs import presets
from refusals import check_program
from run_directories import make_run

pytestmark = pytest.mark.usefixtures("compiled_once")

CONFIG = presets.smoke(presets.get("default"))


@pytest.fixture(autouse=True)
def _no_run_nearby(tmp_path, monkeypatch):
    """The game would be that of the newest run."""
    monkeypatch.chdir(tmp_path)


def play(*arguments):
    return arena.main([str(argument) for argument in arguments])


@pytest.mark.slow
def test_a_tournament_is_printed_and_drawn(tmp_path, capsys):
    plot = tmp_path / "ratings.svg"
    assert play("random", "perfect", "uct:5", "--games", 200, "--plot", plot) == 0
    matches, fitted = capsys.readouterr().out.split("ratings")
    names = ["perfect", "uct(5)", "random"]  # Best first.
    texts = [element.text for element in ElementTree.parse(plot).iter() if element.text]
    assert [text for text in texts if text in names] == names
    rows = [re.findall(r"[\d.]+", line)[-7:] for line in matches.splitlines()[1:]]
    assert len(rows) == 6
    for wins, draws, losses, score, low, high, _ in (map(float, row) for row in rows):
        assert wins + draws + losses == 100
        assert score == pytest.approx((wins + draws / 2) / 100, abs=1e-3)
        assert low <= score <= high and 0.02 < high - low < 0.25
    best = re.findall(r"^(\S+) +([+-]\d+) +([+-]\d+) … ([+-]\d+) *$", fitted, re.M)
    assert [row[0] for row in best] == names
    assert all(int(low) < int(elo) < int(high) for _, elo, low, high in best)


def test_headings_are_whole_on_a_terminal_of_80_columns(tmp_path, monkeypatch, capsys):
    run_dir = make_run(tmp_path / "run", CONFIG)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    players = ["random", f"network@{run_dir}", f"network@{run_dir}#0"]
    assert play(*players, "--games", 4) == 0
    lines = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert lines[0].split() == [
        *["player", "against", "moves", "won", "drawn", "lost", "score", "[95%]", "different"]
    ]
    assert ["player", "Elo", "95%"] in [line.split() for line in lines]
    (end,) = [number for number, line in enumerate(lines) if line.startswith("Two deterministic")]
    assert max(map(len, lines[:end])) <= 80


def test_repeated_games_are_not_counted(capsys):
    assert play("perfect", "minimax:2", "--games", 1000) == 0
    output = capsys.readouterr().out
    assert "further games would be identical: perfect – minimax(2)." in output
    rows = [line.split() for line in output.splitlines() if line.split()[1:2] == ["minimax(2)"]]
    assert [sum(map(int, row[3:6])) for row in rows] == [1, 1] == [int(row[-1]) for row in rows]
    assert not any("[" in cell for row in rows for cell in row)  # No interval without randomness.


@pytest.mark.slow
def test_openings_are_played_from_both_seats(capsys):
    assert play("perfect", "minimax:2", "--openings", 5, "--opening-plies", 3) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "minimax(2)" in line]
    assert [sum(map(int, row[3:6])) for row in rows[:2]] == [5, 5]
    assert play("perfect", "minimax:2", "--openings", 100, "--opening-plies", 1) == 0
    assert "only 9 such openings" in capsys.readouterr().err


def test_the_same_seed_gives_the_same_games(capsys):
    outputs = []
    for seed in (3, 3, 4):
        assert play("random", "minimax:1", "--games", 20, "--seed", seed) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.mark.slow
def test_networks_without_a_run_are_those_of_the_newest(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, iteration, age in (("old", 2, 1), ("new", 3, 0)):
        run_dir = make_run(tmp_path / "runs" / name, CONFIG, (iteration,))
        os.utime(run_dir / "config.json", (10**9 - age, 10**9 - age))
    assert play("network", "random", "--games", 2) == 0
    assert "network #3" in capsys.readouterr().out
    assert play("network", "random", "--games", 2, "--run-dir", "runs/old") == 0
    assert "network #2" in capsys.readouterr().out
    assert play("network@runs/old", "alphazero", "--games", 2) == 0
    assert "alphazero(4) #2" in capsys.readouterr().out


def test_ratings_use_both_seats():
    """Only moving first matters here: equal ratings, a large advantage."""
    mine, theirs = Tally(90, 5, 5, 100), Tally(5, 5, 90, 100)
    fitted = rate([Match("a", "b", mine, theirs, False)])
    np.testing.assert_allclose(fitted.ratings, 0, atol=1)
    assert fitted.first_move_advantage.low > 200
    stronger = rate([Match("a", "b", mine, mine, False)])
    assert stronger.low[0] > 150
    assert isinstance(stronger, ratings.Ratings)


def test_invalid_options_are_refused_in_one_sentence(capfd):
    rows = [
        (["random"], "name 2 players or more"),
        (["random", "nobody"], "unknown player 'nobody': use one of random, perfect"),
        (["random", "random"], "the player 'random' is listed twice"),
        (["random", "perfect", "--games", "0"], "--games is 0: use 1 or more"),
        (["random", "perfect", "--openings", "-1"], "--openings is -1: use 0 to 100000"),
        (["random", "perfect", "--openings", "3", "--opening-plies", "9"], "0 to 8 moves"),
        (["random", "perfect", "--seed", "-1"], "--seed is -1: use 0 to"),
        (["random", "perfect", "--game", "chess"], "unknown game 'chess'"),
        (["random", "perfect", "--game", "connect_four"], "too many positions"),
        (["random", "network", "--game", "hex:5"], "add @RUN_DIR"),
        (
            ["random", "perfect", "--plot", "/nowhere/x.svg"],
            "there is no folder /nowhere",
        ),
        (["random", "perfect", "--plot", "x.png"], "--plot is x.png: use a name that ends in .svg"),
    ]
    check_program(arena.main, rows, capfd)
