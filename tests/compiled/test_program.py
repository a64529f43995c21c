"""`azjax train` and `azjax verify`: what a training leaves, resumes after, and says about it."""

import dataclasses
import re
import shutil
import signal
import time

import pytest

import azjax
from azjax import _interrupts as interrupts
from azjax import program, runs
from azjax.cli import verify
from azjax.games import base
from azjax.proof.certificate import Certificate
from azjax.runs import checkpoint, directory
from azjax.runs.config import make_parts
from refusals import check_program
from trained import (
    MOMENTS,
    RUN,
    assert_same,
    damage,
    files,
    read,
    records,
    train_in,
    without_progress,
)

pytestmark = pytest.mark.usefixtures("compiled_once")


def resume(run_dir, *arguments):
    return train_in(run_dir, "--resume", "--no-report", *arguments)


def assert_same_end(run_dir, whole):
    """Checks that two runs have the same final state, bit for bit, and one record per iteration."""
    parts = make_parts(runs.read_config(run_dir))
    (left, skipped), (right, _) = (checkpoint.restore(path, parts) for path in (run_dir, whole))
    assert not skipped
    assert_same(left, right)
    assert records(run_dir, without_time=True) == records(whole, without_time=True)


# A whole run.


def test_a_training_writes_checkpoints_records_and_a_certificate(trained):
    report = (trained.run_dir / "report.html").read_text()
    assert re.findall(r"<h2.*?>(.*?)</h2>", report) == [
        *["Training", "Not proved: this player can be beaten"],
        *["The whole game, iteration by iteration", "Games of self-play", "Configuration"],
    ]
    written = records(trained.run_dir)
    assert [record["iteration"] for record in written] == [*range(1, 9)]
    best = min(written[1::2], key=lambda record: (record["blunders"], record["loss"]))
    assert runs.iterations(trained.run_dir) == sorted({best["iteration"], 6, 8})
    assert azjax.load(trained.run_dir).iteration == 8
    certificate, last = read(trained.run_dir), written[-1]
    fields = [field.name for field in dataclasses.fields(Certificate)]
    of_dice = {"large_blunders", "largest_loss", "mean_loss"}
    assert certificate.keys() == {*fields, "perfect", "unbeatable"} - of_dice
    for name in ("blunders", "losing_lines_first", "losing_lines_second", "value_sign_errors"):
        assert certificate[name] == last[name]
    assert (certificate["iterations"], certificate["moves"]) == (8, 8 * 16 * 4)
    assert certificate["decision_states"] == 4520
    assert certificate["seconds"] >= round(last["seconds"], 1)
    assert not certificate["perfect"] and not certificate["unbeatable"]
    # The game is solved only once, and neither certificate nor report loads the player.
    assert trained.calls == ["solve"]


# Killed and interrupted runs.


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_resumes_to_the_same_end(moment, trained, tmp_path):
    run_dir = shutil.copytree(trained.copies / moment, tmp_path / "run")
    assert not (run_dir / "certificate.json").exists()
    assert resume(run_dir) == 0
    assert_same_end(run_dir, trained.run_dir)
    assert not (run_dir / "damaged").exists()
    assert (run_dir / "certificate.json").exists()
    assert all(path.name.isdigit() for path in (run_dir / "checkpoints").iterdir())


def test_ctrl_c_finishes_the_iteration_and_saves(trained, tmp_path, monkeypatch, capfd):
    run_dir, write = tmp_path / "run", azjax.callbacks.Records.on_iteration
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(callback, loop):
        if loop.iteration == 3:
            signal.raise_signal(signal.SIGINT)
        write(callback, loop)

    with monkeypatch.context() as patch:
        patch.setattr(azjax.callbacks.Records, "on_iteration", interrupted)
        assert train_in(run_dir, *RUN, "--no-report") == 130
    signal.signal(signal.SIGINT, before)
    said = f"interrupted: continue with --resume --run-dir {run_dir}\n"
    assert without_progress(capfd.readouterr().err) == said
    assert runs.iterations(run_dir) == [2, 3] and len(records(run_dir)) == 3
    assert resume(run_dir) == 0
    assert_same_end(run_dir, trained.run_dir)


def test_what_ctrl_c_prints_while_a_run_compiles(run_dir, tmp_path, monkeypatch, capfd):
    """A run that can be resumed is named; a new one has no directory yet."""

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_compile", interrupt)
    assert train_in(tmp_path / "new", "--smoke") == resume(run_dir) == 130
    said = f"interrupted: not started\ninterrupted: continue with --resume --run-dir {run_dir}\n"
    assert without_progress(capfd.readouterr().err) == said
    assert not (tmp_path / "new").exists()


