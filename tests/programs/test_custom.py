"""Custom games and networks: all programs accept them, and import only code that is named."""

import dataclasses
import importlib.metadata
import io
import pathlib
import shutil
import sys

import pytest

import azjax
import misere_pile
from azjax import games, runs
from azjax._commands import command
from azjax.cli import arena, custom, explain, functions, options, play, report, train, verify
from azjax.proof import certificate

NETWORK = """
import flax.linen as nn

from azjax.networks import from_module


class Shallow(nn.Module):
    actions: int

    @nn.compact
    def __call__(self, planes, train=False):
        x = nn.relu(nn.Dense(8)(planes.reshape(len(planes), -1)))
        return nn.Dense(self.actions)(x), nn.tanh(nn.Dense(1)(x))[:, 0]


def make(game):
    return from_module(game, Shallow(game.num_actions), encoding=game.encodings[0])


broken = print
"""
TINY = ["--smoke", "--no-report", "--max-iterations", "1"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a game, a network, and a run with both."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copy(misere_pile.__file__, folder / "pile.py")
    (folder / "net.py").write_text(NETWORK)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        leave_searches_out(patch)
        assert train.main([*TINY, *GAME, *NETWORK_OPTION, "--run-dir", "run"]) == 0
    return folder


GAME = ["--game", "pile.py:make"]
NETWORK_OPTION = ["--network", "net.py:make"]


def leave_searches_out(monkeypatch):
    """Replaces the two searches of certificates, which take most of the time."""

    def search_policy(parts, search, params):
        return certificate.network_policy(parts, params)

    monkeypatch.setattr(certificate, "search_policy", search_policy)


@pytest.fixture
def inside(place, tmp_path, monkeypatch):
    """A copy of the folder, which is the current one."""
    monkeypatch.chdir(shutil.copytree(place, tmp_path / "own"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    leave_searches_out(monkeypatch)


PROGRAMS = {
    "train": lambda *own: train.main(
        ["--resume", "--run-dir", "run", "--max-iterations", "2", *own]
    ),
    "verify": lambda *own: verify.main(["--run-dir", "run", *own]),
    "report": lambda *own: report.main(["--run-dir", "run", *own]),
    "play": lambda *own: play.main(["--run-dir", "run", "--o", "network", *own]),
    "arena": lambda *own: arena.main(["network@run", "random", "--games", "2", *own]),
    "explain": lambda *own: explain.main(["--run-dir", "run", *own]),
}


def said(capfd):
    """Returns the error, which is one sentence."""
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    return err


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("name", "status", "shown"),
    [
        pytest.param("train", 0, "run directory: run", marks=pytest.mark.slow),
        ("verify", 1, "decision states checked"),
        pytest.param("report", 0, "report: run/report.html", marks=pytest.mark.slow),
        ("play", 0, "X: you, O: network #1"),
        ("arena", 0, "network #1"),
    ],
)
def test_a_program_accepts_custom_code(name, status, shown, inside, capfd):
    assert PROGRAMS[name](*GAME, *NETWORK_OPTION) == status
    assert shown in capfd.readouterr().out
    if name == "train":
        assert runs.iterations("run") == [1, 2]


@pytest.mark.slow
def test_a_page_of_a_small_custom_game_searches(inside, capfd):
    assert PROGRAMS["explain"](*GAME, *NETWORK_OPTION) == 0
    assert capfd.readouterr().err == ""
    page = pathlib.Path("explain.html").read_text()
    for words in ("The search, step by step", "The parts", "How it learned"):
        assert words in page, words
    assert 'data-kind="explorer"' in page and 'data-kind="proof"' in page


@pytest.mark.slow
def test_every_program_accepts_a_game_without_optional_fields(inside, capfd, monkeypatch):
    edit("\n\ndef rules():\n    return Game(*make()[:10])\n")
    own = ["--game", "pile.py:rules", *NETWORK_OPTION, "--run-dir", "rules"]
    assert train.main([*TINY, *own]) == 0
    assert train.main(["--resume", *own, "--max-iterations", "2"]) == 0
    assert runs.iterations("rules") == [1, 2]
    assert verify.main(["--lines", "first", *own]) in (0, 1)
    assert report.main(own) == 0
    capfd.readouterr()
    assert explain.main(own) == 0
    note = "The `most_positions` of misere pile is missing or above 20,000"
    assert note in capfd.readouterr().err
    page = pathlib.Path("explain.html").read_text()
    assert note in page and "First moves" in page and 'data-kind="explorer"' not in page
    monkeypatch.setattr(sys, "stdin", io.StringIO("0\n"))
    capfd.readouterr()
    assert play.main(["--o", "network", *own]) == 0
    shown = capfd.readouterr().out
    assert "board [0 0 0 0 0]\nplayer 0\nover False" in shown and "board [1 0 0 0 0]" in shown


def test_commands_that_training_prints_name_the_custom_code(inside, capfd):
    assert PROGRAMS["train"](*GAME, *NETWORK_OPTION) == 0
    said = capfd.readouterr().out
    words = ["--run-dir", "run", *GAME, *NETWORK_OPTION]
    for program in ("play", "explain"):
        assert f": {command('azjax', program, *words)}\n" in said


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_imports_code_that_only_the_run_names(name, inside, capfd, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(functions, "_import", None)
        assert PROGRAMS[name]() == 2
        assert PROGRAMS[name](*NETWORK_OPTION) == 2
    first, second = capfd.readouterr().err.splitlines()
    assert (
        first
        == second
        == (
            "error: run has a custom game, and azjax imports only code that you name: add --game "
            "pile.py:make, if you trust that file"
        )
    )
    assert PROGRAMS[name](*GAME) == 2
    assert "add --network net.py:make, if you trust that file" in said(capfd)


def edit(text, old="", file="pile.py"):
    """Replaces text in a file, or appends some."""
    path = pathlib.Path(file)
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, text) if old else content + text)


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [("verify", [], 1), ("train", ["--max-iterations", "1"], 0)],  # Starts, and has ended already.
)
def test_an_edited_comment_is_accepted(name, arguments, status, inside, capfd):
    edit("# A comment.\n")
    assert PROGRAMS[name](*GAME, *NETWORK_OPTION, *arguments) == status
    sentence = "pile.py:make was edited since run was trained: check that it computes the same\n"
    assert capfd.readouterr().err.count(sentence) == 1


