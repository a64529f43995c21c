"""The tutorials' notebooks are their pages, and run from top to bottom."""

import importlib.util
import os
import sys

import pytest

from test_imports import ROOT
from trained import process_environment

PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def load(name):
    """A script of the guide, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_notebook_has_the_text_of_its_page():
    make = load("make_notebooks").make_notebook
    assert len(PAGES) == 4
    for page in PAGES:
        text = page.with_suffix(".ipynb").read_text(encoding="utf-8")
        assert text == make(page), "run python docs/make_notebooks.py"


def test_every_block_of_python_is_a_cell():
    make_cells = load("make_notebooks").make_cells
    cells = make_cells(
        "# A\n\n```python\nx = 1\n```\n\nB\n\n```sh\nls\n```\n\n```python\ny = 2\n```\n"
    )
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code"]
    assert "".join(cells[1]["source"]) == "x = 1" and "ls" in "".join(cells[2]["source"])


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_tutorial_runs(page, tmp_path, monkeypatch):
    import nbclient  # These two take seconds to import.
    import nbformat

    for name, value in process_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    notebook = nbformat.read(page.with_suffix(".ipynb"), as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    printed = [
        o.get("text", "") for c in notebook.cells if c.cell_type == "code" for o in c.outputs
    ]
    assert "".join(printed)
    if page.stem == "tic_tac_toe":
        assert "perfect: True" in "".join(printed)
