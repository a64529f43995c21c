"""Run directories: creation, settings, and the lock."""

import dataclasses
import fcntl
import functools
import json
import os
import shutil
import socket
import sys

import pytest

import azjax
from azjax import runs
from azjax.runs import lock, presets
from azjax.runs.directory import CheckpointError
from refusals import assert_refused

CONFIG = presets.smoke(presets.get("default"))
MINE = f"process {os.getpid()} on host {socket.gethostname()}"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run"


# Creation.


def test_never_touches_a_directory_that_exists(path, tmp_path):
    runs.create_run(path, CONFIG)
    before = (path / "config.json").read_text()
    (tmp_path / "other").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nothing")
    assert_refused(
        (lambda: runs.create_run(path, CONFIG), "run exists already: continue that run with"),
        (lambda: runs.create_run(tmp_path / "other", CONFIG), "exists already and is not a run"),
        (lambda: runs.check_free(tmp_path / "other"), "exists already and is not a run directory"),
        (lambda: runs.check_free(tmp_path / "link"), "link is a broken link to nothing: remove"),
        (lambda: runs.create_run(tmp_path / "file" / "x", CONFIG), "cannot be created (Not a dir"),
        error=CheckpointError,
    )
    assert (path / "config.json").read_text() == before


def test_a_path_that_another_program_took_meanwhile_is_not_used(tmp_path, monkeypatch):
    prefix = tmp_path / "deep" / "run"
    prefix.mkdir(parents=True)  # The name without a number is not used.
    (tmp_path / "deep" / "run-2").symlink_to("nothing")
    rename = os.rename

    def create(path, numbered):
        """Another program creates its run just before this one is moved to its path."""

        def rename_second(old, new):
            monkeypatch.setattr(os, "rename", rename)
            made.append(runs.create_run(path, CONFIG, numbered=numbered))
            rename(old, new)

        monkeypatch.setattr(os, "rename", rename_second)
        made.append(runs.create_run(path, CONFIG, numbered=numbered))

    made = []
    create(prefix, numbered=True)
    with pytest.raises(CheckpointError, match="named exists already: continue that run"):
        create(tmp_path / "deep" / "named", numbered=False)
    assert [path.name for path in made] == ["run-1", "run-3", "named"]
    assert all(runs.read_config(path) == CONFIG for path in made)
    assert len([*prefix.parent.iterdir()]) == 5  # No temporary folder is left.


def test_check_free_leaves_no_folders(path, tmp_path):
    for name in ("run", "some/deep/run"):
        runs.check_free(tmp_path / name)
    (tmp_path / "kept").mkdir()
    runs.check_free(tmp_path / "kept" / "deep" / "run")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept"]


# Settings.


WRONG = [
    ("colour", 3, "unknown setting 'colour': use one of game, seed, parts"),
    ("seed", "zero", "seed is 'zero', which is not of type int"),
    ("network.kind", "transformer", "network.kind is 'transformer': use 'resnet' or 'mlp'"),
    ("network.hidden", [8], "leave it out, or choose network.kind mlp"),
    ("learner.steps", 0, "learner.steps is 0: use 1 or more"),
]


def test_wrong_configurations_are_rejected(tmp_path):
    def read(text):
        (tmp_path / "config.json").write_text(text)
        return runs.read_config(tmp_path)

    cases = []
    for setting, value, said in WRONG:
        content = {"format": runs.FORMAT, **dataclasses.asdict(CONFIG)}
        *parents, name = setting.split(".")
        target = functools.reduce(lambda part, parent: part[parent], parents, content)
        target[name] = value
        text = json.dumps(content)
        cases.append((functools.partial(read, text), said, f"{tmp_path / 'config.json'} cannot"))
    for text in ("", "[]", "null", "\0\1\2", '{"a":' * 10_000):
        cases.append((functools.partial(read, text), "config.json cannot be used"))
    cases.append((lambda: runs.read_config(tmp_path / "none"), "is not a run directory"))
    assert_refused(*cases, error=CheckpointError)
    l2 = read(f'{{"format": {runs.FORMAT}, "learner": {{"l2": 1}}}}').learner.l2
    assert l2 == 1 and isinstance(l2, float)