def test_a_file_can_move_but_not_its_function(inside, capfd):
    pathlib.Path("net.py").rename("moved.py")
    assert verify.main(["--run-dir", "run", *GAME, "--network", "moved.py:make"]) == 1
    capfd.readouterr()
    assert verify.main(["--run-dir", "run", *GAME, "--network", "moved.py:broken"]) == 2
    error = said(capfd)
    assert "run was trained with the function make of this file, not with broken: " in error
    assert error.endswith("use --network moved.py:make\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--game", "none.py:make"], "none.py does not exist: give FILE.py:FUNCTION or"),
        (["--game", "no.module:make"], "no.module does not exist: give FILE.py:FUNCTION or"),
        (["--game", "pile.py:no"], "pile.py has no function 'no': give one of its functions"),
        (["--game", "bad.py:make"], "bad.py cannot be imported (KeyError: 1): fix it first"),
        (["--network", "net.py:broken"], "net.py:broken returns NoneType: return a Network"),
        (["--game", "pile.py"], "pile.py names no function: give pile.py:FUNCTION; functions that"),
        (["--game", "pile.py:"], "pile.py: names no function: give pile.py:FUNCTION; functions"),
        (["--game", "pile.py"], "; functions that take no argument: init, make\n"),
        (["--network", "net.py"], "net.py:FUNCTION; functions that take only a game: make\n"),
        (["--network", "pile.py"], "pile.py names no function: give pile.py:FUNCTION\n"),
        (["--network", "net.py:Module"], "net.py has no function 'Module': give one of its "),
        (["--game", "my.module"], "my.module names no function: give FILE.py:FUNCTION or package."),
        (
            ["--game", "pil.py"],
            "pil.py does not exist: give FILE.py:FUNCTION or package.module:FUNC",
        ),
        (["--game", "pil.py:make"], "package.module:FUNCTION; did you mean pile.py?"),
        (["--game", "conect_four:4x5"], "conect_four does not exist: give FILE.py:FUNCTION or "),
        (["--game", "conect_four:4x5"], "package.module:FUNCTION; did you mean connect_four?"),
        (["--game", "tic_tac_toe:3"], "tic_tac_toe has one size: leave the colon and what follows"),
        (["--game", "pile.py:mak"], "no argument: init, make; did you mean make?"),
        (
            ["--game", "pile.py:init"],
            "returns State: return a Game, or name another function; functions that take no "
            "argument: make\n",
        ),
        (["--game", "pile.py:step"], "pile.py:step cannot be called with no argument (missing a "),
        (
            ["--network", "pile.py:step"],
            "pile.py:step cannot be called with only the game as its argument (missing",
        ),
        (
            ["--game", "bad2.py:make"],
            "bad2.py:make fails (ZeroDivisionError: division by zero, from ",
        ),
        (["--game", "bad2.py:make"], "division by zero, from line 2): fix it first"),
        (["--game", "bad3.py:make"], "bad3.py cannot be imported (SyntaxError: invalid syntax"),
    ],
)
def test_unusable_functions_are_refused(arguments, sentence, inside, capfd):
    pathlib.Path("bad.py").write_text("{}[1]\n")
    pathlib.Path("bad2.py").write_text("def make():\n    return 1 / 0\n")
    pathlib.Path("bad3.py").write_text("def make(:\n")
    assert train.main([*TINY, *arguments]) == 2
    assert sentence in capfd.readouterr().err
    assert not pathlib.Path("runs").exists()


