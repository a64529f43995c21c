"""Run directories: creation, settings, the lock, and records."""

import dataclasses
import functools
import json
import os
import re
import socket
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest

from azjax import runs
from azjax._files import replacing
from azjax.progress import Lines
from azjax.runs import CheckpointError, directory, presets
from azjax.runs.config import Plan
from azjax.training.metrics import Record, make_record, open_records, read_records
from azjax.training.step import Metrics
from refusals import assert_refused
from trained import files

CONFIG = presets.smoke(presets.get("default"))
MINE = f"process {os.getpid()} on host {socket.gethostname()}"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run"


def test_two_writers_of_a_file_do_not_share_a_temporary_one(path):
    with replacing(path) as one, replacing(path) as two:
        one.write_text("1")
        two.write_text("2")
    assert path.read_text() == "1" and [*path.parent.iterdir()] == [path]


# Creation.


def test_never_touches_a_path_that_exists(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs.create_run(path, CONFIG)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nothing")
    before, said = files(tmp_path), "exists already and is not a run directory: choose"
    rows = [
        ("run", "run exists already: resume that run"),
        *((name, said) for name in ("folder", "file", "link", ".")),
        ("file/deep/run", "cannot be created (...file is not a folder"),
        ("link/run", "link/run cannot be created ("),
    ]
    checks = [(functools.partial(runs.check_free, name), f"{name} ", said) for name, said in rows]
    makes = [(functools.partial(runs.create_run, name, CONFIG), "be created (") for name, _ in rows]
    assert_refused(*checks, *makes, error=CheckpointError)
    assert files(tmp_path) == before


def test_a_numbered_run_takes_no_path_that_exists(tmp_path):
    prefix = tmp_path / "deep" / "run"
    prefix.mkdir(parents=True)  # The name without a number is not used.
    (tmp_path / "deep" / "run-2").symlink_to("nothing")
    made = [runs.create_run(prefix, CONFIG, numbered=True) for _ in range(2)]
    assert [path.name for path in made] == ["run-1", "run-3"]
    assert all(runs.read_config(path) == CONFIG for path in made)


# Settings.


def test_wrong_configurations_are_rejected(tmp_path):
    def read(text):
        (tmp_path / "config.json").write_text(text)
        return runs.read_config(tmp_path)

    def edit(section=None, without=(), **changes):
        content = {"format": runs.FORMAT, **dataclasses.asdict(CONFIG)}
        part = content[section] if section else content
        part |= changes
        for name in without:
            del part[name]
        return functools.partial(read, json.dumps(content))

    other = "has the format of another version of azjax: use that version, or train a new run"
    assert_refused(
        (edit(colour=3), "config.json cannot be used (unknown setting 'colour': use one of game,"),
        (edit(network={"kind": "transformer"}), "network.kind is 'transformer': use 'resnet', "),
        (edit("network", hidden=[8]), "unknown setting 'network.hidden': use one of"),
        (edit("learner", steps=0), "learner.steps is 0: use 1 or more"),
        (edit(without=["format"]), other),
        (edit(format=runs.FORMAT + 1), other),
        (edit(without=["replay"]), "config.json cannot be used (replay is missing): restore the"),
        (edit("search", ["num_simulations"]), "cannot be used (search.num_simulations is missing)"),
        (edit("network", ["kind"]), "cannot be used (network.kind is missing)"),
        (edit(parts="mine.py:make", without=["seed"]), "cannot be used (seed is missing)"),
        *((functools.partial(read, text), "cannot be used") for text in ("", "[]", '{"a":' * 9999)),
        (lambda: runs.read_config(tmp_path / "none"), "is not a run directory"),
        error=CheckpointError,
    )


def test_settings_of_custom_parts_and_a_plan_are_complete(path):
    """With custom parts, only settings that have an effect are written."""
    config = runs.Config(game="hex:4", seed=3, parts="mine.py:make")
    plan = {"max_iterations": 7, "cpu_devices": 2}
    runs.create_run(path, config, plan)
    content = json.loads((path / "plan.json").read_text())
    (path / "plan.json").write_text(json.dumps(content | {"strength_every": 3}))  # Of old runs.
    assert runs.read_run(path) == (config, Plan(max_iterations=7), 2)
    del content["until"]
    (path / "plan.json").write_text(json.dumps(content))
    said = "plan.json cannot be used (until is missing): restore the file"
    assert_refused((lambda: runs.read_run(path), said), error=CheckpointError)


def test_the_newest_runs_are_found(tmp_path, monkeypatch):
    """Runs without a checkpoint are passed over."""
    for number, folder in enumerate("1324"):
        run = runs.create_run(tmp_path / "runs" / folder, CONFIG)
        os.utime(run / "config.json", (number, number))
        (run / "checkpoints" / ("007" if folder == "4" else "1")).mkdir()  # The first is none.
    monkeypatch.chdir(tmp_path)
    assert [path.name for path in runs.find_runs()] == ["2", "3", "1"]


# The lock; `tests/system/test_processes.py` has other processes.


def hold(folder, **options):
    with directory.hold(folder, **options):
        return (folder / directory.LOCK).read_text()


def test_names_the_holder(tmp_path):
    name = tmp_path / directory.LOCK
    with directory.hold(tmp_path), directory.hold(tmp_path, "other", "explores"):
        assert name.read_text() == MINE
        assert_refused(
            (lambda: hold(tmp_path), f"{MINE} trains in {tmp_path}: wait until it ends"),
            (lambda: hold(tmp_path, name="other", does="explores"), f"{MINE} explores in"),
            error=CheckpointError,
        )
        with directory.lock(tmp_path / "c.json.lock", "writes c.json"):  # Of a single file.
            pass
        name.write_text("")
        said = f"another process trains in {tmp_path}: wait"
        assert_refused((lambda: hold(tmp_path), said), error=CheckpointError)
    with pytest.raises(ZeroDivisionError), directory.hold(tmp_path):
        raise ZeroDivisionError
    name.write_bytes(b"process 1 on host \xff")  # A file without a holder is free.
    assert hold(tmp_path) == MINE


def test_a_link_that_leads_out_of_the_folder_is_refused(path, tmp_path):
    """Also one in the place of the lock, which would be emptied."""
    (tmp_path / "outside").write_text("kept")
    path.mkdir()
    (tmp_path / "link").symlink_to("run")  # The folder itself may be a link.
    for name in (directory.LOCK, "checkpoints", ".plan.json.tmp"):
        (path / name).symlink_to("../outside")
        said = f"link/{name} is a link to ../outside, and azjax writes only"
        assert_refused((lambda: hold(tmp_path / "link"), said), error=CheckpointError)
        (path / name).unlink()
    assert hold(tmp_path / "link") == MINE
    assert (tmp_path / "outside").read_text() == "kept"


# Records of iterations.


LOSSES = {"loss": 2.0, "value_loss": 0.5, "policy_loss": 1.5, "policy_kl": 0.25}
LOSSES |= {"l2": 0.0, "grad_norm": 1.0}
PROOF = {"blunders": 4321, "losing_lines_first": 87, "losing_lines_second": 553}
PROOF |= {"value_sign_errors": 99, "value_error": 0.5}


def record(iteration, **changes):
    plain = Record(iteration, 1.5 * iteration, 100, 1234.5, LOSSES, PROOF)
    return dataclasses.replace(plain, **changes)


def write(path, iterations, after=0):
    with open_records(path, after) as file:
        for iteration in iterations:
            file.write(json.dumps(record(iteration).as_dict()) + "\n")


def test_a_record_has_every_metric():
    now, losses = time.monotonic(), LOSSES | {"another": 7.0}
    measured = Metrics(dict(sorted(losses.items())), np.float32(40))  # In the order of XLA.
    made = make_record(9, measured, before=now - 2, started=now - 30)
    assert list(made.losses.items()) == list(losses.items())
    assert (made.iteration, made.games) == (9, 40)
    assert 15 < made.games_per_second <= 20 and 30 <= made.seconds < 40
    flat = made.add(blunders=11).add(elo=3.0).as_dict()
    assert (flat["blunders"], flat["elo"], flat["another"]) == (11, 3, 7)


def test_only_scalars_with_new_names_are_added():
    made = record(1, losses=LOSSES | {"another": 1.0}, extra={})
    taken, refused = ("loss", "another", "games", "extra"), "the record has a metric ...already: "
    assert_refused(
        *((functools.partial(made.add, **{name: 1}), refused, name) for name in taken),
        (lambda: made.add(elo="high"), "the metric elo is of type str: add one"),
        (lambda: made.add(elo=None), "NoneType"),
        (lambda: made.add(elo=jnp.ones((2, 3))), "ArrayImpl: add"),
    )
    numbers = [3, 0.5, True, np.int8(2), np.float32(0.5), np.array(3), jnp.bfloat16(0.5)]
    made = made.add(**{f"number_{index}": number for index, number in enumerate(numbers)})
    assert {type(number) for number in made.extra.values()} == {int, float}
    assert list(made.extra.values()) == [float(number) for number in numbers]


def test_records_after_the_checkpoint_are_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    assert read_records(path) == []
    for after, expected in [(0, [9]), (2, [1, 2, 9]), (3, [1, 2, 3, 9]), (7, [1, 2, 3, 9])]:
        write(path, [1, 2, 3])
        before = path.read_text().splitlines()
        write(path, [9], after)
        lines = path.read_text().splitlines()
        assert [json.loads(line)["iteration"] for line in lines] == expected
        assert lines[:-1] == before[: len(expected) - 1]
        assert [file.name for file in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_damaged_file_is_not_rewritten(tmp_path):
    """Only an incomplete last line is ignored."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(text := '{"iteration": 1}\n{"iteration": 2\n{"iteration": 3}\n')
    assert_refused((lambda: open_records(path, after=1), "line 2, is damaged: restore the file"))
    assert path.read_text() == text
    path.write_text('{"iteration": 1}\n{"iteration": 2')
    assert read_records(path) == [{"iteration": 1}]


IN_A_PIPE = """\
iteration    7  seconds   10.5  loss 2.000  blunders 4321  losing lines  87 1st + 553 2nd  \
games/s  1234  value_loss 0.500  policy_loss 1.500  policy_kl 0.250
iteration    8  seconds   12.0  loss 2.000  labelled errors 12.3%  \
games/s  1234  value_loss 0.500  policy_loss 1.500  policy_kl 0.250
iteration    9  seconds   13.5  loss 2.000  elo 12.35  patience 2  \
games/s  1234  l2 0.125  reply 0.500
"""
# Not every network of a larger game is verified; those columns come before the games per second.
IN_A_TERMINAL = """\
iteration  seconds   loss  games/s  value_loss  policy_loss
        6      9.0  2.000     1234       0.500        1.500
iteration  seconds   loss  blunders       losing lines
        7     10.5  2.000      4321   87 1st + 553 2nd
        8     12.0  2.000
iteration  seconds    loss  blunders       losing lines
        9     13.5  12.000         5    5 1st +   5 2nd
       10     15.0   2.000      4321   87 1st + 553 2nd
iteration  seconds    loss  blunders       losing lines
       11     16.5   2.000      4321   87 1st + 553 2nd
"""


def test_lines_in_a_pipe(capsys):
    lines, losses = Lines(), {"loss": 2.0, "l2": 0.125, "reply": 0.5, "grad_norm": 1.0}
    lines.print(record(7))
    lines.print(record(8, extra={"error": 0.1234, "error/few": 0.2, "sign_error": 0.3}))
    lines.print(record(9, extra={"elo": 12.3456, "patience": 2}, losses=losses))
    assert capsys.readouterr().out == IN_A_PIPE


def test_columns_fit_the_terminal_and_their_heading_is_in_sight(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "4")
    few = dict.fromkeys(("blunders", "losing_lines_first", "losing_lines_second"), 5)
    lines = Lines()
    lines.print(record(6, extra={}))
    lines.print(record(7))
    lines.print(record(8, extra={}))
    lines.print(record(9, losses=LOSSES | {"loss": 12.0}, extra=PROOF | few))
    lines.print(record(10))
    lines.print(record(11))
    # The cells of a short line end with those that are missing.
    assert re.sub(" +\n", "\n", capsys.readouterr().out) == IN_A_TERMINAL
