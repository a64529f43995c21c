"""The notebooks run from top to bottom."""

import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parents[2] / "experiments" / "notebooks"
SMALLER = {
    "games=512": "games=32",
    "steps=64": "steps=4",
    "iteration in range(1, 13)": "iteration in range(1, 3)",
}


def kinds(cell):
    """Returns the kinds of output of a cell; text may be split into pieces."""
    return {tuple(sorted(o.get("data", {}))) or o.get("name") for o in cell.outputs}


def test_the_notebooks_run(monkeypatch):
    """All run in one process; none sees the names of another.

    Stored outputs are of the same kinds.
    """
    import nbclient  # Importing these two takes seconds.
    import nbformat

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    stored, cells = [], []
    for path in sorted(FOLDER.glob("*.ipynb")):
        cells.append(nbformat.v4.new_code_cell("%reset -f"))
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                stored.append(cell)
                cells.append(nbformat.v4.new_code_cell(shrink(cell.source)))
    settings = {"metadata": {"path": str(FOLDER)}}
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, resources=settings).execute()
    fresh = [cell for cell in cells if cell.source != "%reset -f"]
    for before, after in zip(stored, fresh, strict=True):
        assert kinds(before) == kinds(after), before.source


def shrink(source):
    for large, small in SMALLER.items():
        source = source.replace(large, small)
    return source
