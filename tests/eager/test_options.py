"""The command `azjax`: options of training, named functions, first lines and progress."""

import dataclasses
import functools
import pathlib
import runpy
import shutil
import subprocess
import sys
import time
import types
from unittest.mock import ANY, Mock, call

import pytest

import misere_pile
from azjax import _processes as processes
from azjax import cli, program, runs
from azjax._commands import command
from azjax.cli import console, custom, train
from azjax.networks import MLPConfig, Network, ResNetConfig
from azjax.runs import presets
from azjax.runs.config import Plan
from misere_pile import NIM
from refusals import assert_refused
from source import ROOT
from trained import chosen


def parse(arguments):
    return chosen(*arguments.split())


def test_an_option_chooses_the_kind_of_network():
    rows = [
        ("", presets.get("default").network),
        ("--network.kind mlp", MLPConfig()),
        ("--network.kind resnet", presets.get("default").network),  # Its values are kept.
        ("--network.hidden 7 8 --network.kind mlp", MLPConfig(hidden=(7, 8))),
        ("--preset paper", presets.get("paper").network),
        ("--smoke", ResNetConfig(width=16, blocks=1, head_hidden=16)),
        ("--smoke --network.kind mlp", MLPConfig(hidden=(32,), head_hidden=16)),
        ("--smoke --network.width 5", ResNetConfig(width=5, blocks=1, head_hidden=16)),
    ]
    assert [(words, parse(words).config.network) for words, _ in rows] == rows


def test_a_game_has_its_preset_unless_another_is_chosen():
    """Its run has the names of both."""
    four = "connect_four:4x5"
    for arguments, preset, game, name in [
        ("", "default", "tic_tac_toe", "tic_tac_toe-default"),
        ("--smoke --game=connect_four", "connect_four", "connect_four", "connect_four"),
        ("--game pgx:go_5x5", "large", "pgx:go_5x5", "pgx-go_5x5-large"),
        (f"--game {four}", "enumerable", four, "connect_four-4x5-enumerable"),
        ("--preset connect_four", "connect_four", "connect_four", "connect_four"),
        ("--preset mlp --game nim", "mlp", "nim", "nim-mlp"),
    ]:
        found, config = parse(arguments), presets.get(preset)
        config = presets.smoke(config) if "--smoke" in arguments else config
        assert (found.preset, found.config) == (preset, dataclasses.replace(config, game=game))
        assert str(program._name_runs(game, preset)) == f"runs/{name}"
    plan = parse("--smoke --no-report --checkpoint_every=3 --max-iterations 4").plan
    assert plan == Plan("never", 4, checkpoint_every=3, report=False)


DOTS, PILE = f"{ROOT}/examples/dots_and_boxes.py:make", f"{misere_pile.__file__}:make"
DOMINEERING = f"{ROOT}/examples/domineering.py:make"


def test_a_custom_game_has_the_preset_for_its_number_of_positions():
    for game, preset, encoding in (
        *((DOTS, "enumerable", "edges"), (PILE, "default", "relative")),
        (DOMINEERING, "large", "relative"),
    ):
        found, config = chosen("--game", game), presets.get(preset)
        assert (found.preset, found.typed.game) == (preset, game)
        network = dataclasses.replace(config.network, encoding=encoding)
        changes = {"network": network, "game": custom.identify(game)}
        assert found.config == dataclasses.replace(config, **changes)
    for arguments in ("--preset paper", "--network.kind mlp", "--smoke"):
        found = chosen("--game", DOTS, *arguments.split())
        assert custom.parts_for(found.config, found.typed).network.encoding == "edges"
    given = chosen("--game", DOTS, "--network.encoding=absolute")
    call = functools.partial(custom.parts_for, given.config, given.typed)
    assert_refused((call, "network.encoding for dots_and_boxes is 'absolute': use 'edges'"))


def test_a_custom_game_is_made_after_the_devices_are_chosen(monkeypatch):
    calls = Mock(**{"find_game.side_effect": ValueError("found")})
    monkeypatch.setattr(custom, "find_game", calls.find_game)
    for name in ("set_cpu_devices", "join"):
        monkeypatch.setattr(processes, name, getattr(calls, name))
    words = ["--game", DOTS, "--cpu-devices", "2"]
    monkeypatch.setattr(sys, "argv", ["train", *words])
    several = [*words, "--distributed", "--run-dir", "run"]
    assert_refused(
        (lambda: train._main(None), "found"),
        (lambda: train._main(several), "found"),
        (lambda: train._main([*several, "--learner.steep", "1"]), "'--learner.steep' is unknown"),
    )
    started = [call.set_cpu_devices(2), call.find_game(ANY)]
    assert calls.mock_calls == [*started, call.join(), *started]


def test_the_number_of_devices(tmp_path, monkeypatch):
    """A power of two, or that of the run to resume, unless it is given."""
    runs.create_run(tmp_path / "run", presets.get("default"), SAVED_PLAN)
    numbers = []
    monkeypatch.setattr(processes, "set_cpu_devices", numbers.append)
    monkeypatch.setattr(processes, "cores", lambda: 7)
    resumed = ["--resume", "--run-dir", str(tmp_path / "run")]
    for words in ([], ["--cpu-devices", "1"], resumed, [*resumed, "--cpu-devices", "1"]):
        train._prepare(*train.read_words(words), alone=True)
    assert numbers == [4, 1, 3, 1]


