"""The files of exhaustive play: a folder for each ply, with its positions in parts.

| file                 | content                                                             |
| -------------------- | ------------------------------------------------------------------- |
| `PLY/part-N.npy`     | positions; only `parent` and `action` once the next ply exists      |
| `PLY/children-N.npy` | the positions after them, until the next ply exists                 |
| `PLY/ends-N.npz`     | games that end there; symmetry violations under the name `unlike`   |
| `starts.json`        | the line to each position of ply 0                                  |
| `settings.json`      | the other settings that determine the positions                     |

The fields of a position are `hash`, `images` (its symmetric copies, itself first), `group` (its
sample), `games` (that lead to it), `parent` (its index in the previous ply) and `action`.
"""

import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.recfunctions import repack_fields

from azjax._files import replacing, write_json
from azjax.games import rows as packing
from azjax.games.base import Game
from azjax.proof.lines import Line, replay
from azjax.proof.moves import players_and_legal
from azjax.proof.sampling import make_sampler, merge

_WORKERS = min(os.cpu_count() or 1, 8)  # Threads; each holds one part in memory.
_STARTS, _SETTINGS = "starts.json", "settings.json"


def ply_path(folder: pathlib.Path, ply: int) -> pathlib.Path:
    """Returns the folder of a ply."""
    return folder / f"{ply:03d}"


def load_parts(ply_folder: pathlib.Path) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns the memory-mapped parts of a ply, and the index of the first position of each."""
    parts = [np.load(path, mmap_mode="r") for path in sorted(ply_folder.glob("part-*.npy"))]
    return parts, np.cumsum([0, *map(len, parts)])


def save(path: pathlib.Path, array: np.ndarray | None = None, **arrays: Any) -> None:
    """Writes one array or several atomically."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays) if array is None else np.save(file, array)


def begin(
    game: Game,
    folder: pathlib.Path,
    symmetries: np.ndarray,
    starts: Sequence[Line],
    part_size: int,
    settings: dict[str, Any],
) -> None:
    """Writes the settings, the starts and ply 0, unless they exist.

    Raises:
      ValueError: if the folder has other settings or starts, or a start is illegal or over.
    """
    lines = [tuple(map(int, line)) for line in starts]
    listed = [list(line) for line in lines]
    for path, given in ((folder / _SETTINGS, settings), (folder / _STARTS, listed)):
        if path.exists() and (stored := json.loads(path.read_text())) != given:
            raise ValueError(
                f"{path} has the settings of another exploration, {stored}, not {given}: use "
                "another folder"
            )
    if ply_path(folder, 0).exists():
        return
    _, legal = players_and_legal(game, replay(game, lines))
    if not legal.any(axis=1).all():
        over = listed[legal.any(axis=1).argmin()]
        raise ValueError(f"{game.name} is over after the actions {over}: leave this start out")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / _SETTINGS, settings)
    write_json(folder / _STARTS, listed)
    rows = _first_rows(game, symmetries, lines)
    write_ply(ply_path(folder, 0), np.split(rows, range(part_size, len(rows), part_size)))


def _first_rows(game: Game, symmetries: np.ndarray, starts: Sequence[Line]) -> np.ndarray:
    """Returns the rows of ply 0, with all symmetric copies of each position."""
    played = [[tuple(symmetry[list(line)]) for line in starts] for symmetry in symmetries]
    states = [packing.pack(replay(game, lines)) for lines in played]
    fields: list[Any] = [("hash", np.uint64)]
    fields += [("images", np.uint8, (len(symmetries), states[0].shape[1]))]
    fields += [("group", np.uint8), ("games", np.float64), ("parent", np.int64)]
    rows = np.zeros(len(starts), [*fields, ("action", np.int32)])
    rows["images"] = np.stack(states, axis=1)
    rows["games"] = 1
    return rows


def write_ply(
    ply_folder: pathlib.Path, parts: Iterable[np.ndarray], most: int | None = None
) -> None:
    """Writes the positions of a ply, or a sample of at most `most` of them, atomically."""
    temporary = ply_folder.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    for number, part in enumerate(part for part in parts if len(part)):
        np.save(temporary / f"part-{number:06d}.npy", part)
    whole, bounds = load_parts(temporary)
    if most is not None and bounds[-1] > most:
        _keep_sample(temporary, make_sampler(whole, most, int(ply_folder.name)))
    temporary.rename(ply_folder)


def _keep_sample(folder: pathlib.Path, draw: Callable[[np.ndarray], np.ndarray]) -> None:
    """Replaces the parts in a folder by a sample of their positions."""
    paths, kept = sorted(folder.iterdir()), 0
    drawn = (draw(np.load(path)) for path in paths)  # Lazy: reads a file before it is replaced.
    for kept, part in enumerate((part for part in drawn if len(part)), start=1):
        np.save(paths[kept - 1], part)
    for path in paths[kept:]:
        path.unlink()


def gather(folder: pathlib.Path, ply: int, most: int | None, part_size: int) -> None:
    """Writes the next ply from the children of this one, and reduces this one to its moves."""
    here = ply_path(folder, ply)
    children = [np.load(path, mmap_mode="r") for path in sorted(here.glob("children-*.npy"))]
    count = -(-sum(map(len, children)) // part_size)
    bounds = [part * 2**64 // max(count, 1) for part in range(1, count)]  # Hashes are uniform.
    cuts = [np.searchsorted(c["hash"], np.array(bounds, np.uint64)) for c in children]
    pieces = [np.split(c, cut) for c, cut in zip(children, cuts, strict=True)]
    buckets = [*zip(*pieces, strict=True)]
    merged = in_threads(lambda bucket: merge(np.concatenate(bucket)), buckets)
    for path in sorted(here.glob("part-*.npy")):
        save(path, repack_fields(np.load(path)[["parent", "action"]]))
    write_ply(ply_path(folder, ply + 1), merged, most)


def in_threads(function: Callable, items: Iterable) -> Iterator[Any]:
    """Yields the results of a function in order, computed in threads.

    NumPy and XLA release the global interpreter lock in large computations.
    """
    with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
        waiting = collections.deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) == _WORKERS:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)


def lines_to(folder: pathlib.Path, ply: int, indices: np.ndarray) -> list[Line]:
    """Returns the lines to the positions of a ply that have the given indices `[N]`."""
    actions = np.zeros((len(indices), ply), np.int32)
    for earlier in range(ply, 0, -1):
        parts, bounds = load_parts(ply_path(folder, earlier))
        numbers = np.searchsorted(bounds, indices, side="right") - 1
        parents = np.zeros_like(indices)
        for number in np.unique(numbers):
            is_here = numbers == number
            rows = parts[number][indices[is_here] - bounds[number]]
            actions[is_here, earlier - 1], parents[is_here] = rows["action"], rows["parent"]
        indices = parents
    starts = json.loads((folder / _STARTS).read_text())
    return [
        (*starts[index], *after) for index, after in zip(indices, actions.tolist(), strict=True)
    ]


def stored_lines(folder: pathlib.Path, kind: str) -> Iterator[Line]:
    """Yields the lines of one array of `ends-N.npz`, ply by ply."""
    for ply in itertools.count():
        here = ply_path(folder, ply)
        if not here.exists():
            return
        moves = [np.zeros((0, 2), np.int64)]
        for path in sorted(here.glob("ends-*.npz")):
            with np.load(path) as file:
                moves.append(file[kind])
        parents, last = np.concatenate(moves).T
        before = lines_to(folder, ply, parents) if len(parents) else []
        yield from ((*line, action) for line, action in zip(before, last.tolist(), strict=True))
