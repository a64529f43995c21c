"""Run directories: creation, settings, and the lock."""

import dataclasses
import functools
import json
import os
import socket

import pytest

from azjax import runs
from azjax._files import replacing
from azjax.runs import directory, presets
from azjax.runs.config import Plan
from azjax.runs.directory import CheckpointError
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
    for function in (runs.check_free, lambda name: runs.create_run(name, CONFIG)):
        calls = [(functools.partial(function, name), f"{name} ", said) for name, said in rows]
        assert_refused(*calls, error=CheckpointError)
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
        (edit(network={"kind": "transformer"}), "network.kind is 'transformer': use 'resnet' or"),
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
    assert runs.read_run(path) == (config, Plan(max_iterations=7), 2)
    content = json.loads((path / "plan.json").read_text())
    (path / "plan.json").write_text(json.dumps({n: v for n, v in content.items() if n != "until"}))
    said = "plan.json cannot be used (until is missing): restore the file"
    assert_refused((lambda: runs.read_run(path), said), error=CheckpointError)


def test_the_newest_runs_are_found_from_a_subfolder(tmp_path, monkeypatch):
    """Runs without a checkpoint are passed over."""
    for number, folder in enumerate("1324"):
        run = runs.create_run(tmp_path / "runs" / folder, CONFIG)
        os.utime(run / "config.json", (number, number))
        (run / "checkpoints" / ("007" if folder == "4" else "1")).mkdir()  # The first is none.
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
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
        with pytest.raises(CheckpointError, match=f"^another process trains in {tmp_path}: wait"):
            hold(tmp_path)
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
        with pytest.raises(CheckpointError) as error:
            hold(tmp_path / "link")
        assert f"link/{name} is a link to ../outside, and azjax writes only" in str(error.value)
        (path / name).unlink()
    assert hold(tmp_path / "link") == MINE
    assert (tmp_path / "outside").read_text() == "kept"
