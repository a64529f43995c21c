"""What `azjax train` and `azjax verify` refuse before they compile anything; help and status."""

import dataclasses
import os
import pathlib
import types
import warnings

import numpy as np
import pytest

from azjax import cli, games, program
from azjax.cli import arena, compare, custom, explain, play, report, train, verify
from azjax.proof import certificate as certificates
from azjax.proof.certificate import Certificate
from refusals import check_program
from trained import chosen, files

TRAIN = [
    ("--game chess", "unknown game 'chess'", "tic_tac_toe, connect_four"),
    ("--preset tiny", "unknown preset 'tiny'", "default, paper, mlp, connect_four"),
    ("train", "train", "--help"),
    ("hex:3", "'hex:3' is unknown here; did you mean --game hex:3?"),
    ("--learner.batch-size 1001", "learner.batch_size is 1001", "such as 1008"),
    ("--replay.capacity 100", "replay.capacity is 100", "use at least 8192"),
    ("--game connect_four --until perfect", "until is 'perfect', but connect_four ...'never'"),
    ("--max-minutes -1", "--max-minutes is -1.0: use 0 or more"),
    ("--resume --run_dir nothing", "nothing is not a run directory", "config.json"),
    ("--run-dir /dev/null/run", "/dev/null/run cannot be created", "choose another folder"),
    ("--smoke --run-dir dangling", "dangling exists already and is not", "another folder"),
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
COMPARE = [
    ("--game hex:6 --smoke", "hex:6 has no exact errors", "in a smaller size, such as hex:4"),
]
PLAY = [
    ("--game hex:5 --o human --x network", "'network' needs the network of a training run"),
    ("hex:4 --run-dir x", "name one player, hex:4 or --run-dir x"),
    ("puct:50", "puct:50 is not a run directory"),
    ("--x you", "unknown player 'you': use one of random, ", "or human in azjax play"),
]


def test_programs_refuse_bad_options(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "_compile", None)
    (tmp_path / "dangling").symlink_to("nothing")
    for name in ("othello", "runs"):
        (tmp_path / name).mkdir()
    before = files(tmp_path)
    rows = {train: TRAIN, verify: VERIFY, arena: ARENA, compare: COMPARE, play: PLAY}
    for each, refused in rows.items():
        check_program(each.main, refused, capfd)
    for each in (verify, report, explain):
        of_game = [("", "runs/ has no such player", ": train one", "with --run-dir")]
        check_program(each.main, of_game, capfd)
    assert files(tmp_path) == before


def test_a_run_that_does_not_compile_leaves_nothing_behind(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def refuse(*arguments):
        raise ValueError("refused while compiling")

    monkeypatch.setattr(program, "_compile", refuse)
    check_program(train.main, [("--smoke --run-dir some/deep/run", "refused while com")], capfd)
    assert files(tmp_path) == {}


def test_a_run_has_the_name_of_its_game_and_preset():
    for arguments, name in (
        ("", "runs/tic_tac_toe-default"),
        ("--game connect_four:4x5", "runs/connect_four-4x5-enumerable"),
        ("--game connect_four", "runs/connect_four"),
        ("--preset mlp", "runs/tic_tac_toe-mlp"),
    ):
        parsed = chosen(*arguments.split())
        assert str(program._name_runs(parsed.config.game, parsed.preset)) == name


def test_programs_keep_what_they_compile_in_the_cache_folder_of_the_user(tmp_path, monkeypatch):
    """Unless a variable names another folder, or it cannot be written."""
    name = "JAX_COMPILATION_CACHE_DIR"
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(warnings, "filterwarnings", lambda *given: None)
    for base, set_before, kept in [
        (tmp_path / "cache", None, tmp_path / "cache" / "azjax"),
        (tmp_path / "cache", "mine", None),
        (tmp_path / "file", None, None),
    ]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(base))
        monkeypatch.setenv(name, set_before) if set_before else monkeypatch.delenv(name)
        cli.keep_compiled()
        if kept is not None:
            (folder,) = kept.iterdir()
            assert os.environ[name] == str(folder) and folder.stat().st_mode & 0o777 == 0o700
        else:
            assert os.environ.get(name) == set_before


def test_help_is_as_wide_as_the_terminal_and_lists_the_settings(monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "50")
    for each, option in ((train, "--learner.batch-size"), (verify, "--simulations")):
        with pytest.raises(SystemExit) as stop:
            each.main(["--help"])
        out, err = capfd.readouterr()
        assert (stop.value.code, err) == (0, "") and option in out
        assert max(map(len, out.splitlines())) <= 50


ZEROS = {field.name: 0 for field in dataclasses.fields(Certificate)}
PERFECT = Certificate(**ZEROS | {"versions": {}, "device": "", "game": "", "searches": ()})
DRAWS = dataclasses.replace(PERFECT, blunders=1)
LOSES = dataclasses.replace(PERFECT, blunders=1, losing_lines_second=1)


@pytest.mark.parametrize(
    ("certificate", "arguments", "status"),
    [
        (PERFECT, "--simulations 2 7", 0),
        (DRAWS, "", 1),
        (DRAWS, "--until unbeatable", 0),
        (LOSES, "--until unbeatable", 1),
    ],
)
def test_verify_returns_whether_the_goal_holds(certificate, arguments, status, monkeypatch):
    def issue(player, simulations, solution):
        assert simulations == ((2, 7) if "--simulations" in arguments else None)
        return certificate

    player = type("Anyone", (), {"game": games.make("tic_tac_toe"), "name": None})
    monkeypatch.setattr(custom, "open_player", lambda typed: (pathlib.Path("run"), player))
    solution = types.SimpleNamespace(decisions=[], action_values=np.zeros((0, 9)))
    solution.decision_states = None
    monkeypatch.setattr(verify.console, "solve", lambda game: solution)
    verdict = types.SimpleNamespace(actions=np.zeros(0, int))
    monkeypatch.setattr(certificates, "verify", issue)
    monkeypatch.setattr(certificates, "examine", lambda *given: verdict)
    assert verify.main(arguments.split()) == status
