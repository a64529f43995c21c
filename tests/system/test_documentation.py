"""The code of README, guide and tutorials runs, printed commands run, and the guide opens."""

import base64
import os
import pathlib
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import azjax
import misere_pile
from azjax import runs, training
from azjax._commands import command
from azjax.cli import custom, functions, train
from azjax.runs import presets
from azjax.search import Gumbel, make_search
from run_directories import make_run
from source import README, ROOT, blocks
from tracing import only_trace
from trained import compiling_once, process_environment


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, empty; two trainings with the same settings share a program."""
    monkeypatch.chdir(tmp_path)
    with compiling_once():
        yield tmp_path


def execute(texts):
    """Runs blocks of Python one after the other; returns their names."""
    found = {"__name__": "page"}
    for text in texts:
        exec(text, found)
    return found


# Code.


def test_the_iteration_of_the_readme_runs(monkeypatch):
    """One seed for five iterations, and sixteen seeds together."""
    small = presets.smoke(presets.get("default"))
    monkeypatch.setattr(presets, "get", lambda _: small)
    found = execute(blocks(README)[:1])
    assert found["state"].iteration == 5 and (found["states"].iteration == 1).all()
    losses = found["metrics"].losses["loss"]
    assert losses.shape == (16,) and len(set(losses.tolist())) == 16


def test_the_quickstart_prints_what_the_readme_shows(capsys):
    shown = re.search(r"```\s*```\n(.*?)```", README.read_text(), re.S)[1]
    execute(blocks(README)[1:])
    printed = capsys.readouterr().out.splitlines()
    results = [line for line in shown.splitlines() if not line.startswith(("iteration", "..."))]
    assert len(results) == 2 and printed[-2:] == results


def test_the_lines_on_training_from_python_run():
    """The first two blocks train as the quickstart does; an untrained player replaces theirs."""
    run_dir = make_run(pathlib.Path("untrained"), presets.smoke(presets.get("default")))
    found = {"az": azjax, "player": azjax.load(run_dir)}
    for block in blocks("docs/how_to/python.md")[2:]:
        exec(block, found)
    assert found["certificate"].blunders > 0 < found["proof"].decided
    assert found["run"].metrics[-1]["patience"] == 0 and found["state"].iteration == 3


def test_a_custom_algorithm_is_trained_as_on_its_page(monkeypatch):
    monkeypatch.setattr(training, "iteration", only_trace)  # In the loop of the first block.
    found = execute(blocks("docs/tutorials/custom_algorithm.md"))
    assert found["state"].iteration == 10 and len(found["run"].metrics) == 5


def test_the_lines_on_search_run_from_top_to_bottom():
    first, *others = blocks("docs/explanation/search.md")
    assert len(first.strip().splitlines()) <= 11
    found = execute([first])
    result, states = found["result"], found["states"]
    assert result.action_weights.shape == (4096, 9)
    assert (np.asarray(states.board)[np.arange(4096), result.action] == 0).all()
    (drawn,) = [text for text in blocks("docs/how_to/share.md") if "draw_tree" in text]
    exec(drawn, found)
    assert found["trace"](found["config"], found["result"].tree).simulations[7].path[0] == 0
    assert pathlib.Path("tree.svg").read_text().startswith("<svg")
    found = execute(others)
    expected = jax.jit(make_search(Gumbel(num_simulations=32), found["game"], found["evaluate"]))
    visits = expected(found["params"], jax.random.key(3), found["states"]).visit_counts
    np.testing.assert_array_equal(found["result"].visit_counts, visits)


def test_thousands_of_games_are_played_as_the_page_says(capsys):
    found = execute(text.replace("4096", "512") for text in blocks("docs/how_to/selfplay.md"))
    one, many, fresh = (line.split() for line in capsys.readouterr().out.splitlines())
    assert int(one[0]) == 1 and int(many[0]) > 450
    assert 1024 < int(fresh[0]) == int(found["over"].sum()) and int(fresh[3]) > 1000
    rewards = np.asarray(found["rewards"])
    assert set(np.unique(rewards)) == {0, 1} and (rewards[~np.asarray(found["over"])] == 0).all()


# Commands.


def test_printed_commands_run_in_a_bare_shell(folder, capfd):
    """The names of the run and of the game's file need quotes."""
    shutil.copy(misere_pile.__file__, "its pile.py")
    config = runs.config.Config(game=functions.identify("its pile.py:make"))
    make_run(folder / "its run", presets.smoke(config), game=misere_pile.make())
    run = SimpleNamespace(run_dir=pathlib.Path("its run"), loop=SimpleNamespace(iteration=1))
    run.report, run.evaluation, run.reached = None, True, True
    train._conclude(run, custom.name_run(run.run_dir, config, custom.NOTHING), trained=True)
    lines = re.findall(rf"{re.escape(command('azjax'))}.+", capfd.readouterr().out)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    environment |= {name: os.environ[name] for name in ("JAX_PLATFORMS", "XLA_FLAGS")}
    environment |= process_environment() | {"PYTHONPATH": ""}
    assert [line.split(" --")[0].split()[-1] for line in lines] == ["play", "explain", "verify"]
    done = subprocess.run(
        ["/bin/sh", "-c", lines[0]],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and "error" not in done.stderr, done.stderr


# The guide, as `make docs` builds it, opened from a folder as its readers do.

# Names that are broken within, outside of the places where any text may be broken.
BROKEN = """() => [...document.querySelectorAll(":is(td, th) code")]
  .filter((e) => !/[\\s/-]/.test(e.textContent) && e.getClientRects().length > 1)
  .map((e) => e.textContent)"""
# What axe-core calls serious in the theme's own parts.
OF_THE_THEME = ("aria-dialog-name: ", "scrollable-region-focusable: ", 'label: <input class="md-')
# Opened from a folder, the theme loads its index once the field is focused, and then greets.
INDEX_IS_LOADED = """() => {
  const text = document.querySelector(".md-search-result__meta").textContent;
  return text.trim() !== "" && !text.includes("Initializing");
}"""
# How much of a picture is drawn, and its brightest red.
DRAWN = """e => {
  const [width, height] = [640, 240];
  const canvas = Object.assign(document.createElement("canvas"), {width, height});
  const context = canvas.getContext("2d");
  context.drawImage(e, 0, 0, width, height);
  const {data} = context.getImageData(0, 0, width, height);
  const drawn = [...Array(width * height).keys()].filter((i) => data[4 * i + 3] > 200);
  return [drawn.length / (width * height), drawn.reduce((m, i) => Math.max(m, data[4 * i]), 0)];
}"""


# With the widest tables, and the last one with pictures.
PAGES = ["index.html", "api/parts.html", "reference/settings.html", "reference/commands.html"]
PAGES += ["how_to/customize.html", "explanation/architecture.html", "results/connect_four.html"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the guide."""
    folder = tmp_path_factory.mktemp("guide") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder


def test_the_conventions_are_a_table_and_signatures_are_laid_out(site):
    page = (site / "api" / "parts.html").read_text()
    table = re.search(r"<table>\s*<thead>\s*<tr>\s*<th>thing.*?</table>", page, re.DOTALL)
    rows = re.findall(r"<td>(.*?)</td>\s*<td>(.*?)</td>", table[0], re.DOTALL)
    assert len(rows) > 9 and all(thing and convention for thing, convention in rows)
    signatures = re.findall(r'<div class="doc-signature.*?<code>(.*?)</code>', page, re.DOTALL)
    lines = [re.sub("<.*?>", "", line) for text in signatures for line in text.splitlines()]
    assert len(signatures) > 20 and max(map(len, lines)) < 80  # Longer ones are cut.


def test_the_guide_is_searched_from_a_folder(site, browser):
    """Types as a reader does: the theme reads the field when a key is released."""
    tab, asked = browser.new_page(), []
    tab.on("request", lambda request: asked.append(request.url))
    for wait in (False, True):  # Whether the index is loaded before the words are typed.
        tab.goto((site / "api" / "parts.html").as_uri())
        field = tab.locator(".md-search__input")
        field.focus()
        if wait:
            tab.wait_for_function(INDEX_IS_LOADED)
        field.press_sequentially("illegal action")
        link = tab.locator(".md-search-result__link").first
        link.wait_for(state="attached")
        assert link.get_attribute("href").startswith("file:")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    tab.close()


def test_pages_fit_a_phone_and_nothing_keeps_readers_out(site, browser, barriers):
    tab = browser.new_page(viewport={"width": 390, "height": 900}, color_scheme="dark")
    for name in PAGES:
        tab.goto((site / name).as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, name
        assert tab.evaluate(BROKEN) == [], name
        if name in PAGES[:3]:
            found = [line for line in barriers(tab) if not line.startswith(OF_THE_THEME)]
            assert found == [], name
    boxes = [picture.bounding_box() for picture in tab.locator("img[src$='.svg']").all()]
    assert len(boxes) == 2 and min(box["width"] for box in boxes) > 480  # They scroll.
    tab.close()


def test_pictures_of_the_guide_follow_a_dark_theme(browser):
    tab = browser.new_page(color_scheme="dark")
    pictures = sorted(set((ROOT / "docs").glob("*.svg")) - {ROOT / "docs" / "animation.svg"})
    for path in pictures:
        packed = base64.b64encode(path.read_bytes()).decode()
        tab.set_content(f"<img src='data:image/svg+xml;base64,{packed}'>")
        tab.wait_for_function("document.images[0].complete")
        share, brightest = tab.locator("img").evaluate(DRAWN)
        assert share < 0.3 and brightest > 200, path  # No paper, and bright letters.
    assert len(pictures) > 3
    tab.close()
