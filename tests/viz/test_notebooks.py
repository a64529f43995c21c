"""The notebooks run from top to bottom, and what is stored in them was printed by them.

Widgets are not stored: without the kernel that made them they show nothing.
"""

import dataclasses
import json
import os
import pathlib
import sys

import jax
import pytest

from azjax import runs
from azjax.runs import presets

FOLDER = pathlib.Path(__file__).parents[2] / "experiments" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture
def environment(monkeypatch):
    """What a kernel inherits: the path to azjax, and the compilation cache of the tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def kinds(cell):
    """What kinds of output a cell has, but widgets; printed text may come in several pieces."""
    found = {tuple(sorted(o.get("data", {}))) or o.get("name") for o in cell.outputs}
    return {kind for kind in found if "widget" not in "".join(kind)}


def test_there_are_three():
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3"]


each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@each_notebook
def test_what_is_stored_shows_before_anybody_trusts_it(path):
    """JupyterLab shows text and clean HTML at once, and other kinds only to who ran them."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    data = [o.get("data", {}) for cell in cells for o in cell.get("outputs", [])]
    assert {kind for one in data for kind in one} <= {"text/plain", "text/html"}
    html = ["".join(one["text/html"]) for one in data if "text/html" in one]
    assert html and all("<img" in text and "<svg" not in text for text in html)


def make_run(folder, game="tic_tac_toe", checkpoints=(3,)):
    """A run as far as finding it goes."""
    config = presets.smoke(presets.get("default"))
    runs.create_run(folder, dataclasses.replace(config, game=game))
    for number in checkpoints:
        (folder / "checkpoints" / str(number)).mkdir(parents=True)


def test_a_notebook_finds_the_newest_run_of_its_game(tmp_path, monkeypatch):
    (tmp_path / "experiments" / "notebooks").mkdir(parents=True)
    make_run(tmp_path / "runs" / "older")
    make_run(tmp_path / "runs" / "newer")
    make_run(tmp_path / "runs" / "untrained", checkpoints=())
    make_run(tmp_path / "runs" / "four", "connect_four")
    (tmp_path / "runs" / "spoiled").mkdir()
    (tmp_path / "runs" / "spoiled" / "config.json").write_text("{")
    for age, name in enumerate(["spoiled", "four", "untrained", "newer", "older"]):
        os.utime(tmp_path / "runs" / name / "config.json", (10**9 - age, 10**9 - age))
    for folder in (tmp_path, tmp_path / "runs", tmp_path / "experiments" / "notebooks"):
        monkeypatch.chdir(folder)
        assert runs.newest("tic_tac_toe").resolve() == tmp_path / "runs" / "newer"
    assert runs.newest("connect_four").resolve() == tmp_path / "runs" / "four"
    make_run(tmp_path / "experiments" / "notebooks" / "runs" / "near")
    assert runs.newest("tic_tac_toe").name == "near"
    with pytest.raises(runs.CheckpointError, match="there is no run of chess in runs/"):
        runs.newest("chess")


@each_notebook
@pytest.mark.slow
def test_a_notebook_runs(path, environment):
    import nbclient  # These two take seconds to import.
    import nbformat

    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    for cell in code(fresh):
        cell.outputs, cell.execution_count = [], None
    settings = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(fresh, timeout=300, resources=settings).execute()
    for before, after in zip(code(stored), code(fresh), strict=True):
        assert kinds(before) == kinds(after), before.source
        assert before.execution_count == after.execution_count
