"""The program that writes a page to share: what it is given, and what it refuses."""

import dataclasses

import pytest

from azjax import presets
from experiments import explain
from run_directories import make_run

CONFIG = presets.smoke(presets.get("default"))


def explain_in(folder, run_dir, out="explain.html"):
    return explain.main(["--run-dir", str(run_dir), "--out", str(folder / out)])


@pytest.fixture(scope="module")
def connect_four(tmp_path_factory):
    """A run of a game that cannot be explained."""
    config = dataclasses.replace(CONFIG, game="connect_four")
    return make_run(tmp_path_factory.mktemp("connect_four") / "run", config)


def test_a_run_that_does_not_exist_is_refused(tmp_path, capsys):
    assert explain_in(tmp_path, tmp_path / "nothing") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and "nothing" in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_refused_before_the_work(tmp_path, capsys):
    assert explain_in(tmp_path, tmp_path / "nothing", "nowhere/explain.html") == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_run_of_another_game_is_refused(tmp_path, connect_four, capsys):
    assert explain_in(tmp_path, connect_four) == 2
    said = capsys.readouterr().err
    assert "this player plays connect_four" in said and "load a run of tic_tac_toe" in said
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_a_run_holds_its_searches(tmp_path, monkeypatch):
    """What its controls do is tested in a browser."""
    run_dir = make_run(tmp_path / "run", CONFIG)
    monkeypatch.setattr(explain, "_SIMULATIONS", 2)
    monkeypatch.setattr(explain, "_POSITIONS", {"Empty board": explain._POSITIONS["Empty board"]})
    assert explain_in(tmp_path, run_dir) == 0
    page = (tmp_path / "explain.html").read_text()
    assert "Empty board" in page and "O must block" not in page


def test_the_positions_shown_are_what_their_titles_say():
    boards = {title: explain._cells(text) for title, text in explain._POSITIONS.items()}
    assert boards["Empty board"] == (0,) * 9
    assert boards["O must block"] == (1, 1, 0, 0, -1, 0, 0, 0, 0)
    assert boards["X can win at once"] == (1, 1, 0, -1, -1, 0, 0, 0, 0)
