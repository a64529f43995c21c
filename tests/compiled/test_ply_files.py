"""Exhaustive play that is killed at any change of a file resumes with the same results."""

import builtins
import functools
import io
import os
import re
import shutil
import threading

import jax
import numpy as np
import pytest

import damages
from azjax.proof import exhaustive, ply_files
from bad_players import explore_all, highest, make_act, small_batches
from misere_pile import NIM
from pairs import pair
from refusals import assert_refused
from trained import files

CHANGES = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir")


def test_a_damaged_file_is_refused_or_has_no_effect():
    """A sample of the damages of `tests/system/test_shipped_players.py`."""
    refused, faults = damages.find_faults(24)
    assert not faults, "\n".join(faults)
    assert refused > 12


@pytest.mark.parametrize("name", ["read", "repack_fields"])
def test_no_thread_is_left_to_the_garbage_collector(name, monkeypatch, tmp_path):
    """An exploration that fails ends its threads, also while its error is kept."""
    original, before = getattr(ply_files, name), {*threading.enumerate()}

    def fail(*given):
        if {*threading.enumerate()} > before:
            raise OSError("the disk is full")
        return original(*given)

    monkeypatch.setattr(ply_files, name, fail)
    act = make_act(pair("nim"), highest)
    with pytest.raises(OSError, match="full") as kept:
        explore_all(NIM, act, 0, tmp_path, starts=((0,), (1,)), part_size=1)
    assert {*threading.enumerate()} == before, kept


def test_a_file_is_not_read_in_the_place_of_another(tmp_path):
    """Not even that of the same part of another exploration."""
    explore = functools.partial(explore_all, NIM, make_act(pair("nim"), highest))
    for seat in (0, 1):
        explore(seat, tmp_path / str(seat), starts=((0,), (1,)), part_size=1)
    paths = [tmp_path / name for name in ("0/001/ends-000000.json", "0/001/ends-000001.json")]
    paths.append(tmp_path / "1/001/ends-000000.json")
    contents = [path.read_bytes() for path in paths]
    assert len({*contents}) == 3
    call = functools.partial(explore, 0, tmp_path / "0", starts=((0,), (1,)))
    for content in contents[1:]:
        paths[0].write_bytes(content)
        assert_refused((call, "001 is damaged (its ends-000000.json is that of another part): del"))
    paths[0].write_bytes(contents[0])
    call()


def test_games_are_conserved_from_ply_to_ply(tmp_path):
    """Also if the files of a ply are all sound."""
    act = make_act(pair("nim"), highest)
    explore = functools.partial(explore_all, NIM, act, 0, tmp_path)
    whole = explore()
    path = tmp_path / "001" / "summary.json"
    content = {name: value for name, value in ply_files.read(path).items() if name != "place"}
    for games in (content["games"] * (1 + 1e-12), content["games"]):
        ply_files.write(path, content | {"games": games})
        assert is_equal(explore(), whole)
    ply_files.write(path, content | {"games": content["games"] + 1})
    assert_refused((explore, "001 is damaged (2 games lead there, not 1): delete the folder"))


def is_equal(steps, others):
    return jax.tree.all(jax.tree.map(np.array_equal, steps, others))


class Killed(BaseException):
    """The process is killed: no cleanup changes a file."""


class Disk:
    """Counts the changes of files in a folder, and kills the process at one of them.

    A file that is being written at that moment is left truncated.
    """

    def __init__(self, monkeypatch, folder):
        self.folder, self.changes, self.last = str(folder), 0, None
        for module, name in [*((os, name) for name in CHANGES), (builtins, "open"), (io, "open")]:
            monkeypatch.setattr(module, name, self._counted(getattr(module, name)))

    def boot(self, last=None):
        """Starts again; changes from number `last` on, counted from 0, are not made."""
        self.changes, self.last = 0, last

    def _counted(self, change):
        def counted(path, *args, **settings):
            is_open = change.__name__ == "open"
            mode = str(settings.get("mode", [*args, "r"][0])) if is_open else "w"
            if str(path).startswith(self.folder) and set(mode) & set("wax+"):
                self.changes += 1
                if self.last is not None and self.changes > self.last:
                    if is_open and self.changes == self.last + 1:
                        with change(path, "wb") as file:
                            file.write(b"\x93NUMPY cut short")
                    raise Killed
            return change(path, *args, **settings)

        return counted


@pytest.fixture
def case(monkeypatch):
    """`explore(folder) -> steps`, of the exploration `games` in it, in a single thread."""
    monkeypatch.setattr(ply_files, "_WORKERS", 1)
    one = pair("misere_pile")
    act = make_act(one, highest)

    def explore(folder, part_size=1):
        settings = {"part_size": part_size, "starts": ((0,), (1,))}
        return list(exhaustive.explore(one.game, act, 0, folder / "games", **settings))

    with small_batches():
        yield explore


def kill(explore, folder, disk, last):
    """Whether the exploration was killed before its end."""
    disk.boot(last)
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
    *steps, whole = case(tmp_path / "whole")
    changes, written = disk.changes, files(tmp_path / "whole")
    assert changes > 30 and len(steps) > whole.ply  # Several parts to a ply.
    assert not [name for name in written if re.search(r"children|part|tmp", name)]
    for last in range(0, changes, 1 + changes // 40):
        folder = tmp_path / str(last)
        assert kill(case, folder, disk, last)
        other = shutil.copytree(folder, tmp_path / f"other {last}") if folder.exists() else None
        for again in (last * 7 % 11, last * 5 % 23):  # A few changes later.
            kill(case, folder, disk, again)
        assert is_equal(case(folder)[-1], whole) and files(folder) == written, last
        if other:  # Files of an incomplete ply are not reused.
            ends = case(other, part_size=2**18)[-1].ends
            assert is_equal(ends, whole.ends), last
            for ply in other.glob("games/0*"):
                bounds = ply_files.read(ply / "summary.json")["bounds"]
                assert len([*ply.glob("moves-*")]) == len(bounds) - 1, last
    disk.boot()
    case(tmp_path / "whole")
    assert disk.changes == 0  # Nothing is repeated.
    monkeypatch.setattr(ply_files, "_WORKERS", 4)
    assert is_equal(case(tmp_path / "four")[-1], whole)
    assert files(tmp_path / "four") == written


def test_few_parts_are_in_memory_at_a_time(monkeypatch):
    """Results come in order, and no more items are taken than there are threads."""
    monkeypatch.setattr(ply_files, "_WORKERS", 3)
    taken, most = [], []
    results = ply_files.in_threads(lambda part: -part, (taken.append(n) or n for n in range(20)))
    for done, result in enumerate(results):
        assert result == -done
        most.append(len(taken) - done)
    assert len(taken) == 20 and max(most) == 3
