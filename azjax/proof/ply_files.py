"""The files of exhaustive play: a folder for each ply, with its positions in parts.

| file                 | content                                                              |
| -------------------- | -------------------------------------------------------------------- |
| `PLY/summary.json`   | the number of positions in each part, of all games that lead to them |
| `PLY/part-N.npy`     | positions, until the next ply exists                                 |
| `PLY/moves-N.npy`    | `parent` and `action` of each position                               |
| `PLY/children-N.npy` | the positions after them, until the next ply exists                  |
| `PLY/ends-N.json`    | games that end there                                                 |
| `settings.json`      | what determines the positions, with the line to each one of ply 0    |

The fields of a position are `hash`, `images` (its symmetric copies, itself first), `games` (that
lead to it), `parent` (its index in the previous ply) and `action`.

Every file is checked when it is read. JSON files have a SHA-256 of their content, which includes
their place; a summary has those of the parts and moves, and the ends have that of the children.
"""

import collections
import concurrent.futures
import contextlib
import pathlib
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.recfunctions import repack_fields

from azjax._files import check_digest, digest_file, read_sealed, remove, write_sealed
from azjax._processes import cores
from azjax.games import rows as packing
from azjax.games.base import Game
from azjax.proof.replies import Line, merge, replay

_WORKERS = min(cores(), 8)  # Threads; each holds one part in memory.
_SETTINGS, _SUMMARY = "settings.json", "summary.json"
PARTS, MOVES = "part-{:06d}.npy", "moves-{:06d}.npy"
CHILDREN, ENDS = "children-{:06d}.npy", "ends-{:06d}.json"


def ply_path(folder: pathlib.Path, ply: int) -> pathlib.Path:
    """Returns the folder of a ply."""
    return folder / f"{ply:03d}"


class Ply(NamedTuple):
    """A ply, from its `summary.json`."""

    folder: pathlib.Path
    bounds: np.ndarray  # The index of the first position of each part, and the number of all.
    games: float  # Sequences of moves that lead to its positions.
    digests: dict[str, str]  # Of the parts and moves, by the names of their files.

    def paths(self, name: str) -> list[pathlib.Path]:
        """Returns the path of one file for each part, such as `ENDS`."""
        return [self.folder / name.format(number) for number in range(len(self.bounds) - 1)]

    def load(self, name: str, number: int) -> np.ndarray:
        """Returns `PARTS` or `MOVES` of a part, memory-mapped."""
        name = name.format(number)
        return load(self.folder / name, self.digests[name])


def read_ply(folder: pathlib.Path, ply: int) -> Ply:
    """Reads the summary of a ply."""
    here = ply_path(folder, ply)
    content = read(here / _SUMMARY)
    return Ply(here, np.array(content["bounds"]), content["games"], content["files"])


def read(path: pathlib.Path) -> dict[str, Any]:
    """Reads a JSON file of a ply."""
    with readable(path.parent):
        content = read_sealed(path)
        if content.get("place") != _place(path):
            raise ValueError(f"its {path.name} is that of another part")
        return content


def write(path: pathlib.Path, content: dict[str, Any]) -> None:
    """Writes a JSON file of a ply, atomically."""
    write_sealed(path, {"place": _place(path), **content})


def _place(path: pathlib.Path) -> str:
    """Returns exploration, ply and name: a file is not used in the place of another."""
    return "/".join(path.absolute().parts[-3:])


def load(path: pathlib.Path, digest: str) -> np.ndarray:
    """Returns the array of a file, memory-mapped."""
    with readable(path.parent):
        return np.load(check_digest(path.parent, path.name, digest), mmap_mode="r")


@contextlib.contextmanager
def readable(folder: pathlib.Path) -> Iterator[None]:
    """Explains the damage of a file in the folder of an exploration or a ply."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{folder} is damaged ({error}): delete the folder of this exploration, and explore "
            "again"
        ) from error


def save(path: pathlib.Path, array: np.ndarray) -> str:
    """Writes an array; returns the SHA-256 of the file, without which it is not read."""
    with path.open("wb") as file:
        np.save(file, array)
    return digest_file(path)


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
    with readable(folder):
        stored = settings if is_new else read_sealed(path)
    if stored != settings:
        raise ValueError(
            f"{path} has the settings of another exploration, {stored}, not {settings}: delete "
            f"{folder}, or use another folder"
        )
    for leftover in folder.rglob(".*.tmp"):  # Of an exploration that was killed.
        remove(leftover)
    if has_ply(folder, 0):
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_sealed(path, settings)
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


def has_ply(folder: pathlib.Path, ply: int) -> bool:
    """Whether a ply was written to its end: its summary is the last file."""
    return (ply_path(folder, ply) / _SUMMARY).exists()


def write_ply(here: pathlib.Path, parts: Iterable[np.ndarray]) -> None:
    """Writes the positions of a ply."""
    shutil.rmtree(here, ignore_errors=True)  # Of an exploration that was killed.
    here.mkdir(parents=True)
    bounds, games, digests = [0], 0.0, {}
    for part in (part for part in parts if len(part)):
        for name, rows in ((PARTS, part), (MOVES, repack_fields(part[["parent", "action"]]))):
            name = name.format(len(bounds) - 1)
            digests[name] = save(here / name, rows)
        bounds.append(bounds[-1] + len(part))
        games += float(part["games"].sum())
    write(here / _SUMMARY, {"bounds": bounds, "games": games, "files": digests})


def gather(folder: pathlib.Path, ply: int, part_size: int) -> None:
    """Writes the next ply from the children of this one."""
    here = read_ply(folder, ply)
    ends = map(read, here.paths(ENDS))
    children = [
        load(path, e["children"]) for path, e in zip(here.paths(CHILDREN), ends, strict=True)
    ]
    count = -(-sum(map(len, children)) // part_size)
    bounds = [part * 2**64 // max(count, 1) for part in range(1, count)]  # Hashes are uniform.
    cuts = [np.searchsorted(c["hash"], np.array(bounds, np.uint64)) for c in children]
    pieces = [np.split(c, cut) for c, cut in zip(children, cuts, strict=True)]
    buckets = [*zip(*pieces, strict=True)]
    merging = in_threads(lambda bucket: merge(np.concatenate(bucket)), buckets)
    with contextlib.closing(merging) as merged:
        write_ply(ply_path(folder, ply + 1), merged)


def in_threads(function: Callable, items: Iterable) -> Generator[Any, None, None]:
    """Yields the results of a function in order, computed in threads.

    NumPy and XLA release the global interpreter lock in large computations. A caller that may
    stop early closes the generator: left to the garbage collector, it waits for its threads in
    whatever thread collects, and a thread that just starts would wait forever.
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
        here = read_ply(folder, earlier)
        numbers = np.searchsorted(here.bounds, indices, side="right") - 1
        parents = np.zeros_like(indices)
        for number in np.unique(numbers):
            is_here = numbers == number
            rows = here.load(MOVES, number)[indices[is_here] - here.bounds[number]]
            actions[is_here, earlier - 1], parents[is_here] = rows["action"], rows["parent"]
        indices = parents
    with readable(folder):
        starts = read_sealed(folder / _SETTINGS)["starts"]
    return [
        (*starts[index], *after) for index, after in zip(indices, actions.tolist(), strict=True)
    ]