def test_only_one_program_at_a_time_trains_or_explores(run_dir, capfd):
    folder = run_dir / "lines"
    folder.mkdir()
    lines = ["--run-dir", str(run_dir), "--lines", "first"]
    with directory.hold(run_dir), directory.hold(folder, "8-first-0.lock", "explores"):
        check_program(lambda _: resume(run_dir), [("", f"trains in {run_dir}: wait")], capfd)
        check_program(verify.main, [(lines, f"in {folder}: wait until it ends")], capfd)


# The end of a training.


@pytest.mark.parametrize(
    ("limit", "iterations", "more"),
    [("--max-iterations 2", 2, " --max-iterations 4"), ("--max-minutes 0.001", 1, "")],
)
def test_exit_status_1_when_the_iterations_or_the_time_ran_out(
    limit, iterations, more, tmp_path, capfd
):
    given = ["--smoke", "--until", "perfect", "--max-iterations", "9", "--no-report"]
    assert train_in(tmp_path / "run", *given, *limit.split()) == 1
    assert without_progress(capfd.readouterr().err) == (
        "verifying the network with its searches, in every position\n"
        f"not perfect after {iterations} iterations: continue with --resume --run-dir "
        f"{tmp_path / 'run'}{more}\n"
    )
    assert read(tmp_path / "run")["iterations"] == iterations
    assert [*tmp_path.iterdir()] == [tmp_path / "run"]


@pytest.mark.usefixtures("trained")  # It shares the program that folds the network.
@pytest.mark.compiles(2)  # Larger games are verified by other programs.
def test_a_larger_game_is_examined_now_and_then_and_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_SMALL", 0)
    run_dir, every = tmp_path / "run", ["--examine-every", "2", "--max-iterations"]
    assert train_in(run_dir, "--smoke", "--no-report", *every, "5") in (0, 1)
    assert [r["iteration"] for r in records(run_dir) if "blunders" in r] == [2, 4, 5]


def test_a_finished_run_is_resumed(run_dir, monkeypatch, capfd):
    """Without more iterations nothing changes."""
    before = files(run_dir)
    assert resume(run_dir, "--report") == 0
    assert files(run_dir) == before
    assert without_progress(capfd.readouterr().err) == ""
    monkeypatch.setattr(interrupts.now, "started", time.monotonic())
    assert resume(run_dir, "--max-iterations", "10") == 0
    seconds = [record["seconds"] for record in records(run_dir)]
    assert len(seconds) == 10 and seconds == sorted(seconds)  # The records of both sessions.
    certificate = read(run_dir)
    assert certificate["iterations"] == 10 and certificate["seconds"] >= round(seconds[-1], 1)
    assert runs.iterations(run_dir)[-2:] == [8, 10]
    assert read(run_dir, "plan.json")["max_iterations"] == 10


# Damage.


def test_a_damaged_run_continues_from_an_older_checkpoint(run_dir, trained, capfd):
    damage(run_dir, 8)
    assert resume(run_dir) == 0
    moved, repeated = capfd.readouterr().err.splitlines()[:2]
    assert f"checkpoint 8 in {run_dir} is damaged" in moved and f"{run_dir}/damaged" in moved
    assert f"{run_dir} was saved after iteration 6, but recorded up to 8" in repeated
    assert (run_dir / "damaged" / "8-1").is_dir()
    assert_same_end(run_dir, trained.run_dir)


def damage_all(run_dir):
    for step in runs.iterations(run_dir):
        damage(run_dir, step)


def put_link(run_dir):
    (run_dir / "checkpoints").rename(run_dir / "elsewhere")
    (run_dir / "checkpoints").symlink_to("elsewhere")


def test_a_spoiled_run_is_refused_before_anything_moves(trained, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(program, "_compile", None)
    rows = [
        (damage_all, "no checkpoint in ", " is sound", "start a new run"),
        (put_link, "checkpoints is a link to elsewhere, and azjax"),
        (lambda d: (d / "plan.json").unlink(), "plan.json cannot be used"),
        (lambda d: (d / "metrics.jsonl").write_text("no record\n" * 2), "line 1, is damaged"),
    ]
    for number, (change, *fragments) in enumerate(rows):
        run_dir = shutil.copytree(trained.run_dir, tmp_path / str(number))
        change(run_dir)
        before = files(run_dir)
        check_program(lambda _: resume(run_dir), [("", *fragments)], capfd)
        assert files(run_dir) == before
