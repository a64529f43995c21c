"""Exhaustive play that is killed at any change of a file resumes with the same results."""

import builtins
import collections
import io
import itertools
import os
import re
import shutil

import jax
import numpy as np
import pytest

from azjax.exact import exhaustive, lines, moves, ply_files
from bad_players import highest, lowest, make_act, pair
from reference import exhaustive_play

CHANGES = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir")


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


STARTS = (
    (0, 1, 3, 2, 5),
    (0, 1, 3, 2, 7),
    (0, 1, 5, 2, 4),
    (0, 4, 1, 3, 8),
    (0, 4, 5, 3, 8),
    (4, 0, 1, 8, 3),
    (2, 1, 5, 4, 3),
)
CASES = {
    "every": ("misere_pile", highest, 0, {"part_size": 1, "starts": ((0,), (1,))}),
    "sample": ("tic_tac_toe", highest, 0, {"part_size": 9, "most": 16, "starts": STARTS}),
}


@pytest.fixture(params=CASES)
def case(request, monkeypatch):
    """`explore(folder) -> steps`, in a single thread."""
    name, policy, seat, settings = CASES[request.param]
    monkeypatch.setattr(ply_files, "_WORKERS", 1)
    monkeypatch.setattr(moves, "_BATCH", 64)
    monkeypatch.setattr(lines, "_REPLAYED", 64)
    act = make_act(pair(name), policy)

    def explore(folder, **others):
        return list(
            exhaustive.explore(pair(name).game, act, seat, folder, **{**settings, **others})
        )

    explore.name = request.param
    return explore


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
    disk = Disk(monkeypatch, tmp_path)
    whole = case(tmp_path / "whole")
    changes, files = disk.changes, contents(tmp_path / "whole")
    assert changes > 30 and len(whole) > whole[-1].ply + 1  # Several parts to a ply.
    assert not [name for name in files if re.search(r"children|tmp", name)]
    assert whole[-1].sampled == (case.name == "sample")
    for last in range(0, changes, 1 + changes // 45):
        folder = tmp_path / str(last)
        assert kill(case, folder, disk, last, cut=b"\x93NUMPY cut short")
        again = last * 7 % 11  # A second kill, a few changes later.
        kill(case, folder, disk, again)
        assert is_equal(case(folder), whole), (last, again)
        assert contents(folder) == files, (last, again)


@pytest.mark.parametrize("case", ["every"], indirect=True)
def test_an_exploration_may_be_killed_again_anywhere(case, tmp_path, monkeypatch):
    disk = Disk(monkeypatch, tmp_path)
    whole = case(tmp_path / "whole")
    changes, files = disk.changes, contents(tmp_path / "whole")
    for first in range(3, changes, 11):
        for second in range(first % 9, changes - first, 13):
            folder = tmp_path / f"{first} {second}"
            assert kill(case, folder, disk, first)
            kill(case, folder, disk, second)
            assert is_equal(case(folder), whole) and contents(folder) == files, (first, second)


@pytest.mark.parametrize("case", ["every"], indirect=True)
def test_an_exploration_may_resume_with_parts_of_another_size(case, tmp_path, monkeypatch):
    """Files of an incomplete ply are not reused."""
    disk = Disk(monkeypatch, tmp_path)
    whole = case(tmp_path / "whole")
    for last in range(0, disk.changes, 4):
        folder = tmp_path / str(last)
        assert kill(case, folder, disk, last)
        steps = case(folder, part_size=2**18)
        assert jax.tree.all(jax.tree.map(np.array_equal, steps[-1].ends, whole[-1].ends)), last


def test_a_complete_exploration_is_not_repeated(case, tmp_path, monkeypatch):
    disk = Disk(monkeypatch, tmp_path)
    case(tmp_path)
    disk.boot()
    case(tmp_path)
    assert disk.changes == 0


def test_threads_write_the_same_files(case, tmp_path, monkeypatch):
    one = case(tmp_path / "one")
    monkeypatch.setattr(ply_files, "_WORKERS", 4)
    four = case(tmp_path / "four")
    assert is_equal(one, four)
    assert contents(tmp_path / "one") == contents(tmp_path / "four")


def test_few_parts_are_in_memory_at_a_time(monkeypatch):
    """Results come in order, and no more items are taken than there are threads."""
    monkeypatch.setattr(ply_files, "_WORKERS", 3)
    taken, most = [], []
    results = ply_files.in_threads(lambda part: -part, (taken.append(n) or n for n in range(20)))
    for done, result in enumerate(results):
        assert result == -done
        most.append(len(taken) - done)
    assert len(taken) == 20 and max(most) == 3


def flip(path, others):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path, others):
    path.write_bytes(path.read_bytes()[:-32])  # As in files without a digest.


