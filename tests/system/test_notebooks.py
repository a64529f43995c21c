"""The notebooks run from top to bottom, and their widgets in a browser."""

import os
import pathlib
import sys

from azjax.viz.widgets import Explorer

FOLDER = pathlib.Path(__file__).parents[2] / "experiments" / "notebooks"
SMALLER = {
    "games=512": "games=32",
    "steps=64": "steps=4",
    "iteration in range(1, 13)": "iteration in range(1, 3)",
}


def kinds(cell):
    """Returns the kinds of output of a cell except widgets; text may be split into pieces."""
    all_kinds = {tuple(sorted(o.get("data", {}))) or o.get("name") for o in cell.outputs}
    return {kind for kind in all_kinds if "widget" not in "".join(kind)}


def test_the_notebooks_run(monkeypatch):
    """All run in one process; none sees the names of another.

    Stored outputs are of the same kinds; widgets show nothing without their kernel.
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


def test_a_widget_steps_a_search_in_a_browser(browser, errors):
    """With the part of anywidget's model that JupyterLab gives to it."""
    widget, page = Explorer(num_simulations=20, evaluator="exact"), browser.new_page()
    found = errors(page)
    given = {"kind": widget.kind, "data": widget.data}
    page.evaluate(
        """async ([source, css, given]) => {
          document.head.append(Object.assign(document.createElement("style"), {textContent: css}));
          const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
          const model = { get: (name) => given[name], on: () => {} };
          await (await import(url)).default.render({ model, el: document.body });
        }""",
        [widget._esm, widget._css, given],
    )
    explorer = page.locator(".az-component[data-t]")
    for _ in range(3):
        explorer.locator("[data-button=next]").click()
    assert explorer.get_attribute("data-t") == "3"
    assert explorer.get_attribute("data-phase") == "backup"
    for _ in range(4):
        explorer.locator("[data-button=run-5]").click()
    shown = explorer.locator("[data-k=N]").all_inner_texts()
    assert sum(int(n) for n in shown) == 20
    assert found == []
    page.close()
