"""The command `azjax`: its programs, its help, unknown names, and the first line of a program."""

import importlib
import os
import runpy
import subprocess
import sys

import pytest

from azjax import cli
from terminal import Terminal
from test_imports import ROOT


def run(monkeypatch, *arguments):
    """Runs `python -m azjax`; returns the exit status."""
    monkeypatch.setattr(sys, "argv", ["azjax", *arguments])
    monkeypatch.setattr(cli.interrupts, "listen", lambda: None)
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("azjax", run_name="__main__")
    return stop.value.code


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_it_lists_its_programs(arguments, monkeypatch, capsys):
    assert run(monkeypatch, *arguments) == 0
    listed = capsys.readouterr().out
    assert all(f"\n  {name} " in listed for name in cli.PROGRAMS)


def test_an_unknown_name_is_refused(monkeypatch, capsys):
    assert run(monkeypatch, "trian") == 2
    assert "unknown program 'trian': use train, verify, " in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.PROGRAMS)
def test_a_program_receives_the_other_arguments_and_returns_its_status(name, monkeypatch):
    module = importlib.import_module(f"azjax.cli.{name}")
    monkeypatch.setattr(module, "main", lambda: sys.argv)
    assert run(monkeypatch, name, "--seed", "3") == [f"azjax {name}", "--seed", "3"]


@pytest.mark.parametrize("name", cli.PROGRAMS)
def test_the_same_program_is_in_experiments(name):
    text = (ROOT / "experiments" / f"{name}.py").read_text()
    assert f'run_program("azjax.cli.{name}")' in text


# The first line of a program.


@pytest.fixture
def environment(tmp_path):
    """An environment in which the import of JAX prints a line and ends the process."""
    (tmp_path / "jax.py").write_text("import os\nos.write(2, b'import jax\\n')\nos._exit(0)\n")
    return os.environ | {"PYTHONPATH": str(tmp_path)}


def read_stderr(environment, *arguments):
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == ""
    return done.stderr


NAMES = {f"experiments.{name}": f"azjax {name}" for name in cli.PROGRAMS}
NAMES |= {f"experiments.{name}": f"experiments.{name}" for name in ("label", "ladder", "pictures")}
NAMES |= {f"experiments.{name}": f"experiments.{name}" for name in ("lecture", "benchmark")}


@pytest.mark.parametrize(("module", "name"), NAMES.items())
def test_the_first_line_comes_before_the_heavy_imports(module, name, environment):
    assert read_stderr(environment, module) == f"{name}: starting…\nimport jax\n"


def test_the_command_prints_the_same_line(environment):
    assert read_stderr(environment, "azjax", "play") == "azjax play: starting…\nimport jax\n"


@pytest.mark.parametrize("option", ["--help", "-h", "--json"])
def test_help_and_json_have_no_first_line(option, environment):
    assert read_stderr(environment, "experiments.verify", option) == "import jax\n"


def test_only_process_0_has_a_first_line(environment):
    for process, first in (("0", "azjax train: starting…\n"), ("1", "")):
        environment["JAX_PROCESS_ID"] = process
        assert read_stderr(environment, "experiments.train") == f"{first}import jax\n"


def test_a_terminal_shows_the_line_until_the_imports_end():
    lines = """
import sys, types
from azjax.cli import run_program
sys.modules["azjax.cli.test"] = types.SimpleNamespace(main=lambda: print("done"))
run_program("azjax.cli.test")
"""
    with Terminal(["-c", lines], os.environ | {"PYTHONPATH": str(ROOT)}) as terminal:
        assert terminal.finish() == 0
    line = "azjax test: starting…"
    assert terminal.screen == f"{line}\r{' ' * len(line)}\rdone\n"
