"""What README, guide and messages state is what the code does, and commands in them are parsed."""

import ast
import importlib
import inspect
import re
import shlex
import sys
import textwrap

import pytest

from azjax import cli, training
from azjax.cli import custom, parsing
from mutations import MUTATIONS
from source import PAGES, README, ROOT, blocks, trees
from trained import chosen

TEXTS = [README, ROOT / "CONTRIBUTING.md", *PAGES]
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


def test_documented_commands_are_parsed_and_trainings_can_start(monkeypatch):
    parse = parsing.parse

    def check(line):
        words = shlex.split(line.replace("{seed}", "0"))
        name, *arguments = words[1:] if words[0] == "azjax" else words
        if name.endswith("train") and "--help" not in words:  # The run to resume does not exist.
            parsed = chosen(*(word for word in arguments if word != "--resume"))
            parts = custom.parts_for(parsed.config, parsed.typed)
            training.check_parts(parts, parsed.config.replay.shards)
            return
        with pytest.raises(SystemExit) as stop, monkeypatch.context() as patch:
            patch.setattr(parsing, "parse", lambda *words: parse(*words) and sys.exit(0))
            assert find_program(name.removeprefix("experiments.")).main(arguments) == 0, line
        assert not stop.value.code

    monkeypatch.chdir(ROOT)
    lines = documented()
    assert len(lines) > 40
    check_all(lines, check)


# README and guide.


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


def test_the_tutorial_on_one_file_quotes_it_and_names_files_that_exist():
    page, text = ROOT / "docs/tutorials/one_file.md", (ROOT / "examples/alphazero.py").read_text()
    excerpts, names = blocks(page), re.findall(r"`(\w+/\w+\.py)`", page.read_text())
    assert excerpts and [excerpt for excerpt in excerpts if excerpt not in text] == []
    files = {ROOT / "azjax" / name for name in names if not name.startswith("examples")}
    assert files and [file for file in files if not file.exists()] == []


# The table of mistakes, which `tests/mutations.py` makes.


def test_every_mistake_can_be_made():
    """Its text occurs exactly once, and its tests exist."""

    def check(mutation):
        assert (ROOT / mutation.file).read_text().count(mutation.old) == 1, mutation.old
        for path, _, name in (test.partition("::") for test in mutation.tests.split()):
            assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text(), name

    check_all(MUTATIONS, check, OSError)
    text = (ROOT / "docs/explanation/enumeration.md").read_text()
    assert "inserts more than 400 mistakes into the code" in text and len(MUTATIONS) > 400
