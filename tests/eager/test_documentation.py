"""What README, guide and messages state is what the code does, and commands in them are parsed."""

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import pathlib
import re
import shlex
import shutil
import textwrap
import tomllib
from types import SimpleNamespace

import pytest

import misere_pile
from azjax import cli, runs, training
from azjax._commands import command
from azjax.cli import custom, functions, options, parsing, players, specs, train
from azjax.games import solver
from azjax.runs import presets
from azjax.search import Gumbel
from azjax.training import memory
from source import EXAMPLES, PAGES, README, ROOT, blocks, guide, load, trees

TEXTS = [README, ROOT / "CONTRIBUTING.md", ROOT / "experiments" / "benchmark.md", *PAGES]
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
    monkeypatch.setattr(options, "fill", only_fill)
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


def test_documented_commands_are_parsed(understand, monkeypatch):
    monkeypatch.chdir(ROOT)
    lines = documented()
    assert len(lines) > 40
    check_all(lines, lambda line: understand(shlex.split(line.replace("{seed}", "0"))))


def test_every_documented_training_can_be_started():
    def check(line):
        words = shlex.split(line)
        arguments = words[words.index("train") + 1 if "train" in words else 1 :]
        parsed = options.parse([word for word in arguments if word != "--resume"])
        parts = custom.make_parts(parsed.config, parsed.typed)
        training.check_parts(parts, parsed.config.replay.shards)

    lines = [line for line in documented() if re.match(r"(experiments\.|azjax )train\b", line)]
    assert len(lines) > 10
    check_all([line for line in lines if "--help" not in line], check)


def test_a_page_starts_with_how_to_activate_the_environment():
    command = re.compile(r"(?<!bin/)\b(python -m|pip install|azjax (train|verify|play|arena) )")

    def check(page):
        text = page.read_text()
        bare, activated = command.search(text), text.find("source .venv/bin/activate")
        assert bare is None or 0 <= activated < bare.start()

    check_all(TEXTS, check)


def test_every_printed_command_is_made_by_one_function():
    """All printed commands come from `command`; no string contains one."""
    examples = {f"examples/{path.name}": ast.parse(path.read_text()) for path in EXAMPLES}
    written = []
    for path, tree in (trees() | examples).items():
        nodes = list(ast.walk(tree))
        documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        written += [
            (path, node.value)
            for node in nodes
            if isinstance(node, ast.Constant) and id(node) not in documentation
            if re.search(r"python -m|pip install|(experiments\.|azjax )[a-z]+ --", str(node.value))
        ]
    # The source in the file of labels, which is the same in every environment.
    assert written == [("experiments/label.py", "python -m experiments.label --seed ")]


PROGRAMS = [*cli.PROGRAMS, "label", "ladder", "pictures", "benchmark", "lecture", "quantize"]


def printed(text):
    """Finds the commands in the output of a program, without the rest of their sentence."""
    starts = "|".join(map(re.escape, (command("azjax"), command("X").removesuffix("X"))))
    return re.findall(rf"(?:{starts}).+?(?=, | lists |$)", text, re.MULTILINE)


def test_commands_in_messages_are_parsed(understand, capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shutil.copy(misere_pile.__file__, "its pile.py")
    config = presets.smoke(presets.get("default"))
    config = dataclasses.replace(config, game=functions.identify("its pile.py:make"))
    runs.create_run(tmp_path / "its run", config)
    with pytest.raises(ValueError, match="runs/ has no trained player of hex:3") as no_player:
        custom.open_run(custom.Typed(game="hex:3"))
    player = SimpleNamespace(iteration=0, name=None, game=None)
    with pytest.raises(ValueError, match="has no override table for 32 simulations") as no_table:
        players._repaired_agent(specs.parse("repaired:32"), player, tmp_path / "its run")
    run = SimpleNamespace(
        run_dir=pathlib.Path("its run"),
        loop=SimpleNamespace(iteration=1),
        report=None,
        evaluation=True,
        reached=True,
    )
    train._conclude(run, custom.name_run(run.run_dir, config, custom.NOTHING), trained=True)
    for program in PROGRAMS:
        assert find_program(program).main(["--frobnicate"]) == 2
    captured, errors = capfd.readouterr(), (no_player.value, no_table.value)
    lines = printed("\n".join([*map(str, errors), captured.out, captured.err]))
    assert len(lines) == 2 + 3 + len(PROGRAMS)
    words = [shlex.split(line) for line in lines]
    check_all(words, lambda w: understand(w[2:] if w[1] == "-m" else ["azjax", *w[1:]]))


# README and guide.


def test_the_readme_is_short_and_states_the_versions_of_python():
    readme = README.read_text()
    assert len(readme.split()) <= 900
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    low, high = re.findall(r"You need Python (\S+) to (3\.\d+)", readme)[0]
    assert project["requires-python"].startswith(f">={low}")
    assert f"version_info[:2] <= ({high.replace('.', ', ')})" in (ROOT / "Makefile").read_text()
    iteration, quickstart = blocks(README)
    assert len(list(filter(None, iteration.splitlines()))) <= 12
    assert len(re.findall(r"^(?:import|from) ", quickstart, re.MULTILINE)) == 1


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
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.match(r"[\w-]+", name)[0] for name in extras["optional-dependencies"]["docs"]]
    assert "ruff" in names  # Which lays out signatures.
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "\nuse_directory_urls: false" in settings and "\n  - search\n  - offline " in settings
    recipe = (ROOT / "Makefile").read_text().partition("\ndocs: ")[2].partition("\n\n")[0]
    assert "mkdocs build" in recipe and recipe.endswith('@echo "The guide: site/index.html"')


def test_tables_of_docstrings_have_each_row_on_one_line():
    """Markdown makes a row of every line: a second one is a row without a name."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for path, tree in trees().items():
        docs = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, holders)]
        assert [text for text in docs if text and re.search(r"^\|\s+\|.*", text, re.M)] == [], path


def test_every_setting_of_a_preset_is_in_the_tables():
    hook = load("docs/settings_hook.py")
    page = hook.on_page_markdown((ROOT / "docs" / "reference" / "settings.md").read_text())
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
    assert row.groups()[:2] == ("`0.002`", "above 0")
    assert "0.05: paper" in row[3] and "learning rate" in row[4]
    commands = (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert "settings:" not in hook.on_page_markdown(commands)


def test_a_notebook_has_the_text_of_its_page_and_a_cell_for_each_block():
    script = load("docs/make_notebooks.py")
    pages = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
    assert len(pages) == 4
    for page in pages:
        text = page.with_suffix(".ipynb").read_text(encoding="utf-8")
        assert text == script.make_notebook(page), "run python docs/make_notebooks.py"
    cells = script.make_cells("# A\n\n```python\nx = 1\n```\n\nB\n\n```sh\nls\n```\n")
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert "".join(cells[1]["source"]) == "x = 1" and "ls" in "".join(cells[2]["source"])


LONGER = ("counterexamples", "dots_and_boxes")  # An experiment with controls; a game with pictures.


def test_there_are_twelve_short_examples_and_each_is_in_one_page():
    pages = [page.read_text() for page in PAGES]
    assert len(EXAMPLES) == 12

    def check(path):
        lines = len(path.read_text().splitlines())
        assert lines <= (100 if path.stem in LONGER else 80)
        assert sum(f'--8<-- "examples/{path.name}"' in page for page in pages) == 1

    check_all(EXAMPLES, check)
