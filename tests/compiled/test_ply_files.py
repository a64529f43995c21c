"""Exhaustive play that is killed at any change of a file resumes with the same results."""

import builtins
import io
import os
import re
import shutil

import jax
import numpy as np
import pytest

from azjax.exact import exhaustive, ply_files
from bad_players import highest, make_act, pair, small_batches

CHANGES = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir")


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "ends-0.npz"
    ply_files.save(path, lost=np.arange(9))
    for content in (b"", path.read_bytes()[:50]):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match="ends-0.npz is missing or damaged .*delete the folder"
        ):
            ply_files.load(path)


class Killed(BaseException):
    """The process is killed: no cleanup changes a file."""


class Disk:
    """Counts the changes of files in a folder, and kills the process at one of them.

    A file that is being written at that moment is left truncated.
    """

    def __init__(self, monkeypatch, folder):
        self.folder = str(folder)
        self.changes, self.last, self.cut = 0, None, b""
        for name in CHANGES:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))
        self._open = builtins.open
        for module in (builtins, io):
            monkeypatch.setattr(module, "open", self.open)

    def boot(self, last=None, cut=b""):
        """Starts again; changes from number `last` on, counted from 0, are not made."""
        self.changes, self.last, self.cut = 0, last, cut

    def count(self, path, is_written=False):
        if not str(path).startswith(self.folder):
            return
        self.changes += 1
        if self.last is not None and self.changes > self.last:
            if is_written and self.changes == self.last + 1:
                with self._open(path, "wb") as file:
                    file.write(self.cut)
            raise Killed

    def open(self, file, mode="r", *args, **settings):
        if set(mode) & set("wax+"):
            self.count(file, is_written="w" in mode)
        return self._open(file, mode, *args, **settings)

    def _counted(self, change):
        def counted(path, *args, **settings):
            self.count(path)
            return change(path, *args, **settings)

        return counted


@pytest.fixture
def case(monkeypatch):
    """`explore(folder) -> steps`, in a single thread."""
    monkeypatch.setattr(ply_files, "_WORKERS", 1)
    one = pair("misere_pile")
    act = make_act(one, highest)

    def explore(folder, part_size=1):
        settings = {"part_size": part_size, "starts": ((0,), (1,))}
        return list(exhaustive.explore(one.game, act, 0, folder, **settings))

    with small_batches():
        yield explore


def contents(folder):
    """All files and folders; arrays of archives instead of their bytes, which hold a time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".npz":
            loaded = ply_files.load(path)
            found[name] = {key: (array.dtype, array.tobytes()) for key, array in loaded.items()}
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def is_equal(steps, others):
    return jax.tree.all(jax.tree.map(np.array_equal, steps[-1], others[-1]))


def kill(explore, folder, disk, last, cut=b""):
    """Whether the exploration was killed before its end."""
    disk.boot(last, cut)
    try:
        explore(folder)
    except Killed:
        return True
    finally:
        disk.boot()
    return False


def test_an_exploration_killed_at_any_change_of_a_file_resumes(case, tmp_path, monkeypatch):
    """Even if it is killed again; also with parts of another size, and from threads."""
    disk = Disk(monkeypatch, tmp_path)
    whole = case(tmp_path / "whole")
    changes, files = disk.changes, contents(tmp_path / "whole")
    assert changes > 30 and len(whole) > whole[-1].ply + 1  # Several parts to a ply.
    assert not [name for name in files if re.search(r"children|tmp", name)]
    for last in range(0, changes, 1 + changes // 40):
        folder = tmp_path / str(last)
        assert kill(case, folder, disk, last, cut=b"\x93NUMPY cut short")
        other = shutil.copytree(folder, tmp_path / f"other {last}") if folder.exists() else None
        for again in (last * 7 % 11, last * 5 % 23):  # A few changes later.
            kill(case, folder, disk, again)
        assert is_equal(case(folder), whole) and contents(folder) == files, last
        if other:  # Files of an incomplete ply are not reused.
            ends = case(other, part_size=2**18)[-1].ends
            assert jax.tree.all(jax.tree.map(np.array_equal, ends, whole[-1].ends)), last
            for ply in other.glob("0*"):
                parts = len(ply_files.load_bounds(ply)) - 1
                assert len([*ply.glob("part-*")]) == parts, last
    disk.boot()
    case(tmp_path / "whole")
    assert disk.changes == 0  # Nothing is repeated.
    monkeypatch.setattr(ply_files, "_WORKERS", 4)
    assert is_equal(case(tmp_path / "four"), whole)
    assert contents(tmp_path / "four") == files


def test_few_parts_are_in_memory_at_a_time(monkeypatch):
    """Results come in order, and no more items are taken than there are threads."""
    monkeypatch.setattr(ply_files, "_WORKERS", 3)
    taken, most = [], []
    results = ply_files.in_threads(lambda part: -part, (taken.append(n) or n for n in range(20)))
    for done, result in enumerate(results):
        assert result == -done
        most.append(len(taken) - done)
    assert len(taken) == 20 and max(most) == 3