def test_the_newest_run_of_a_game_is_found_from_a_subfolder(tmp_path, monkeypatch):
    """Runs without a checkpoint and of other games are passed over."""
    for number, (game, folder) in enumerate(
        [("tic_tac_toe", "1"), ("tic_tac_toe", "2"), ("connect_four", "3"), ("tic_tac_toe", "4")]
    ):
        run = runs.create_run(tmp_path / "runs" / folder, dataclasses.replace(CONFIG, game=game))
        os.utime(run / "config.json", (number, number))
        if folder != "4":
            (run / "checkpoints" / "1").mkdir()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert [path.name for path in runs.find_runs()] == ["3", "2", "1"]
    assert runs.newest("tic_tac_toe").name == "2"
    with pytest.raises(CheckpointError, match="there is no run of hex in runs/, here or in a"):
        runs.newest("hex")


# The lock; `tests/system/test_lock.py` has other processes.


def hold(folder, **options):
    with lock.hold(folder, **options):
        return (folder / lock.NAME).read_text()


def test_names_the_holder(tmp_path):
    name = tmp_path / lock.NAME
    with lock.hold(tmp_path), lock.hold(tmp_path, "other", "explores"):
        assert name.read_text() == MINE
        assert_refused(
            (lambda: hold(tmp_path), f"{MINE} trains in {tmp_path}: wait until it ends"),
            (lambda: hold(tmp_path, name="other", does="explores"), f"{MINE} explores in"),
            error=CheckpointError,
        )
        assert name.read_text() == MINE
        name.write_text("")
        with pytest.raises(CheckpointError, match=f"^another process trains in {tmp_path}: wait"):
            hold(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ZeroDivisionError), lock.hold(tmp_path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"process 1 on host other" * 9, b"", b"\0\1\n", b"\xff"])
def test_a_file_without_a_holder_is_free(content, tmp_path):
    (tmp_path / lock.NAME).write_bytes(content)
    assert hold(tmp_path) == MINE


def test_only_the_own_lock_is_deleted(path, tmp_path):
    """Not that of a run in the same place, nor of a user who deleted it; a folder may be gone."""
    for begin_again in (True, False):
        path.mkdir()
        with lock.hold(path):
            path.rename(tmp_path / f"moved-{begin_again}")
            if begin_again:
                path.mkdir()
                (path / lock.NAME).write_text("another's")
        assert path.exists() == begin_again
        if begin_again:
            assert (path / lock.NAME).read_text() == "another's"
            shutil.rmtree(path)
    with lock.hold(tmp_path):
        (tmp_path / lock.NAME).unlink()
        (tmp_path / lock.NAME).write_text("another's")
    assert (tmp_path / lock.NAME).read_text() == "another's"


def test_a_disk_or_a_system_without_locks_is_reported(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    said = f"{tmp_path / lock.NAME} cannot be locked (No locks available): put the run on another"
    assert_refused((lambda: hold(tmp_path), said), error=CheckpointError)
    monkeypatch.setitem(sys.modules, "fcntl", None)  # As on Windows.
    with pytest.raises(CheckpointError, match="no file locks .*: use Linux or macOS"):
        azjax.train("tic_tac_toe", tmp_path / "run", smoke=True)
    assert not (tmp_path / "run").exists()


def test_a_link_that_leads_out_of_the_folder_is_refused(path, tmp_path):
    """Also one in the place of the lock, which would be emptied."""
    (tmp_path / "outside").write_text("kept")
    path.mkdir()
    (tmp_path / "link").symlink_to("run")  # The folder itself may be a link.
    for name in (lock.NAME, "checkpoints", ".plan.json.tmp"):
        (path / name).symlink_to("../outside")
        with pytest.raises(CheckpointError) as error:
            hold(tmp_path / "link")
        assert f"link/{name} is a link to ../outside, and azjax writes only" in str(error.value)
        (path / name).unlink()
    assert hold(tmp_path / "link") == MINE
    assert (tmp_path / "outside").read_text() == "kept"
