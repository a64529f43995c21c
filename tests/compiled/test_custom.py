"""Custom games and networks: they are played, and programs import only code that is named."""

import io
import pathlib
import shutil
import sys

import pytest

import guard
import misere_pile
from azjax import runs
from azjax.cli import arena, custom, explain, play, report, train, verify
from azjax.runs.config import Config
from refusals import check_program
from small import make_run
from trained import chosen, compiling_once

NETWORK = """
from azjax.networks import MLPConfig, make_network


def make(game):
    return make_network(MLPConfig(hidden=(8,), head_hidden=4), game)
"""
GAME = ["--game", "pile.py:make"]
BOTH = [*GAME, "--network", "net.py:make"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a game, a network, and a run with both."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copy(misere_pile.__file__, folder / "pile.py")
    (folder / "net.py").write_text(NETWORK)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        found = chosen("--smoke", *BOTH)
        parts = custom.parts_for(found.config, found.typed)
        make_run(folder / "run", found.config, game=parts.game, network=parts.network)
    return folder


@pytest.fixture(autouse=True)
def inside(place, tmp_path, monkeypatch):
    """A copy of the folder, which is the current one."""
    monkeypatch.chdir(shutil.copytree(place, tmp_path / "own"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with guard.sharing(), compiling_once():
        yield


PROGRAMS = {
    train: ["--resume", "--run-dir", "run", "--max-iterations", "1"],
    verify: ["--run-dir", "run"],
    report: ["--run-dir", "run"],
    play: ["--run-dir", "run", "--o", "network"],
    arena: ["network@run", "random", "--games", "2"],
    explain: ["--run-dir", "run"],
}


def test_custom_code_is_played(capfd):
    assert play.main([*PROGRAMS[play], *BOTH]) == 0
    assert "X: you, O: network" in capfd.readouterr().out
    words = "--run-dir run --game pile.py:make --network net.py:make"
    assert custom.name_run(pathlib.Path("run"), runs.read_config("run")) == words


def test_no_program_imports_code_that_only_the_run_names(capfd, monkeypatch):
    monkeypatch.setattr(custom, "_import", None)
    first = "azjax imports only code that you name: add --game pile.py:make, if you trust that file"
    for program, words in PROGRAMS.items():
        check_program(program.main, [(words, first), ([*words, *BOTH[2:]], first)], capfd)


def test_a_note_names_each_edited_file_once(capfd):
    typed = custom.RunOptions(pathlib.Path("run"), *BOTH[1::2])
    for name in ("pile.py", "net.py"):
        with pathlib.Path(name).open("a") as file:
            file.write("# A comment.\n")
    for _ in range(2):
        assert custom.open_player(typed)[1].game.name == "misere_pile"
    said = capfd.readouterr().err
    for name in ("pile.py:make", "net.py:make"):
        note = (
            f"{name} was edited since run was trained, or is another function: check that it "
            "computes the same\n"
        )
        assert said.count(note) == 1


def test_the_newest_run_has_the_named_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one#1.py", "other.py"):
        pathlib.Path(name).write_text("old")
    runs.create_run(tmp_path / "run", Config(game=custom.identify("one#1.py:make")))
    monkeypatch.setattr(runs, "find_runs", lambda: iter([tmp_path / "run"]))
    for name in ("one#1.py:make", "one#1.py:other", "other.py:make", None):
        is_found = custom.choose_run(custom.RunOptions(game=name)) is not None
        assert is_found == (name == "one#1.py:make")
    pathlib.Path("one#1.py").write_text("new")
    assert custom.choose_run(custom.RunOptions(game="one#1.py:make")) is None
