"""What README, guide and messages state is what the code does, and commands in them are parsed."""

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import json
import os
import re
import shlex
import textwrap

import pytest

from azjax import cli, runs, training
from azjax.cli import custom, parsing, train
from azjax.games import solver
from azjax.runs import presets
from azjax.search import Gumbel
from azjax.training import memory
from refusals import assert_refused
from source import EXAMPLES, PAGES, README, ROOT, blocks, guide, load, trees

TEXTS = [README, ROOT / "CONTRIBUTING.md", *PAGES]
HOOKS = load("docs/hooks.py")
NOTEBOOKS = sorted((ROOT / "experiments" / "notebooks").glob("*.ipynb"))


def check_all(items, check, *errors):
    """Checks every item, and reports all those that fail."""
    wrong = []
    for item in items:
        try:
            check(item)
        except (AssertionError, ValueError, *errors) as error:
            wrong.append(f"{item}: {error}")
    assert not wrong, "\n".join(wrong)


# Commands.


def find_program(name):
    """The module of a program: of the command `azjax`, or of `experiments/`."""
    if name in cli.PROGRAMS:
        return importlib.import_module(f"azjax.cli.{name}")
    package = (ROOT / "experiments" / name).is_dir()
    return importlib.import_module(f"experiments.{name}" + ".__main__" * package)


class Accepted(Exception):
    """Raised in place of running a program, once its options are parsed."""


@pytest.fixture
def understand(monkeypatch):
    """Returns a function that parses the options of a command, after `-m`, without running it."""
    fill = parsing.fill

    def only_fill(*arguments, **settings):
        fill(*arguments, **settings)
        raise Accepted

    def check(words):
        name, *arguments = words[1:] if words[0] == "azjax" else words
        assert words[0] == "azjax" or importlib.util.find_spec(name)
        program = find_program(name.removeprefix("experiments."))
        if name.endswith("train"):  # The run to resume does not exist.
            arguments = [word for word in arguments if word != "--resume"]
        try:
            status = program.main(arguments)
        except SystemExit as stop:
            status = stop.code if "--help" in arguments else stop
        except Accepted:
            status = 0
        assert not status, words

    monkeypatch.setattr(parsing, "fill", only_fill)
    monkeypatch.setattr(train, "fill", only_fill)
    return check


def documented():
    """Lists every command in the pages, the notebooks and the source, after `-m`."""
    sources = [path for path in trees() if path.startswith(("experiments", "azjax/cli"))]
    texts = [path.read_text() for path in [*TEXTS, *NOTEBOOKS, *map(ROOT.joinpath, sources)]]
    text = re.sub(r"\\\n\s*", "", "\n".join(texts))
    found = re.findall(r"python -m (experiments\.\w+(?:(?! #|[`\"|&;)…\\]).)*)", text)
    programs = "|".join(cli.PROGRAMS)
    found += re.findall(
        rf"^ *(?:timeout .* )?(azjax (?:{programs}).*?)(?: #.*)?$", text, re.MULTILINE
    )
    pages = "\n".join(path.read_text() for path in TEXTS)
    found += re.findall(rf"`(azjax (?:{programs})\b[^`…|]*)`", pages)
    return sorted({re.split(r" A B|, with \{|: ", line)[0].strip() for line in found})


def test_documented_commands_are_parsed_and_trainings_can_start(understand, monkeypatch):
    def start(line):
        words = shlex.split(line)
        arguments = words[words.index("train") + 1 if "train" in words else 1 :]
        parsed = train.parse([word for word in arguments if word != "--resume"])
        parts = custom.make_parts(parsed.config, parsed.typed)
        training.check_parts(parts, parsed.config.replay.shards)

    monkeypatch.chdir(ROOT)
    lines = documented()
    assert len(lines) > 40
    check_all(lines, lambda line: understand(shlex.split(line.replace("{seed}", "0"))))
    monkeypatch.undo()
    monkeypatch.chdir(ROOT)
    trainings = [line for line in lines if re.match(r"(experiments\.|azjax )train\b", line)]
    check_all([line for line in trainings if "--help" not in line], start)


# README and guide.


