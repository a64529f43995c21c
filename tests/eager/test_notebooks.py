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
    for path in sorted(FOLDER.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        data = [o.get("data", {}) for cell in cells for o in cell.get("outputs", [])]
        assert {kind for one in data for kind in one} == {"text/plain", "text/html"}
        html = ["".join(one["text/html"]) for one in data if "text/html" in one]
        assert all("<img" in text and "<svg" not in text for text in html)


def test_a_notebook_finds_the_newest_run_of_its_game(tmp_path, monkeypatch):
    notebooks = tmp_path / "experiments" / "notebooks"
    notebooks.mkdir(parents=True)
    config = presets.smoke(presets.get("default"))
    for age, (name, game, trained) in enumerate([
        ("four", "connect_four", True), ("untrained", "tic_tac_toe", False),
        ("newer", "tic_tac_toe", True), ("older", "tic_tac_toe", True),
    ]):  # fmt: skip
        folder = tmp_path / "runs" / name
        runs.create_run(folder, dataclasses.replace(config, game=game))
        if trained:
            (folder / "checkpoints" / "3").mkdir(parents=True)
        os.utime(folder / "config.json", (10**9 - age, 10**9 - age))
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "config.json").write_text("{")
    for folder in (tmp_path, notebooks):
        monkeypatch.chdir(folder)
        assert runs.newest("tic_tac_toe").resolve() == tmp_path / "runs" / "newer"
        assert runs.newest("connect_four").resolve() == tmp_path / "runs" / "four"
    refused = "there is no run of chess in runs/"
    assert_refused((lambda: runs.newest("chess"), refused), error=runs.CheckpointError)