SAVED_PLAN = {"until": "never", "cpu_devices": 3}


def test_options_without_a_meaning_are_refused(tmp_path):
    rows = [
        ("--preset=mlp --network.norm=layer", "norm is a setting of resnet: ...--network.kind"),
        ("--until perfekt", "--until is 'perfekt': use 'auto', ", "; did you mean perfect?"),
        ("--learner.steps 1 2", "'2' is unknown here"),
        ("--learner.steps", "--learner.steps: expected one argument"),
        ("--learner.steep 1", "'--learner.steep' is unknown", "--help lists what is allowed"),
        ("--network.kind custom", "--network.kind is 'custom': use 'resnet' or 'mlp'"),
        ("--resume", "--resume needs the folder of the run: add --run-dir runs/NAME"),
        (f"--network {PILE} --network.kind mlp", "names a custom network: leave --network.kind"),
        (f"--parts {PILE} --learner.steps 5", "own settings: leave --learner.steps out"),
        (f"--parts {PILE} --game {PILE}", "own settings: leave --game out, or leave --parts"),
        (f"--parts {PILE}", "misere_pile.py:make returns Game: return a Parts, or name another"),
    ]
    # A resumed run keeps its settings.
    config, resume = presets.smoke(presets.get("default")), f"--resume --run-dir {tmp_path}/run"
    runs.create_run(tmp_path / "run", config, SAVED_PLAN)
    rows += [
        (f"{resume} --network.kind mlp", "network.kind was 'resnet', not 'mlp'"),
        (f"{resume} --network.hidden 4", "--network.hidden is a setting of mlp: leave it out, or"),
        (f"{resume} --preset paper", "a resumed run keeps its settings: leave --preset out"),
        (f"{resume} --network {PILE}", "was trained without --network: leave it out"),
    ]
    calls = [(functools.partial(parse, words), *said) for words, *said in rows]
    assert_refused(*calls, error=(ValueError, runs.CheckpointError))
    resumed = parse(f"{resume} --until never --max-iterations 9")
    assert resumed.config == config
    assert (resumed.plan.until, resumed.plan.max_iterations) == ("never", 9)
    assert runs.read_run(tmp_path / "run")[1:] == (Plan(until="never"), 3)


def test_unusable_functions_are_refused_and_files_import_the_files_next_to_them(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    shutil.copy(misere_pile.__file__, "pile.py")
    pathlib.Path("game.py").write_text("import pile\nmake = pile.make\n")
    pathlib.Path("keys.py").write_text("{}[1]\n")
    pathlib.Path("bad.py").write_text(
        "def divides(): return 1 / 0\ndef other(game): return 3\n"
        "def refuses(): raise ValueError('use 2')\n"
    )
    rows = [
        ("none.py:make", "'none.py' is neither a Python file nor a game of several sizes: give"),
        ("conect_four:4x5", "'conect_four' is neither", "; did you mean connect_four?"),
        ("keys.py:make", "keys.py:make fails (KeyError: 1): fix it first"),
        ("pile.py:mak", "fails (AttributeError: module ...pile_py'", "no attribute 'mak'): fix it"),
        ("bad.py:refuses", "bad.py:refuses: use 2"),
        ("pile.py:init", "returns State: return a Game, or name another function"),
        ("bad.py:divides", "fails (ZeroDivisionError: division by zero): fix it"),
    ]
    calls = [(functools.partial(custom.find_game, spec), *said) for spec, *said in rows]
    load = functools.partial(custom.load_code, "bad.py:other", Network, NIM)
    assert_refused(*calls, (load, "bad.py:other returns int: return a Network"))
    assert custom.find_game("game.py:make") is custom.find_game("game.py:make")


# The command azjax: its programs, their first lines and progress, and commands in messages.


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
        *(("azjax.cli.verify", "0", [option], "") for option in ("--help", "-h")),
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
    wait = Mock(side_effect=[False, True])
    threads = Mock(Event=lambda: Mock(wait=wait), Thread=lambda target, daemon: Mock(start=target))
    monkeypatch.setattr(console, "_PAUSE", 30.0)
    monkeypatch.setattr(console, "threading", threads)
    monkeypatch.setattr(console, "time", Mock(**{"monotonic.side_effect": [0, 10, 3600, 3600]}))
    with console._lines(str):
        pass
    assert wait.mock_calls == [call(30), call(360)]


def test_errors_are_one_sentence_and_name_their_files(capsys):
    file = FileNotFoundError(2, "No such file or directory", "openings.txt")
    for error, said in (
        (file, "openings.txt: No such file or directory"),
        (FloatingPointError("loss became nan"), "loss became nan"),
    ):
        assert console.run(Mock(side_effect=error), "not started") == 2
        assert capsys.readouterr().err == f"error: {said}\n"


def test_names_in_a_narrow_terminal_stand_above_their_numbers(monkeypatch, capsys):
    titles, row = ("player", "against", "won"), ["alphazero(32)", "minimax", "1,234"]
    lines = {}
    for width in (30, 20):
        monkeypatch.setenv("COLUMNS", str(width))
        console.print_table(titles, [row], names=2, title="games")
        lines[width] = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[30][1:] == ["player        against   won", "alphazero(32) minimax 1,234"]
    assert lines[20] == ["games", "  won", "alphazero(32) – minimax", "1,234"]


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
