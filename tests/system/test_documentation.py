"""The code of README, guide and examples runs, and the guide opens from a folder."""

import functools
import itertools
import os
import pathlib
import re
import runpy
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

import azjax
from azjax import proof, training
from azjax.games import solver
from azjax.runs import presets
from javascript import opened
from source import EXAMPLES, README, ROOT, blocks, only_trace
from trained import compiling_once


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


@pytest.fixture
def small(monkeypatch):
    """Makes every preset tiny."""
    config = presets.smoke(presets.get("mlp"))
    monkeypatch.setattr(presets, "get", lambda _: config)


def test_the_iteration_of_the_readme_runs(small):
    """One seed for five iterations, and sixteen seeds together."""
    found = execute(blocks(README)[1:])
    assert found["state"].iteration == 5 and (found["states"].iteration == 1).all()
    losses = found["metrics"].losses["loss"]
    assert losses.shape == (16,) and len(set(losses.tolist())) == 16


def test_the_quickstart_and_the_lines_on_training_from_python_run(small, capsys):
    """With a tiny player, whose results differ from those shown; `.ci/run` trains a perfect one."""
    shown = re.search(r"```\s*```\n(.*?)```", README.read_text(), re.S)[1]
    quickstart = blocks(README)[0]
    execute([quickstart.replace("report=False", "report=False, max_iterations=2")])
    printed = capsys.readouterr().out.splitlines()
    for ours, theirs in zip(printed[-2:], shown.splitlines()[-2:], strict=True):
        assert re.sub(r"\d+|True|False", "", ours) == re.sub(r"\d+|True|False", "", theirs)
    first, *others = blocks("docs/how_to/python.md")[:-1]
    found = execute([first.replace("report=False", "report=False, max_iterations=2"), *others])
    assert found["certificate"].blunders > 0 < found["proof"].exploration.ends.decisions
    assert found["run"].metrics[-1]["patience"] == 0 and found["state"].iteration == 3


def test_a_custom_algorithm_is_traced_as_on_its_page(monkeypatch):
    """Trainings are only traced; `az.train` has its own tests."""
    monkeypatch.setattr(training, "iteration", only_trace)  # In the loop of the first block.
    texts = blocks("docs/tutorials/custom_algorithm.md")
    found = execute(text.partition("\n\nrun = ")[0] for text in texts[:-1])
    parts = found["make_parts"]()
    _, metrics = only_trace(parts, training.init(parts, jax.random.key(0)))
    assert found["state"].iteration == 10 and "value_loss" in metrics.losses


def test_the_lines_on_search_run_from_top_to_bottom():
    first, *others = blocks("docs/explanation/search.md")
    found = execute([first.replace("4096", "64")])
    result, states = found["result"], found["states"]
    assert (np.asarray(states.board)[np.arange(64), result.action] == 0).all()
    (drawn,) = [text for text in blocks("docs/how_to/share.md") if "draw_tree" in text]
    exec(drawn, found)
    assert pathlib.Path("tree.svg").read_text().startswith("<svg")
    execute(others)


def test_members_of_a_population_equal_single_runs_bit_for_bit(small):
    (text,) = [text for text in blocks("docs/how_to/python.md") if "population" in text]
    rate, seed = 1e-3, 3
    found = execute([text.replace("8)", "4)")])  # Half of the seeds.
    assert found["verdicts"].blunders.shape == (16,)
    alone = jax.jit(lambda: found["train"]((rate, seed)))()
    ours = jax.tree.map(lambda leaf: leaf[4 + seed], found["verdicts"])
    jax.tree.map(np.testing.assert_array_equal, ours, alone)
    assert len(set(found["verdicts"].value_error.tolist())) == 16


def test_thousands_of_games_are_played_as_the_page_says(capsys):
    execute(text.replace("4096", "512") for text in blocks("docs/how_to/selfplay.md"))
    one, many, fresh = (line.split() for line in capsys.readouterr().out.splitlines())
    assert int(one[0]) == 1 and int(many[0]) > 450
    assert int(fresh[0]) > 1024 and int(fresh[3]) > 1000


def test_the_pieces_of_training_do_what_their_page_says(small, solution):
    """Counts are those of a certificate, and one iteration is that of `az.iterate`."""
    text = "".join(blocks("docs/how_to/pieces.md"))
    found = execute([text.replace("length=5", "length=1")])
    parts, state = found["parts"], found["state"]
    player = azjax.Player(parts, parts.network.fold(state.learner.average))
    certificate = azjax.verify(player, (), solution=solution)
    assert found["blunders"].tolist() == [certificate.blunders]
    ours, metrics = next(azjax.iterate(parts, jax.random.key(0)))
    close = functools.partial(np.testing.assert_allclose, atol=1e-5)
    jax.tree.map(close, state.learner.variables, ours.learner.variables)
    jax.tree.map(lambda one, all: close(one, all[0]), metrics, found["metrics"])
    assert len(found["samples"].value) == 16 * 4 and np.isfinite(found["losses"]["loss"]).all()
    assert found["losses"]["loss"][-1] < found["losses"]["loss"][0]


