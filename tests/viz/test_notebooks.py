"""The notebooks run from top to bottom, and what is stored in them was printed by them."""

import os
import pathlib
import sys

import jax
import nbclient
import nbformat
import pytest

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
    """What kinds of output a cell has; printed text may come in several pieces."""
    return {tuple(sorted(o.get("data", {}))) or o.get("name") for o in cell.outputs}


def test_there_are_three():
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "path",
    NOTEBOOKS,
    ids=lambda path: path.stem,
)
@pytest.mark.slow
def test_a_notebook_runs(path, environment):
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    for cell in code(fresh):
        cell.outputs, cell.execution_count = [], None
    settings = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(fresh, timeout=300, resources=settings).execute()
    for before, after in zip(code(stored), code(fresh), strict=True):
        assert kinds(before) == kinds(after), before.source
        assert before.execution_count == after.execution_count
