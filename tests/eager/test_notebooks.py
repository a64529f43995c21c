"""The notebooks' stored outputs, and how they find a run."""

import dataclasses
import json
import os
import pathlib

from azjax import runs
from azjax.runs import presets
from refusals import assert_refused

FOLDER = pathlib.Path(__file__).parents[2] / "experiments" / "notebooks"


def test_stored_outputs_are_shown_in_untrusted_notebooks():
    """JupyterLab shows text and sanitized HTML; other kinds only if the notebook is trusted."""
    paths = sorted(FOLDER.glob("*.ipynb"))
    assert [path.name[0] for path in paths] == ["1", "2", "3"]
    for path in paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        data = [o.get("data", {}) for cell in cells for o in cell.get("outputs", [])]
        assert {kind for one in data for kind in one} <= {"text/plain", "text/html"}
        html = ["".join(one["text/html"]) for one in data if "text/html" in one]
        assert html and all("<img" in text and "<svg" not in text for text in html)


def make_run(folder, game="tic_tac_toe", checkpoints=(3,)):
    """Makes the files by which a run is found."""
    config = presets.smoke(presets.get("default"))
    runs.create_run(folder, dataclasses.replace(config, game=game))
    for number in checkpoints:
        (folder / "checkpoints" / str(number)).mkdir(parents=True)


def test_a_notebook_finds_the_newest_run_of_its_game(tmp_path, monkeypatch):
    notebooks = tmp_path / "experiments" / "notebooks"
    notebooks.mkdir(parents=True)
    make_run(tmp_path / "runs" / "older")
    make_run(tmp_path / "runs" / "newer")
    make_run(tmp_path / "runs" / "untrained", checkpoints=())
    make_run(tmp_path / "runs" / "four", "connect_four")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "config.json").write_text("{")
    for age, name in enumerate(["broken", "four", "untrained", "newer", "older"]):
        os.utime(tmp_path / "runs" / name / "config.json", (10**9 - age, 10**9 - age))
    for folder in (tmp_path, tmp_path / "runs", notebooks):
        monkeypatch.chdir(folder)
        assert runs.newest("tic_tac_toe").resolve() == tmp_path / "runs" / "newer"
    assert runs.newest("connect_four").resolve() == tmp_path / "runs" / "four"
    make_run(notebooks / "runs" / "near")
    assert runs.newest("tic_tac_toe").name == "near"
    refused = "there is no run of chess in runs/"
    assert_refused((lambda: runs.newest("chess"), refused), error=runs.CheckpointError)
