"""The lock of a run directory: its holder, the error of others, and killed programs."""

import fcntl
import os
import socket
import subprocess
import sys

import pytest

import azjax
from azjax.runs import lock
from azjax.runs.checkpoint import CheckpointError

HERE = socket.gethostname()

# Holds the lock, prints a line, and waits for input.
HOLDER = """
import sys
from azjax.runs import lock
with lock.hold(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of `tmp_path`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def signature(pid):
    return f"process {pid} on host {HERE}"


def content(run_dir):
    return (run_dir / lock.NAME).read_text()


def write(run_dir, text):
    (run_dir / lock.NAME).write_text(text)


def refusal(run_dir):
    """Returns the error of a second holder, and checks that the file is unchanged."""
    path = run_dir / lock.NAME
    before = path.read_bytes()
    with pytest.raises(CheckpointError) as error, lock.hold(run_dir):
        pass
    assert path.read_bytes() == before
    return str(error.value)


def test_names_the_holder(holder, tmp_path):
    assert content(tmp_path) == signature(holder.pid)
    said = f"{signature(holder.pid)} trains in {tmp_path}: wait until it ends"
    assert refusal(tmp_path) == said
    holder.communicate("go on\n")
    assert holder.returncode == 0 and not (tmp_path / lock.NAME).exists()


@pytest.mark.slow
def test_a_killed_holder_releases_the_lock(holder, tmp_path):
    holder.kill()
    holder.wait()
    assert content(tmp_path) == signature(holder.pid)
    with lock.hold(tmp_path):
        assert content(tmp_path) == signature(os.getpid())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [signature(os.getppid()) * 9, "", "\0\1\n", b"\xff"])
def test_a_file_without_a_holder_is_free(text, tmp_path):
    (tmp_path / lock.NAME).write_bytes(text if isinstance(text, bytes) else text.encode())
    with lock.hold(tmp_path):
        assert content(tmp_path) == signature(os.getpid())


def test_a_lock_without_a_name_is_respected(tmp_path):
    with lock.hold(tmp_path):
        write(tmp_path, "")
        assert refusal(tmp_path) == f"another process trains in {tmp_path}: wait until it ends"


def test_other_names_are_other_locks(tmp_path):
    with lock.hold(tmp_path), lock.hold(tmp_path, "other", "follows"):
        with pytest.raises(CheckpointError) as error, lock.hold(tmp_path, "other", "follows"):
            pass
        assert (
            str(error.value)
            == f"{signature(os.getpid())} follows in {tmp_path}: wait until it ends"
        )
    assert list(tmp_path.iterdir()) == []


def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(ZeroDivisionError), lock.hold(tmp_path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_does_not_delete_the_lock_of_another(tmp_path):
    with lock.hold(tmp_path):
        (tmp_path / lock.NAME).unlink()  # By a user who took it for a leftover.
        write(tmp_path, "another's")
    assert (tmp_path / lock.NAME).read_text() == "another's"


def test_ignores_a_deleted_folder(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    with lock.hold(run_dir):
        run_dir.rename(tmp_path / "moved")
    assert not run_dir.exists()


def test_does_not_delete_the_lock_of_a_run_in_the_same_place(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    with lock.hold(run_dir):
        run_dir.rename(tmp_path / "moved")
        run_dir.mkdir()
        write(run_dir, "another's")
    assert content(run_dir) == "another's"


def test_does_not_lock_a_file_that_its_holder_deletes(tmp_path, monkeypatch):
    flock, path = fcntl.flock, tmp_path / lock.NAME

    def released(file, operation):
        path.unlink()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", released)
    with pytest.raises(CheckpointError, match="has just ended: start again"), lock.hold(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_reports_a_disk_without_locks(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    write(tmp_path, "")
    assert refusal(tmp_path) == (
        f"{tmp_path / lock.NAME} cannot be locked (No locks available): put the run on another disk"
    )


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path):
    """Also one in the place of the lock, which would be emptied."""
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")  # The folder itself may be a link.
    for name in (lock.NAME, "checkpoints", "strength", "metrics.jsonl", ".plan.json.tmp"):
        (tmp_path / "run" / name).symlink_to("../outside")
        with pytest.raises(CheckpointError) as error, lock.hold(tmp_path / "link"):
            pass
        assert f"link/{name} is a link to ../outside, and azjax writes only" in str(error.value)
        (tmp_path / "run" / name).unlink()
    with lock.hold(tmp_path / "link"):
        assert (tmp_path / "outside").read_text() == "kept"


def test_a_system_without_locks_is_named_first(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # As on Windows.
    with pytest.raises(CheckpointError, match="no file locks .*: use Linux or macOS"):
        azjax.train("tic_tac_toe", tmp_path / "run", smoke=True)
    assert not (tmp_path / "run").exists()
