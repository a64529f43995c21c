"""The command `azjax`: its programs, its help, and names that are none."""

import importlib
import runpy
import sys

import pytest

from azjax import cli
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


def test_a_name_that_is_none_is_refused(monkeypatch, capsys):
    assert run(monkeypatch, "trian") == 2
    assert "there is no program 'trian': use train, verify, " in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.PROGRAMS)
def test_a_program_gets_the_other_arguments_and_gives_its_status(name, monkeypatch):
    module = importlib.import_module(f"azjax.cli.{name}")
    monkeypatch.setattr(module, "main", lambda: sys.argv)
    assert run(monkeypatch, name, "--seed", "3") == [f"azjax {name}", "--seed", "3"]


@pytest.mark.parametrize("name", cli.PROGRAMS)
def test_the_same_program_is_in_experiments(name):
    text = (ROOT / "experiments" / f"{name}.py").read_text()
    assert f'run_program("azjax.cli.{name}")' in text
