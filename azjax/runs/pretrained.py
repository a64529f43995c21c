"""The players that come with azjax: `azjax.load("connect_four")`.

Each is one file `azjax/pretrained/NAME.npz`, without pickled objects. `index.json` has its SHA-256.
A file contains these arrays:

| name                | content                                                               |
| ------------------- | --------------------------------------------------------------------- |
| `about`             | `uint8`, JSON with the fields below                                   |
| `LAYER.PART`        | the integers of each layer, see `networks/quantized.py`               |
| `overrides.planes`  | `uint8 [K, R]`, positions with an override, see `players/overrides.py` |
| `overrides.actions` | `uint8 [K]`, the move in each                                         |

`about` has `game`, `encoding`, `symmetric`, `iteration`, `search`, `alone` (whether it plays
without search) and `training` (how it was trained). Names of files have `_` in place of `:`.
"""

import functools
import hashlib
import io
import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from azjax._files import replacing, write_text
from azjax._settings import did_you_mean
from azjax.networks.base import Variables
from azjax.players.overrides import Overrides

FOLDER = pathlib.Path(__file__).parent.parent / "pretrained"
_INDEX = "index.json"


@functools.cache
def names() -> tuple[str, ...]:
    """Returns the names of the players that come with azjax."""
    return tuple(_index())


def describe_unknown(name: str) -> str:
    """Returns the error message for a name that no player has."""
    known = ", ".join(names())
    return f"no player {name!r} comes with azjax: use {known}{did_you_mean(name, names())}"


def path_of(name: str) -> pathlib.Path:
    """Returns the path of the file of a player that comes with azjax."""
    return FOLDER / f"{name.replace(':', '_')}.npz"


def save_pretrained(
    path: pathlib.Path,
    about: Mapping[str, Any],
    variables: Variables,
    overrides: Overrides | None = None,
) -> str:
    """Writes the file of a player atomically; returns its SHA-256."""
    arrays = {
        f"{layer}.{part}": array
        for layer, parts in variables["params"].items()
        for part, array in parts.items()
    }
    if overrides is not None:
        arrays |= {f"overrides.{part}": array for part, array in overrides._asdict().items()}
    text = json.dumps(dict(about), indent=1).encode()
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, about=np.frombuffer(text, np.uint8), **arrays)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def add(
    name: str,
    about: Mapping[str, Any],
    variables: Variables,
    overrides: Overrides | None = None,
) -> pathlib.Path:
    """Writes the file of a player and its entry in the index; returns the path of the file."""
    path = path_of(name)
    digest = save_pretrained(path, about, variables, overrides)
    index = _index() | {name: {"sha256": digest}}
    write_text(FOLDER / _INDEX, json.dumps(index, indent=1, sort_keys=True) + "\n")
    return path


def _index() -> dict[str, dict[str, str]]:
    """Reads the index; loading a run does not, so that a damaged one does not prevent it."""
    path = FOLDER / _INDEX
    try:
        index = json.loads(path.read_text())
        return {name: {"sha256": entry["sha256"]} for name, entry in index.items()}
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is missing or damaged: install azjax again") from error


class Shipped(NamedTuple):
    """The content of a player's file."""

    about: dict[str, Any]  # See the table above.
    variables: Variables  # The integers of the network.
    overrides: Overrides | None


@functools.lru_cache(maxsize=8)
def read(name: str) -> Shipped:
    """Reads a player's file; raises a ValueError if there is no such player, or it is damaged."""
    if name not in names():
        raise ValueError(describe_unknown(name))
    path = path_of(name)
    content = path.read_bytes() if path.exists() else b""
    if hashlib.sha256(content).hexdigest() != _index()[name]["sha256"]:
        raise ValueError(f"{path} is missing or damaged: install azjax again")
    params: dict[str, dict[str, np.ndarray]] = {}
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    about = json.loads(arrays.pop("about").tobytes())
    for key, array in arrays.items():
        layer, _, part = key.partition(".")
        params.setdefault(layer, {})[part] = array
    table = params.pop("overrides", None)
    return Shipped(about, {"params": params}, None if table is None else Overrides(**table))
