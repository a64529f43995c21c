"""The command `azjax`: its programs, its help, unknown names, and the first line of a program."""

import ast
import importlib
import os
import runpy
import subprocess
import sys
import types

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


def test_it_lists_its_programs_and_refuses_other_names(monkeypatch, capsys):
    for arguments in ([], ["--help"], ["-h"]):
        assert run(monkeypatch, *arguments) == 0
        listed = capsys.readouterr().out
        assert all(f"\n  {name} " in listed for name in cli.PROGRAMS)
    assert run(monkeypatch, "trian") == 2
    assert "unknown program 'trian': use train, verify, " in capsys.readouterr().err


def test_a_program_receives_the_other_arguments_and_returns_its_status(monkeypatch):
    for name in cli.PROGRAMS:
        module = importlib.import_module(f"azjax.cli.{name}")
        monkeypatch.setattr(module, "main", lambda: sys.argv)
        assert run(monkeypatch, name, "--seed", "3") == [f"azjax {name}", "--seed", "3"]


# The first line of a program.


def test_programs_start_before_the_heavy_imports():
    """The first statement of a file runs the program, which imports the rest."""
    experiments = ["label", "ladder", "pictures", "lecture/__main__", "benchmark/__main__"]
    for name in (*cli.PROGRAMS, *experiments):
        package = "azjax.cli." if name in cli.PROGRAMS else "experiments."
        body = ast.parse((ROOT / "experiments" / f"{name}.py").read_text()).body
        start = f"run_program('{package}{name.replace('/', '.')}')"
        code = f"from azjax.cli import run_program\nif __name__ == '__main__':\n    {start}"
        assert "\n".join(map(ast.unparse, body[1:3])) == code, name


def test_a_line_is_printed_before_the_program_is_imported(monkeypatch, capsys):
    def find(name):
        return types.SimpleNamespace(main=lambda: capsys.readouterr().err)

    monkeypatch.setattr(cli.interrupts, "listen", lambda: None)
    monkeypatch.setattr(cli.importlib, "import_module", find)
    for module, process, arguments, line in [
        ("azjax.cli.play", "0", [], "azjax play: starting…\n"),
        ("experiments.lecture.__main__", "0", [], "experiments.lecture: starting…\n"),
        ("azjax.cli.train", "1", [], ""),
        *(("azjax.cli.verify", "0", [option], "") for option in ("--help", "-h", "--json")),
    ]:
        monkeypatch.setenv("JAX_PROCESS_ID", process)
        monkeypatch.setattr(sys, "argv", ["program", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.run_program(module)
        assert stop.value.code == line


def test_a_process_prints_the_line_before_it_imports_jax(tmp_path):
    (tmp_path / "jax.py").write_text("import os\nos.write(2, b'import jax\\n')\nos._exit(0)\n")
    command = [sys.executable, "-m", "experiments.verify"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "azjax verify: starting…\nimport jax\n")


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