def exchange(path, others):
    shutil.copy(next(other for other in others if other.suffix == path.suffix), path)


DAMAGES = {
    "flip": flip,
    "cut": cut,
    "delete": lambda path, others: path.unlink(),
    "empty": lambda path, others: path.write_bytes(b""),
    "exchange": exchange,
    "delete the folder": lambda path, others: shutil.rmtree(path.parent),
}


@pytest.mark.parametrize("case", ["every"], indirect=True)
def test_no_damage_changes_a_result(case, tmp_path, monkeypatch):
    """The same results again, or one sentence that names a file; also in a killed exploration."""
    whole = case(tmp_path / "whole")
    disk = Disk(monkeypatch, tmp_path)
    assert kill(case, tmp_path / "killed", disk, 60)
    monkeypatch.undo()  # The disk; the workers and batches do not change results.
    refused, kinds = collections.Counter(), set()
    for source in (tmp_path / "whole", tmp_path / "killed"):
        names = [path.relative_to(source) for path in sorted(source.rglob("*.*")) if path.is_file()]
        for name, (kind, damage) in itertools.product(names, DAMAGES.items()):
            folder = shutil.copytree(source, tmp_path / "copy")
            others = [folder / other for other in names[::-1] if other != name]
            damage(folder / name, others)
            try:
                assert is_equal(case(folder), whole), (name, kind)
                assert [*exhaustive.lost_games(folder)] == [
                    *exhaustive.lost_games(tmp_path / "whole")
                ], (name, kind)
            except ValueError as error:
                assert re.match(rf"{folder}/\S+ (is missing, damaged|has the settings)", str(error))
                refused[kind] += 1
                kinds.add(re.sub(r"-?\d+", "", name.name))
            finally:
                shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    assert {*refused} == {*DAMAGES} and min(refused.values()) > 2, refused
    assert kinds == {"part.npy", "children.npy", "ends.npz", "bounds.npy", "settings.json"} | {
        "starts.json"
    }


def test_names_on_disk(tmp_path):
    one = pair("tic_tac_toe")
    settings = {"symmetric": True, "compare": True}
    next(exhaustive.explore(one.game, make_act(one, lowest), 0, tmp_path, **settings))
    fields = ("hash", "images", "group", "games", "parent", "action")
    for name in ("part", "children"):
        assert np.load(tmp_path / "000" / f"{name}-000000.npy").dtype.names == fields
    file = ply_files.load(tmp_path / "000" / "ends-000000.npz")
    assert sorted(file) == ["decisions", "games", "lost", "moves", "unlike"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "000",
        "settings.json",
        "starts.json",
    ]


def test_lines_lead_to_their_positions_in_all_plies(tmp_path):
    """Each position of each ply has a different line."""
    one, starts = pair("misere_pile"), ((0,), (1,))
    expected = exhaustive_play.explore(one.rules, lambda p: lowest(one.rules, p), 0, starts)
    act = make_act(one, lowest)
    list(exhaustive.explore(one.game, act, 0, tmp_path, starts=starts, part_size=2))
    for ply, count in enumerate(expected.positions):
        traced = ply_files.lines_to(tmp_path, ply, np.arange(count)[::-1])
        assert {line[:1] for line in traced} <= {*starts}
        after = {exhaustive_play.position_after(one.rules, line) for line in traced}
        assert len(after) == count
        assert [ply_files.lines_to(tmp_path, ply, np.array([row]))[0] for row in range(count)] == [
            *reversed(traced)
        ]