# The examples.


def names(name):
    """The names defined by an example, without running it as a program."""
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name=name)


def only_compare(settings, path, **counts):
    """A comparison whose trainings are only traced."""
    metrics = [only_train(parts).metrics for parts in settings.values()]
    return types.SimpleNamespace(effects=lambda search=False: metrics)


def only_train(parts, **settings):
    """A training whose iteration is only traced."""
    _, metrics = only_trace(parts, training.init(parts, jax.random.key(0)))
    losses = {name: float(loss) for name, loss in metrics.losses.items()}
    return types.SimpleNamespace(metrics=[{"iteration": 1} | losses])


@pytest.mark.parametrize("name", [path.stem for path in EXAMPLES])
def test_an_example_runs(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name])  # Without the options of pytest.
    blunders = itertools.cycle([1, 0])  # No training takes more than two iterations.
    verdict = types.SimpleNamespace
    monkeypatch.setattr(proof, "verify_outputs", lambda *_: verdict(blunders=next(blunders)))
    monkeypatch.setattr(training, "iteration", only_trace)
    monkeypatch.setattr(azjax, "train", only_train, raising=False)
    monkeypatch.setattr(azjax, "compare", only_compare, raising=False)
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out


def test_values_some_plies_later_come_from_a_network_that_lags(small):
    parts = names("target_network")["make_parts"](plies=2, every=3)
    state = training.init(parts, jax.random.key(0))
    play = jax.jit(training.self_play, static_argnums=0)
    _, moves = play(parts, state.learner.variables, jax.random.key(1), state.games)
    rows = jax.tree.map(np.concatenate, jax.device_get(parts.targets.make(moves)))
    reward, discount, later = rows.extra
    update, learner = jax.jit(parts.learner.update), state.learner
    target = learner.variables
    for step in range(1, 8):
        before = learner
        learner, losses = update(learner, rows)
        value = reward + discount * parts.network.infer(target, later)[1]
        ours = parts.network.infer(before.variables, rows.planes)[1]
        np.testing.assert_allclose(losses["value_loss"], np.mean((value - ours) ** 2), rtol=1e-4)
        target = learner.variables if step % 3 == 0 else target


def test_a_target_between_two_outcomes_is_split_between_them():
    """So the least cross-entropy has the target as its expectation, which is the value."""
    found = names("win_draw_loss")
    values = np.float32([-1, -0.3, 0, 0.6, 1])
    logits, legal = np.zeros((5, 9), np.float32), np.ones((5, 9), bool)
    samples = training.Sample(None, legal, legal / 9, values)
    shares = np.float32([[0, 0, 1], [0, 0.7, 0.3], [0, 1, 0], [0.6, 0.4, 0], [1, 0, 0]])
    outcome = np.log(np.maximum(shares, 1e-30))
    _, terms = found["loss"]((logits, None, outcome), None, samples, None)
    assert abs(terms["value_loss"] + np.sum(shares * outcome) / 5) < 1e-6


def test_a_game_has_as_many_positions_as_it_says():
    ours = names("dots_and_boxes")["make"]()
    assert solver.solve(ours).num_states == ours.most_positions


# The guide, as `make docs` builds it, opened from a folder as its readers do.


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the guide."""
    folder = tmp_path_factory.mktemp("guide") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder


def test_the_guide_is_searched_from_a_folder(site, browser):
    """Types as a reader does: the theme reads the field when a key is released."""
    with opened(browser, site / "api" / "modules.html") as tab:
        field = tab.locator(".md-search__input")
        field.focus()
        field.press_sequentially("illegal action")
        link = tab.locator(".md-search-result__link").first
        link.wait_for(state="attached")
        assert link.get_attribute("href").startswith("file:")


def test_pages_fit_a_phone(site, browser):
    tab = browser.new_page(viewport={"width": 390, "height": 900})
    # With the widest tables, and the last one with pictures.
    for name in ("index.html", "reference/settings.html", "results/connect_four.html"):
        tab.goto((site / name).as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, name
    boxes = [picture.bounding_box() for picture in tab.locator("img[src$='.svg']").all()]
    assert len(boxes) == 2 and min(box["width"] for box in boxes) > 480  # They scroll.
    tab.close()


def test_the_notebooks_run(monkeypatch):
    """All run in one process; none sees the names of another."""
    import nbclient  # Importing these two takes seconds.
    import nbformat

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder, sources = ROOT / "experiments" / "notebooks", []
    for path in sorted(folder.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        sources += ["%reset -f", *(cell.source for cell in cells if cell.cell_type == "code")]
    text = "\0".join(sources).replace("iteration in range(1, 13)", "iteration in range(1, 3)")
    text = text.replace("games=512", "games=32").replace("steps=64", "steps=4")
    cells = [nbformat.v4.new_code_cell(source) for source in text.split("\0")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    settings = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=settings).execute()
