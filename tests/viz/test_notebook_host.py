"""The explorer in JupyterLab, in a browser, with a live kernel."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

CELLS = [
    "from azjax.viz.widgets import Explorer\nwidget = Explorer(num_simulations=12)\nwidget",
]
STORED = pathlib.Path(__file__).parents[2] / "experiments" / "notebooks" / "1_game.ipynb"
QUIET = {  # No pop-ups over the notebook, and no requests for news.
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    }
}


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """The address of a JupyterLab that serves one notebook."""
    import nbformat  # It takes seconds to import.

    folder = tmp_path_factory.mktemp("jupyterlab")
    settings = folder / "app" / "settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(json.dumps(QUIET))
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec})
    nbformat.write(notebook, folder / "explore.ipynb")
    shutil.copy(STORED, folder)
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
    log = (folder / "log").open("w")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        _wait_for(f"{address}/api", server, folder / "log")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()


def _wait_for(address, server, log):
    for _ in range(240):
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.25)
    raise AssertionError(f"no response from {address}: {log.read_text()}")


@pytest.mark.slow
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

    # Another evaluator, without Python.
    explorer.locator("[data-setting=evaluator]").select_option("exact")
    assert explorer.get_attribute("data-t") == "0"
    assert "exact" in explorer.locator(".az-status").inner_text()

    # More simulations.
    simulations = explorer.locator("[data-setting=num_simulations]")
    simulations.fill("20")
    simulations.press("Enter")
    explorer.get_by_label("how many simulations to run").fill("20")
    explorer.locator("[data-button=run-n]").click()
    assert explorer.get_attribute("data-simulation") == "20"
    shown = explorer.locator("[data-k=N]").all_inner_texts()
    assert sum(int(n) for n in shown) == 20

    # A number out of range is rejected with a sentence, and the tree stays.
    explorer.locator("[data-setting=c_puct]").fill("-1")
    explorer.locator("[data-setting=c_puct]").press("Enter")
    explorer.get_by_text("c_puct is -1: use 0 to 100").wait_for()
    assert explorer.get_attribute("data-simulation") == "20"

    # Another position, set by clicking.
    explorer.locator(".az-start [role=button]").first.click()
    assert explorer.get_attribute("data-t") == "0"
    assert explorer.locator("[data-node='0']").count() == 1
    assert "O to move" in explorer.locator(".az-detail").inner_text()
    assert found == []


@pytest.mark.slow
def test_stored_pictures_show_at_once(jupyterlab, browser, errors):
    """The notebook has not been run here, and is not trusted."""
    page = browser.new_page(viewport={"width": 1400, "height": 6000})  # All cells are in view.
    page.set_default_timeout(90_000)
    found = errors(page)
    page.goto(f"{jupyterlab}/lab/tree/{STORED.name}")
    cells = json.loads(STORED.read_text(encoding="utf-8"))["cells"]
    stored = [
        o for cell in cells for o in cell.get("outputs", []) if "text/html" in o.get("data", ())
    ]
    pictures = page.locator(".jp-OutputArea-output img")
    pictures.nth(len(stored) - 1).wait_for()
    assert pictures.count() == len(stored)
    assert all(pictures.evaluate_all("all => all.map(e => e.naturalWidth)"))
    assert page.get_by_text("(a picture)").count() == 0 and found == []
