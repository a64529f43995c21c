"""The notebooks run from top to bottom, and JupyterLab shows them."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "experiments" / "notebooks"
CELL = "from azjax.viz.widgets import Explorer\nExplorer(num_simulations=12)"
QUIET = {  # No pop-ups over the notebook, and no requests for news.
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    }
}


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


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """The address of a JupyterLab that serves one notebook."""
    import nbformat  # It takes seconds to import.

    folder = tmp_path_factory.mktemp("jupyterlab")
    settings = folder / "app" / "settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(json.dumps(QUIET))
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(CELL)], metadata={"kernelspec": spec}
    )
    nbformat.write(notebook, folder / "explore.ipynb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "user"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.app_settings_dir={settings}", "--LabApp.news_url="]
    log = folder / "log"
    with log.open("w") as output:
        server = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, cwd=folder
        )
    try:
        _wait_for(f"{address}/api", server, log)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait_for(address, server, log):
    for _ in range(240):
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.25)
    raise AssertionError(f"no response from {address}: {log.read_text()}")


def test_the_explorer_steps_a_real_search_in_jupyterlab(jupyterlab, browser, errors):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(90_000)
    found = errors(page)
    page.goto(f"{jupyterlab}/lab/tree/explore.ipynb")
    page.get_by_text("(ipykernel) | Idle").wait_for()  # A cell run before that is lost.
    page.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    explorer = page.locator(".az-component[data-t]")
    explorer.wait_for()
    assert explorer.get_attribute("data-simulation") == "0"
    for _ in range(3):
        explorer.locator("[data-button=next]").click()
    assert explorer.get_attribute("data-t") == "3"
    assert explorer.get_attribute("data-phase") == "backup"
    explorer.locator("[data-setting=evaluator]").select_option("exact")
    assert explorer.get_attribute("data-t") == "0"
    assert "exact" in explorer.locator(".az-status").inner_text()
    simulations = explorer.locator("[data-setting=num_simulations]")
    simulations.fill("20")
    simulations.press("Enter")
    for _ in range(4):
        explorer.locator("[data-button=run-5]").click()
    shown = explorer.locator("[data-k=N]").all_inner_texts()
    assert sum(int(n) for n in shown) == 20
    assert found == []