def test_a_run_without_custom_code_refuses_some(tmp_path, capfd):
    runs.create_run(tmp_path / "run", options.parse(["--smoke"]).config)
    run_dir = str(tmp_path / "run")
    for arguments in (["--game", f"{__file__}:x"], ["--game", "connect_four"]):
        assert verify.main(["--run-dir", run_dir, *arguments]) == 2
        assert f"{run_dir} is a run of tic_tac_toe, not of {arguments[1]}" in said(capfd)
    arguments = ["--run-dir", run_dir, "--network", f"{__file__}:x"]
    for program, resume in ((train, ["--resume"]), (verify, [])):
        assert program.main([*resume, *arguments]) == 2
        assert "was trained without a custom network: leave --network out" in said(capfd)


NEIGHBORS = {
    "one/game.py": "import rules\n\ndef make():\n    from names import NAME\n"
    "    return rules.make()._replace(name=NAME)\n",
    "one/rules.py": "from parts.base import make\n",
    "one/parts/base.py": "import azjax\n\ndef make():\n    return azjax.make('tic_tac_toe')\n",
    "one/names.py": "NAME = 'one'\n",
    "two/game.py": "from names import NAME\nimport azjax\n\ndef make():\n"
    "    return azjax.make('hex:3')._replace(name=NAME)\n",
    "two/names.py": "NAME = 'two'\n",
}


def test_a_file_imports_the_files_next_to_it(tmp_path, monkeypatch):
    """Also if another file imports others of the same names, and after an edit."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    for name, text in NEIGHBORS.items():
        pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).write_text(text)
    digests, names = set(), []
    for place in ("one", "two", "one", "./one"):
        digests.add(functions.identify(f"{place}/game.py:make").partition("#")[2])
        names.append(functions.call(f"{place}/game.py:make", games.base.Game).name)
    assert names == ["one", "two", "one", "one"] and len(digests) == 2
    assert custom.find_game("one/game.py:make") is custom.find_game("one/game.py:make")
    for name, edited in (("names", "NAME = 'other'"), ("parts/base", "make = print")):
        pathlib.Path(f"one/{name}.py").write_text(edited)
        digests.add(functions.identify("one/game.py:make").partition("#")[2])
    assert len(digests) == 4
    errors = [("one", "game.py:make fails .*NoneType")]
    pathlib.Path("two/json.py").write_text("")
    edit("import json\n", file="two/game.py")
    errors.append(("two", "two/json.py has the name of another module: rename it"))
    for place, message in errors:
        with pytest.raises(ValueError, match=message):
            custom.find_game(f"{place}/game.py:make")


def test_the_same_file_is_the_same_game(inside):
    assert custom.find_game("pile.py:make") is custom.find_game("pile.py:make")
    before = custom.find_game("pile.py:make")
    pathlib.Path("pile.py").write_text(
        "import azjax\n\n\ndef make():\n    return azjax.make('tic_tac_toe')\n"
    )
    assert custom.find_game("pile.py:make") is not before


def test_installed_packages_register_games(monkeypatch):
    point = importlib.metadata.EntryPoint("pile", "misere_pile:make", "azjax.games")
    found = {"azjax.games": importlib.metadata.EntryPoints([point])}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found[group])
    assert games.available()[0] == "tic_tac_toe" and games.available()[-1] == "pile"
    assert azjax.make("pile").name == "misere_pile"
    config = dataclasses.replace(options.parse(["--smoke"]).config, game="pile")
    assert custom.make_parts(config, custom.NOTHING).game is azjax.make("pile")
