"""What `azjax train` and `azjax verify` refuse before they compile anything; help and status."""

import dataclasses
import json
import pathlib

import pytest

from azjax import games, program, runs
from azjax.cli import arena, custom, explain, play, report, seeds, train, verify
from azjax.proof import certificate as certificates
from azjax.proof.certificate import Certificate
from azjax.runs import checkpoint
from refusals import assert_refused, check_program
from trained import files

TRAIN = [
    ("--game chess", "unknown game 'chess'", "tic_tac_toe, connect_four"),
    ("--preset tiny", "unknown preset 'tiny'", "default, paper, mlp, connect_four"),
    ("--frobnicate 3", "--frobnicate", "--help"),
    ("train", "train", "--help"),
    ("--learner.l2 -1", "learner.l2 is -1.0", "use 0 or more"),
    ("--network.kind mlp --network.hidden 0", "network.hidden", ": use "),
    ("--learner.batch-size 1001", "learner.batch_size is 1001", "such as 1008"),
    ("--replay.capacity 100", "replay.capacity is 100", "use at least 512"),
    ("--game connect_four --until perfect", "connect_four", "--until never"),
    ("--resume --run_dir nothing", "nothing is not a run directory", "config.json"),
    ("--run-dir /dev/null/run", "/dev/null/run cannot be created", "choose another --run-dir"),
    ("--smoke --run-dir dangling", "dangling is a broken link to nothing: ", "another --run-dir"),
]
VERIFY = [
    ("--run-dir nothing", "nothing is not a run directory", "use the folder"),
    ("one", "no player 'one' comes with azjax", "use connect_four", "--run-dir"),
    ("--simulations many", "--simulations: invalid int value: 'many'"),
    ("--lines first --until perfect", "--until is for all positions: leave it out"),
    ("--lines first --simulations 1 2", "--lines examines one player: give --simulations a"),
    ("--repair 9", "--repair is a setting of --lines: add --lines first"),
]


ARENA = [
    ("random", "name 2 players or more"),
    ("random perfect --games 0", "--games is 0: use 1 or more"),
    ("random perfect --plot /nowhere/x.svg", "there is no folder /nowhere"),
    ("random perfect --plot x.png", "x.png is not an SVG: use a name that ends in .svg"),
]
SEEDS = [
    ("--seeds 0", "--seeds is 0: use 1 to 65536"),
    ("--game hex:6", "hex:6 has too many positions to enumerate, so no seed can"),
]
PLAY = [
    ("--game hex:5 --o human --x network", "'network' needs the network of a training run"),
    ("hex:4 --run-dir x", "hex:4 and --run-dir x name two players: leave one out"),
]


def test_programs_refuse_bad_options(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "_compile", None)
    (tmp_path / "dangling").symlink_to("nothing")
    before = files(tmp_path)
    rows = {train: TRAIN, verify: VERIFY, arena: ARENA, seeds: SEEDS, play: PLAY}
    for each, refused in rows.items():
        check_program(each.main, refused, capfd)
    for each in (verify, report, explain):
        of_game = [("", "runs/ has no trained player", ": train one", "with --run-dir")]
        check_program(each.main, of_game, capfd)
    assert files(tmp_path) == before


def refuse_to_compile(*arguments):
    raise ValueError("refused while compiling")


def test_an_unusable_run_directory_is_refused(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder" / "notes").mkdir(parents=True)
    before, used = files(tmp_path), "exists already and is not a run directory"
    rows = [
        *[("dangling", "is a broken link to nothing: "), ("loop", "is a broken link to loop: ")],
        *((name, used) for name in ("link", "folder", ".")),
        ("dangling/run", "dangling/run cannot be created ("),
        ("file/deep/run", "cannot be created (...file is not a folder"),
    ]
    calls = [(lambda path=path: runs.check_free(path), path, said) for path, said in rows]
    assert_refused(*calls, error=checkpoint.CheckpointError)

    monkeypatch.setattr(program, "_compile", refuse_to_compile)
    check_program(train.main, [("--smoke --run-dir some/deep/run", "refused while com")], capfd)
    assert files(tmp_path) == before


def test_runs_are_numbered(tmp_path, monkeypatch):
    """A dangling link keeps its number."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "tic_tac_toe-default-1").symlink_to("nothing")
    names = [
        ([], "runs/tic_tac_toe-default"),
        (["--game", "connect_four:4x5"], "runs/connect_four-4x5-enumerable"),
        (["--game", "connect_four"], "runs/connect_four"),
        (["--preset", "mlp"], "runs/tic_tac_toe-mlp"),
    ]
    for arguments, name in names:
        parsed = train.parse(arguments)
        assert str(program.name_runs(parsed.config, parsed.plan)) == name
    assert str(runs.first_free("runs/tic_tac_toe-default")) == "runs/tic_tac_toe-default-2"


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


def test_verify_returns_whether_the_goal_holds(monkeypatch, capfd):
    draws = dataclasses.replace(PERFECT, blunders=1)
    fails = dataclasses.replace(
        PERFECT, searches=(certificates.VerifiedSearch("puct", 32, blunders=1),)
    )
    loses = dataclasses.replace(PERFECT, blunders=1, losing_lines_second=1)
    player = type("Anyone", (), {"game": games.make("tic_tac_toe"), "name": None})
    monkeypatch.setattr(custom, "open_run", lambda typed: (pathlib.Path("run"), player))
    monkeypatch.setattr(verify.console, "solve", lambda game: None)
    for certificate, arguments, status in [
        (PERFECT, "--simulations 2 7", 0),
        (draws, "", 1),
        (draws, "--until unbeatable", 0),
        (fails, "--until perfect", 1),
        (fails, "--until unbeatable", 0),
        (loses, "--until unbeatable", 1),
    ]:

        def issue(player, simulations, certificate=certificate, arguments=arguments, **others):
            assert simulations == ((2, 7) if "--simulations" in arguments else None)
            return certificate

        monkeypatch.setattr(certificates, "verify", issue)
        assert verify.main([*arguments.split(), "--json"]) == status
        written = json.loads(capfd.readouterr().out)
        assert written == json.loads(json.dumps(certificate.as_json()))
