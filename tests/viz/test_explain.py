"""The program that writes a page to share: what it is given, and what it refuses."""

import pytest

from experiments import explain, train


def explain_in(folder, run_dir, out="explain.html"):
    return explain.main(["--run-dir", str(run_dir), "--out", str(folder / out)])


@pytest.fixture(scope="module")
def connect_four(tmp_path_factory):
    """A run of a game that cannot be explained."""
    run_dir = tmp_path_factory.mktemp("connect_four") / "run"
    options = ["--game", "connect_four", "--smoke", "--max-iterations", "1", "--no-report"]
    assert train.main([*options, "--run-dir", str(run_dir)]) == 0
    return run_dir


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


def test_the_positions_shown_are_what_their_titles_say():
    boards = {title: explain._cells(text) for title, text in explain._POSITIONS.items()}
    assert boards["Empty board"] == (0,) * 9
    assert boards["O must block"] == (1, 1, 0, 0, -1, 0, 0, 0, 0)
    assert boards["X can win at once"] == (1, 1, 0, -1, -1, 0, 0, 0, 0)
