"""Damages of the files of proofs, and what proofs make of them.

Explorations and repairs are interrupted at several stages, one file is damaged, and they resume.
They must give the results of undamaged files, or refuse the file in one sentence.
"""

import itertools
import pathlib
import shutil
import tempfile

import jax
import numpy as np
import pytest

import bad_players
from azjax.proof import exhaustive
from azjax.proof.seat_proof import explore_seat


def explored(folder):
    """An exploration with several parts to a ply, which loses games in most plies.

    Returns `resume(folder) -> results`, and folders at several stages, one of them finished.
    """
    one = bad_players.pair("tic_tac_toe")
    act = bad_players.make_act(one, bad_players.highest)
    settings = {"act": act, "seat": 1, "part_size": 40, "starts": ((4,),)}

    def resume(path, stop=None):
        steps = exhaustive.explore(one.game, folder=path / "games", **settings)
        *_, last = itertools.islice(steps, stop)
        return last.ends, last.lost, stop or [*exhaustive.lost_games(path / "games")]

    return resume, stages(folder / "explored", resume, (2, 9, 17, 26, None))


def repaired(folder):
    """A repair of the pile, interrupted in one of its explorations."""
    one = bad_players.pair("misere_pile")
    moves = bad_players.moves_of(one.rules, bad_players.lowest)
    player = bad_players.make_player(moves, "misere_pile")

    def resume(path, stop=None):
        steps = explore_seat(player, "first", path, simulations=0, rounds=9)
        *_, last = itertools.islice(steps, stop)
        steps.close()
        if stop is None:
            table = last.table._replace(rounds=0)  # A table that was deleted may take other rounds.
            return last.exploration.ends, last.lost, last.is_proof, table

    return resume, stages(folder / "repaired", resume, (3, 9, 40, None))


def stages(folder, resume, stops):
    paths = [folder / str(stop) for stop in stops]
    for path, stop in zip(paths, stops, strict=True):
        path.mkdir(parents=True)
        resume(path, stop)
    return paths


def flip(path, rng):
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    path.write_bytes(content)


def cut(path, rng):
    path.write_bytes(path.read_bytes()[: rng.integers(path.stat().st_size)])


def lengthen(path, rng):
    path.write_bytes(path.read_bytes() + rng.bytes(rng.integers(1, 99)))


def exchange(path, rng):
    """With another file of the exploration, or of another exploration."""
    others = sorted(other for other in files(path.parents[1]) if other != path)
    other = others[rng.integers(len(others))]
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def replace_by_folder(path, rng):
    path.unlink()
    path.mkdir()


DAMAGES = [
    *(flip, flip, flip, cut, lengthen, exchange, exchange, replace_by_folder),
    lambda path, rng: path.write_bytes(b""),
    lambda path, rng: path.unlink(),
    lambda path, rng: path.write_text('{"a":' * 9999),
]


def files(folder):
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")


def find_faults(number):
    """Makes damages; returns how many were refused, and the silent ones and the tracebacks."""
    rng, refused, faults = np.random.default_rng(0), 0, []
    temporary, patching = tempfile.TemporaryDirectory(), pytest.MonkeyPatch.context()
    with temporary as root, bad_players.small_batches(), patching as patch:
        bad_players.use_listed_players(patch)
        folder = pathlib.Path(root)
        cases = [make(folder) for make in (explored, repaired)]
        choices = [(resume, stage) for resume, stages in cases for stage in stages]
        expected = {}
        for trial in range(number):
            resume, stage = choices[trial % len(choices)]
            damage = DAMAGES[rng.integers(len(DAMAGES))]
            if stage not in expected:
                expected[stage] = resume(shutil.copytree(stage, folder / "sound"))
                shutil.rmtree(folder / "sound")
            path = shutil.copytree(stage, folder / "damaged")
            file = (every := files(path))[rng.integers(len(every))]
            damage(file, rng)
            name = f"{trial}: {damage.__name__} {file.relative_to(path)} of {stage}"
            try:
                results = resume(path)
                if not jax.tree.all(jax.tree.map(np.array_equal, results, expected[stage])):
                    faults.append(f"{name}: silent")
            except (ValueError, OSError) as error:
                refused += 1
                message = str(error)
                if "\n" in message or str(path) not in message or "delete" not in message:
                    faults.append(f"{name}: {message}")
            except Exception as error:
                faults.append(f"{name}: {error!r}")
            shutil.rmtree(path)
    return refused, faults
