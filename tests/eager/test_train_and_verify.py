"""What programs refuse before they compile anything; their help, their cache, and exit status."""

import dataclasses
import os
import pathlib
import types
import warnings
from unittest.mock import Mock

import numpy as np
import pytest

from azjax import cli, games, program
from azjax.cli import arena, compare, custom, doctor, explain, play, report, train, verify
from azjax.proof import certificate as certificates
from azjax.proof.certificate import Certificate
from experiments import ladder
from experiments.benchmark import __main__ as benchmark
from refusals import check_program
from trained import files

TRAIN = [
    ("--game chess", "unknown game 'chess'", "tic_tac_toe, connect_four"),
    ("train", "train", "--help"),
    ("hex:3", "'hex:3' is unknown here; did you mean --game hex:3?"),
    ("--learner.batch-size 1001", "learner.batch_size is 1001", "such as 1008"),
    ("--game connect_four --until perfect", "until is 'perfect', but connect_four ...'never'"),
    ("--resume --run_dir nothing", "nothing is not a run directory", "config.json"),
    ("--run-dir /dev/null/run", "/dev/null/run cannot be created", "choose another folder"),
    ("--smoke --run-dir dangling", "dangling exists already and is not", "another folder"),
    ("--smoke --run-dir some/deep/run", "refused while compiling"),  # Nothing is left behind.
]
VERIFY = [
    ("--run-dir nothing", "nothing is not a run directory", "use connect_four, "),
    ("one", "one is not a run directory", "no player 'one' comes with azjax: use connect_four, "),
    ("othello", "othello is a folder here, which hides the player"),
    ("--lines first --until perfect", "--until is for all positions: leave it out"),
    ("--lines first --simulations 1 2", "--lines examines one player: give --simulations a"),
    ("--repair 9", "--repair is a setting of --lines: add --lines first"),
    ("hex:6 --until perfect", "hex:6 has too many positions to enumerate: add --lines first"),
    ("connect_four --until perfect", "so --until perfect cannot be proved: leave it out"),
]
ARENA = [
    ("random", "name 2 players or more"),
    ("random othello", "othello is a folder here, which hides the player"),
    ("random random --game tic_tac_toe", "two players are called random: give them"),
    ("random runs", "runs is a folder: write network@runs if it"),
    ("random network@othello --game othello", "othello is a folder here, which hides the player"),
    ("random --game go_5x5", "unknown game 'go_5x5': use one of", "such as pgx:go_9x9"),
]
PLAY = [
    ("--game hex:5 --o human --x network", "'network' needs the network of a training run"),
    ("hex:4 --run-dir x", "name one player, hex:4 or --run-dir x"),
    ("puct:50", "puct:50 is not a run directory"),
    ("--x you", "unknown player 'you': use one of random, ", "or human in azjax play"),
]
NO_RUN = [("", "runs/ has no such player", ": train one", "with --run-dir")]
OTHERS = {
    compare: [("--game hex:6 --smoke", "hex:6 has no exact errors", "smaller size, such as hex:4")],
    doctor: [("hex:6", "hex:6 comes with azjax, without a checkpoint: name a run's folder")],
    benchmark: [("--batch --batch-sizes 9", "use multiples of 8")],
    ladder: [("--games connect_four", "connect_four cannot be solved")],
    **dict.fromkeys((report, explain), NO_RUN),
}


def test_programs_refuse_bad_options(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    refuse = Mock(side_effect=ValueError("refused while compiling"))
    monkeypatch.setattr(program, "_compile", refuse)
    (tmp_path / "dangling").symlink_to("nothing")
    for name in ("othello", "runs"):
        (tmp_path / name).mkdir()
    before = files(tmp_path)
    rows = {train: TRAIN, verify: VERIFY + NO_RUN, arena: ARENA, play: PLAY}
    for each, refused in (rows | OTHERS).items():
        check_program(each.main, refused, capfd)
    assert files(tmp_path) == before


def test_programs_keep_what_they_compile_in_the_cache_folder_of_the_user(tmp_path, monkeypatch):
    """Unless a variable names another folder, or it cannot be written."""
    name = "JAX_COMPILATION_CACHE_DIR"
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(warnings, "filterwarnings", lambda *given: None)
    for base, mine in (("cache", None), ("cache", "mine"), ("file", None)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / base))
        monkeypatch.setenv(name, mine) if mine else monkeypatch.delenv(name)
        cli.keep_compiled()
        (folder,) = (tmp_path / "cache" / "azjax").iterdir()
        expected = str(folder) if (base, mine) == ("cache", None) else mine
        assert os.environ.get(name) == expected and folder.stat().st_mode & 0o777 == 0o700


def test_help_is_as_wide_as_the_terminal_and_lists_the_settings(monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "50")
    for each, option in ((train, "--learner.batch-size"), (verify, "--simulations")):
        with pytest.raises(SystemExit) as stop:
            each.main(["--help"])
        out, err = capfd.readouterr()
        assert (stop.value.code, err) == (0, "") and option in out
        assert max(map(len, out.splitlines())) <= 50


@pytest.mark.parametrize(
    ("blunders", "lost", "arguments", "status"),
    [
        (0, 0, "--simulations 2 7", 0),
        (1, 0, "", 1),
        (1, 0, "--until unbeatable", 0),
        (1, 1, "--until unbeatable", 1),
    ],
)
def test_verify_returns_whether_the_goal_holds(blunders, lost, arguments, status, monkeypatch):
    fields = {field.name: 0 for field in dataclasses.fields(Certificate)}
    fields |= {"versions": {}, "device": "", "game": "", "searches": ()}

    def issue(player, simulations, solution):
        assert simulations == ((2, 7) if "--simulations" in arguments else None)
        return Certificate(**fields | {"blunders": blunders, "losing_lines_second": lost})

    player = types.SimpleNamespace(game=games.make("tic_tac_toe"), name=None)
    monkeypatch.setattr(custom, "open_player", lambda typed: (pathlib.Path("run"), player))
    solution = Mock(decisions=[], action_values=np.zeros((0, 9)), decision_states=None)
    monkeypatch.setattr(verify.console, "solve", lambda game: solution)
    monkeypatch.setattr(certificates, "verify", issue)
    monkeypatch.setattr(certificates, "examine", Mock(return_value=Mock(actions=np.zeros(0, int))))
    assert verify.main(arguments.split()) == status
