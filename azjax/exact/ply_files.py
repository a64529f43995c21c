"""The files of exhaustive play: a folder for each ply, with its positions in parts.

| file                 | content                                                             |
| -------------------- | ------------------------------------------------------------------- |
| `PLY/part-N.npy`     | positions; only `parent` and `action` once the next ply exists      |
| `PLY/children-N.npy` | the positions after them, until the next ply exists                 |
| `PLY/ends-N.npz`     | games that end there, and whether the player breaks symmetry        |
| `PLY/bounds.npy`     | the index of the first position of each part, and their number      |
| `settings.json`      | what determines the positions, with the line to each one of ply 0   |

The fields of a position are `hash`, `images` (its symmetric copies, itself first), `games` (that
lead to it), `parent` (its index in the previous ply) and `action`.
"""

import collections
import concurrent.futures
import contextlib
import json
import pathlib
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.recfunctions import repack_fields

from azjax._files import remove, replacing, write_json
from azjax._processes import cores
from azjax.exact.moves import Line, merge, players_and_legal, replay
from azjax.games import rows as packing
from azjax.games.base import Game

_WORKERS = min(cores(), 8)  # Threads; each holds one part in memory.
_SETTINGS, _BOUNDS = "settings.json", "bounds.npy"
PARTS, CHILDREN, ENDS = "part-{:06d}.npy", "children-{:06d}.npy", "ends-{:06d}.npz"


def ply_path(folder: pathlib.Path, ply: int) -> pathlib.Path:
    """Returns the folder of a ply."""
    return folder / f"{ply:03d}"


def load_bounds(ply_folder: pathlib.Path) -> np.ndarray:
    """Returns the index of the first position of each part of a ply, and the number of all."""
    return np.array(load(ply_folder / _BOUNDS))


def paths_of(ply_folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    """Returns the path of one file for each part of a ply, such as `PARTS`."""
    return [ply_folder / name.format(number) for number in range(len(load_bounds(ply_folder)) - 1)]


def load(path: pathlib.Path) -> Any:
    """Returns the memory-mapped array of a file, or the arrays by name."""
    with _readable(path):
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r")
        with path.open("rb") as file:
            return dict(np.load(file))


@contextlib.contextmanager
def _readable(path: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is missing or damaged ({error}): delete the folder of this exploration, and "
            "explore again"
        ) from error


def save(path: pathlib.Path, array: np.ndarray | None = None, **arrays: Any) -> None:
    """Writes one array or several, atomically."""
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
    """Writes the settings and ply 0; if they exist, the settings must be the same."""
    lines = [tuple(map(int, line)) for line in starts]
    path, settings = folder / _SETTINGS, settings | {"starts": [list(line) for line in lines]}
    is_new = not any(folder.glob("[0-9]*"))  # The settings are written before the first ply.
    with _readable(path):
        stored = settings if is_new else json.loads(path.read_text())
    if stored != settings:
        raise ValueError(
            f"{path} has the settings of another exploration, {stored}, not {settings}: delete "
            f"{folder}, or use another folder"
        )
    for leftover in folder.rglob(".*.tmp"):  # Of an exploration that was killed.
        remove(leftover)
    if ply_path(folder, 0).exists():
        return
    _, legal = players_and_legal(game, replay(game, lines))
    if not legal.any(axis=1).all():
        over = list(lines[legal.any(axis=1).argmin()])
        raise ValueError(f"{game.name} is over after the actions {over}: leave this start out")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, settings)
    rows = _first_rows(game, symmetries, lines)
    write_ply(ply_path(folder, 0), np.split(rows, range(part_size, len(rows), part_size)))


def _first_rows(game: Game, symmetries: np.ndarray, starts: Sequence[Line]) -> np.ndarray:
    """Returns the rows of ply 0, with all symmetric copies of each position."""
    played = [[tuple(symmetry[list(line)]) for line in starts] for symmetry in symmetries]
    states = [packing.pack(replay(game, lines)) for lines in played]
    fields: list[Any] = [("hash", np.uint64)]
    fields += [("images", np.uint8, (len(symmetries), states[0].shape[1]))]
    fields += [("games", np.float64), ("parent", np.int64), ("action", np.int32)]
    rows = np.zeros(len(starts), fields)
    rows["images"] = np.stack(states, axis=1)
    rows["games"] = 1
    return rows


def write_ply(ply_folder: pathlib.Path, parts: Iterable[np.ndarray]) -> None:
    """Writes the positions of a ply, atomically."""
    temporary = ply_folder.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    bounds = [0]
    for part in (part for part in parts if len(part)):
        save(temporary / PARTS.format(len(bounds) - 1), part)
        bounds.append(bounds[-1] + len(part))
    save(temporary / _BOUNDS, np.array(bounds))
    temporary.rename(ply_folder)


def gather(folder: pathlib.Path, ply: int, part_size: int) -> None:
    """Writes the next ply from the children of this one, and reduces this one to its moves."""
    here = ply_path(folder, ply)
    children = [load(path) for path in paths_of(here, CHILDREN)]
    count = -(-sum(map(len, children)) // part_size)
    bounds = [part * 2**64 // max(count, 1) for part in range(1, count)]  # Hashes are uniform.
    cuts = [np.searchsorted(c["hash"], np.array(bounds, np.uint64)) for c in children]
    pieces = [np.split(c, cut) for c, cut in zip(children, cuts, strict=True)]
    buckets = [*zip(*pieces, strict=True)]
    merged = in_threads(lambda bucket: merge(np.concatenate(bucket)), buckets)
    for path in paths_of(here, PARTS):
        save(path, repack_fields(np.array(load(path))[["parent", "action"]]))
    write_ply(ply_path(folder, ply + 1), merged)


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
        here = ply_path(folder, earlier)
        paths, bounds = paths_of(here, PARTS), load_bounds(here)
        numbers = np.searchsorted(bounds, indices, side="right") - 1
        parents = np.zeros_like(indices)
        for number in np.unique(numbers):
            is_here = numbers == number
            rows = load(paths[number])[indices[is_here] - bounds[number]]
            actions[is_here, earlier - 1], parents[is_here] = rows["action"], rows["parent"]
        indices = parents
    starts = json.loads((folder / _SETTINGS).read_text())["starts"]
    return [
        (*starts[index], *after) for index, after in zip(indices, actions.tolist(), strict=True)
    ]
