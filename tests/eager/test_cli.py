"""The command `azjax`: its programs, their first lines and progress, and commands in messages."""

import runpy
import subprocess
import sys
import time
import types

import pytest
from rich.console import Console

from azjax import cli
from azjax._commands import command
from azjax.cli import console


def test_it_lists_its_programs_and_refuses_other_names(monkeypatch, capsys):
    for arguments, status in (([], 0), (["--help"], 0), (["trian"], 2)):
        monkeypatch.setattr(sys, "argv", ["azjax", *arguments])
        with pytest.raises(SystemExit, match=str(status)):
            runpy.run_module("azjax", run_name="__main__")
        out, err = capsys.readouterr()
        assert all(f"\n  {name} " in out for name in cli.PROGRAMS) == (status == 0)
    assert "unknown program 'trian': use train, verify, " in err


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


def test_a_pipe_has_lines_about_what_takes_long(monkeypatch, capsys):
    for pause, is_long in ((0.02, True), (3600.0, False)):
        monkeypatch.setattr(console, "_PAUSE", pause)
        with console.busy("compiling…"):
            time.sleep(0.2)
        with console.progress() as bar:
            task = bar.add_task("positions", total=1000)
            bar.update(task, completed=500)
            time.sleep(0.2)
        for _ in console.track(range(2), "seeds"):
            time.sleep(0.2)
        out, err = capsys.readouterr()
        expected = ("compiling…, 0 s\n", "positions: 500 of 1,000, 0 s\n", "seeds: 1 of 2, 0 s\n")
        assert out == "" and [text in err for text in expected] == [is_long] * 3


def test_the_lines_about_a_long_computation_become_rare(monkeypatch):
    waits, times = [], iter([0, 10, 3600, 3600])
    event = types.SimpleNamespace(set=str, wait=lambda pause: waits.append(pause) or waits[1:])
    threads = types.SimpleNamespace(
        Event=lambda: event,
        Thread=lambda target, daemon: types.SimpleNamespace(start=target, join=str),
    )
    monkeypatch.setattr(console, "_PAUSE", 30.0)
    monkeypatch.setattr(console, "threading", threads)
    monkeypatch.setattr(console, "time", types.SimpleNamespace(monotonic=lambda: next(times)))
    with console._lines(str):
        pass
    assert waits == [30, 360]


def test_errors_of_files_name_them(capsys):
    def fail():
        raise FileNotFoundError(2, "No such file or directory", "openings.txt")

    assert console.run(fail, "not started") == 2
    assert capsys.readouterr().err == "error: openings.txt: No such file or directory\n"


def test_names_in_a_narrow_terminal_stand_above_their_numbers(monkeypatch, capsys):
    titles, row = ("player", "against", "won"), ["alphazero(32)", "minimax", "1,234"]
    lines = {}
    for width in (30, 20):
        monkeypatch.setattr(console, "_open_stdout", lambda width=width: Console(width=width))
        console.print_table(titles, [row], names=2, title="games")
        lines[width] = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[30][1:] == ["player        against   won", "alphazero(32) minimax 1,234"]
    assert lines[20] == ["games", "  won", "alphazero(32) –", "minimax", "1,234"]


def test_commands_in_messages_are_of_this_environment_and_quoted(tmp_path, monkeypatch):
    own, other = tmp_path / "own", tmp_path / "other"
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(own))
    words = ["install", "azjax[notebook]", "one two", "it's", "$HOME", "#", "", 12, ";"]
    read = ["sh", "-c", f"printf '%s\\n' {command('none', *words)}"]
    printed = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[1:] == ["-m", "none", *map(str, words)]
    for folder in (own, other):
        folder.mkdir()
        (folder / "azjax").touch(mode=0o755)
    for path, expected in ((own, "azjax"), (other, f"{own}/azjax")):
        monkeypatch.setenv("PATH", str(path))
        assert command("azjax", "play") == f"{expected} play"
