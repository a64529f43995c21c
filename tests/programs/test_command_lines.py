"""Printed commands run as they are, and the programs parse the commands of the guide."""

import ast
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
from types import SimpleNamespace

import pytest

import misere_pile
from azjax import cli, runs
from azjax._commands import command
from azjax.cli import custom, functions, parsing, train
from azjax.cli.players import make_agent
from azjax.runs import presets
from run_directories import make_run
from test_imports import ROOT, TREES
from trained import process_environment

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "experiments" / "benchmark.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "experiments" / "notebooks").glob("*.ipynb"))


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
    parse = parsing.parse

    def only_parse(*arguments, **settings):
        parse(*arguments, **settings)
        raise Accepted

    monkeypatch.setattr(parsing, "parse", only_parse)

    def check(words):
        name, *arguments = words
        if name == "azjax":
            name, *arguments = arguments
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

    return check


# Commands of the guide.


def read(page):
    return page.read_text()


def documented():
    """Lists every command in the pages, the notebooks and the source, after `-m`."""
    sources = [path for path in TREES if path.startswith(("experiments", "azjax/cli"))]
    texts = [path.read_text() for path in [*PAGES, *NOTEBOOKS, *map(ROOT.joinpath, sources)]]
    text = re.sub(r"\\\n\s*", "", "\n".join(texts))
    found = re.findall(r"python -m (experiments\.\w+(?:(?! #|[`\"|&;)…\\]).)*)", text)
    programs = "|".join(cli.PROGRAMS)
    found += re.findall(
        rf"^ *(?:timeout .* )?(azjax (?:{programs}).*?)(?: #.*)?$", text, re.MULTILINE
    )
    found += re.findall(rf"`(azjax (?:{programs})\b[^`…|]*)`", "\n".join(map(read, PAGES)))
    return sorted({re.split(r" A B|, with \{|: ", line)[0].strip() for line in found})


def test_documented_commands_are_parsed(understand, monkeypatch):
    monkeypatch.chdir(ROOT)
    lines = documented()
    assert len(lines) > 40 and len({line.split()[0] for line in lines}) >= 10
    for line in lines:
        understand(shlex.split(line.replace("{seed}", "0")))


def test_a_page_starts_with_how_to_activate_the_environment():
    command = re.compile(r"(?<!bin/)\b(python -m|pip install|azjax (train|verify|play|arena) )")
    for page in PAGES:
        text = page.read_text()
        bare, activated = command.search(text), text.find("source .venv/bin/activate")
        assert bare is None or 0 <= activated < bare.start(), page


# Printed commands.


def test_every_printed_command_is_made_by_one_function():
    """All printed commands come from `command`; no string contains one."""
    written = []
    for path in [*TREES, *(str(p.relative_to(ROOT)) for p in (ROOT / "examples").glob("*.py"))]:
        tree = ast.parse((ROOT / path).read_text())
        documentation = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        written += [
            (path, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and node not in documentation
            if re.search(r"python -m|pip install|(experiments\.|azjax )[a-z]+ --", str(node.value))
        ]
    # The source in the file of labels, which is the same in every environment.
    assert written == [("experiments/label.py", "python -m experiments.label --seed ")]


PROGRAMS = ["arena", "explain", "label", "ladder", "pictures", "play", "report", "seeds", "train"]
PROGRAMS += ["verify", "benchmark", "lecture", "export", "quantize", "add_overrides"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a custom game and a run whose names need quotes in a shell."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(misere_pile.__file__, "its pile.py")
    game = functions.identify("its pile.py:make")
    config = dataclasses.replace(presets.smoke(presets.get("default")), game=game)
    make_run(tmp_path / "its run", config, game=misere_pile.make())
    return tmp_path


def printed(text):
    """Finds the commands in the output of a program, without the rest of their sentence."""
    starts = "|".join(map(re.escape, (command("azjax"), command("X").removesuffix("X"))))
    return re.findall(rf"(?:{starts}).+?(?=, | lists |$)", text, re.MULTILINE)


def conclude_run(run_dir):
    """Prints the last lines of a training."""
    config = runs.read_config(run_dir)
    run = SimpleNamespace(
        run_dir=run_dir,
        loop=SimpleNamespace(iteration=1),
        report=None,
        evaluation=True,
        reached=True,
    )
    train._conclude(run, custom.name_run(run_dir, config, custom.NOTHING), trained=True)


@pytest.mark.slow  # The next test parses them without a shell.
@pytest.mark.parametrize(
    ("program", "statuses"),
    [("play", [0]), ("verify --json", [0, 1]), ("explain", [0])],  # 0 if the player is perfect.
)
def test_printed_commands_run_in_a_bare_shell(program, statuses, folder, capfd):
    run_dir = pathlib.Path("its run")
    conclude_run(run_dir)
    lines = dict.fromkeys(printed(capfd.readouterr().out))
    by_program = dict(zip(("play", "explain", "verify"), lines, strict=True))
    by_program["verify --json"] = f"{by_program['verify']} --json > 'its run/certificate.json'"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    environment |= {name: os.environ[name] for name in ("JAX_PLATFORMS", "XLA_FLAGS")}
    environment |= process_environment() | {"PYTHONPATH": ""}
    done = subprocess.run(
        ["/bin/sh", "-c", by_program[program]],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in statuses and "error" not in done.stderr, done.stderr
    if program == "verify --json":
        written = json.loads((run_dir / "certificate.json").read_text())
        assert written["game"] == "misere_pile"


def test_a_long_command_in_an_error_is_whole(monkeypatch, capsys):
    executable = f"/{'environments/' * 10}bin/python"
    monkeypatch.setattr("sys.executable", executable)
    monkeypatch.setattr("shutil.which", lambda *arguments, **options: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("COLUMNS", "40")
    benchmark = find_program("benchmark")
    for columns in ("40", None):
        if columns is None:
            monkeypatch.delenv("COLUMNS")
        assert benchmark.main(["--speed"]) == 2
        install = f"{executable} -m pip install pgx"
        assert capsys.readouterr().err == f"error: --speed needs pgx: add it with {install}\n"
        assert os.environ.get("COLUMNS") == columns


def test_commands_in_errors_are_parsed(folder, understand, capfd, monkeypatch):
    (folder / "its run").rename("moved")
    with pytest.raises(runs.CheckpointError) as no_run:
        runs.newest("hex:3")
    with pytest.raises(ValueError, match="runs/ has no trained player") as no_player:
        custom.open_run(custom.Typed(game="hex:3"))
    with pytest.raises(ValueError, match="has no override table for 32 simulations") as no_book:
        make_agent(
            "repaired:32", misere_pile.make(), custom.Typed(folder / "moved", "its pile.py:make")
        )
    conclude_run(pathlib.Path("moved"))
    shown = capfd.readouterr().out
    for program in PROGRAMS:
        assert find_program(program).main(["--frobnicate"]) == 2
    assert "azjax.train('hex:3')" in str(no_run.value)
    text = "\n".join([*(str(error.value) for error in (no_player, no_book))])
    lines = printed("\n".join([text, shown, capfd.readouterr().err]))
    assert len(lines) == 2 + 3 + len(PROGRAMS)
    for line in lines:
        words = shlex.split(line)
        understand(words[2:] if words[1] == "-m" else ["azjax", *words[1:]])