def test_the_readme_is_short_and_states_the_versions_of_python():
    readme = README.read_text()
    assert len(readme.split()) <= 900
    low, high = re.findall(r"You need Python (\S+) to (3\.\d+)", readme)[0]
    assert f'requires-python = ">={low}' in (ROOT / "pyproject.toml").read_text()
    assert f"version_info[:2] <= ({high.replace('.', ', ')})" in (ROOT / "Makefile").read_text()


def test_positions_are_as_many_as_said(tic_tac_toe, solution):
    counts = {
        solution.num_states: [r"reachable positions \| {}", "all {} positions and the"],
        len(solution.decisions): [
            *("all {} positions with", "all {} tic-tac-toe positions with"),
            "of all {} positions with",
        ],
        int(solver.symmetry_classes(tic_tac_toe, solution).max()) + 1: ["[Aa]ll {} positions"],
        int(solver.count_games(solution)[0].sum()): ["all {} possible games"],
    }
    tree = f"{memory.tree_bytes(Gumbel(num_simulations=32), tic_tac_toe) / 1000:.1f} kB"
    assert f"| memory of the search tree of a game, 32 simulations | {tree} |" in guide()
    for count, phrases in counts.items():
        assert all(re.search(phrase.format(f"{count:,}"), guide()) for phrase in phrases), count


def resolve(node, names):
    """The value of a name with attributes in a block of the guide; None if it is a local one."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    owner = resolve(node.value, names) if isinstance(node, ast.Attribute) else None
    if owner is None or not (inspect.ismodule(owner) or inspect.isclass(owner)):
        return None
    return getattr(owner, node.attr)


def test_the_guide_uses_names_and_arguments_that_exist():
    """`tests/system` runs some of these blocks."""

    def check(page):
        names = {}
        for block in blocks(page):
            nodes = list(ast.walk(ast.parse(textwrap.dedent(block))))
            imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
            for node in imports:
                if ast.unparse(node).split()[1].startswith("azjax"):
                    exec(ast.unparse(node), names)
            for node in nodes:
                if isinstance(node, ast.Attribute):
                    resolve(node, names)
                elif isinstance(node, ast.Call) and callable(function := resolve(node.func, names)):
                    given = {keyword.arg: None for keyword in node.keywords if keyword.arg}
                    if not any(isinstance(arg, ast.Starred) for arg in node.args):
                        inspect.signature(function).bind_partial(*node.args, **given)

    check_all(TEXTS, check, AttributeError, ImportError, TypeError)


def test_the_guide_has_what_it_needs():
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "\nuse_directory_urls: false" in settings and "\n  - search\n  - offline " in settings


def test_every_setting_of_a_preset_is_in_the_tables():
    page = HOOKS.on_page_markdown((ROOT / "docs" / "reference" / "settings.md").read_text())
    parts = ("network", "search", "selfplay", "targets", "replay", "learner")
    names = {
        field.name
        for preset in presets.PRESETS.values()
        for part in parts
        for field in dataclasses.fields(getattr(preset, part))
    }
    missing = [name for name in names if f"\n| `{name}` | " not in page]
    assert missing == []
    row = re.search(r"^\| `learning_rate` \| (.*) \| (.*) \| (.*) \| (.*) \|$", page, re.M)
    assert row.groups()[:2] == ("`0.002`", "above 0") and "0.05: paper" in row[3]


def test_a_notebook_has_a_cell_for_each_block():
    cells = HOOKS.make_cells("# A\n\n```python\nx = 1\n```\n\nB\n\n```sh\nls\n```\n")
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert "".join(cells[1]["source"]) == "x = 1" and "ls" in "".join(cells[2]["source"])


def test_each_example_is_in_one_page():
    pages = [page.read_text() for page in PAGES]
    for path in EXAMPLES:
        assert sum(f'--8<-- "examples/{path.name}"' in page for page in pages) == 1, path


# Notebooks.


def test_stored_outputs_are_shown_in_untrusted_notebooks():
    """JupyterLab shows text and sanitized HTML; other kinds only if the notebook is trusted."""
    for path in NOTEBOOKS:
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
