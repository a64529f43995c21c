"""The players that come with azjax: `azjax.load("connect_four")`.

Each is one file `azjax/pretrained/NAME.npz`, without pickled objects. `index.json` has its SHA-256.
A file contains these arrays:

| name                | content                                                               |
| ------------------- | --------------------------------------------------------------------- |
| `about`             | `uint8`, JSON with the fields below                                   |
| `LAYER.PART`        | the integers of each layer, see `networks/integers.py`               |
| `overrides.planes`  | `uint8 [K, R]`, positions with an override, see `players/overrides.py` |
| `overrides.actions` | `uint8 [K]`, the move in each                                         |

`about` has `game`, `encoding`, `symmetric`, `iteration`, `search`, `alone` (whether it plays
without search) and `training` (how it was trained). Names of files have `_` in place of `:`.
"""

import hashlib
import io
import json
import pathlib
from typing import Any, NamedTuple

import numpy as np

from azjax._settings import did_you_mean
from azjax.networks.base import Variables
from azjax.players.overrides import Overrides

FOLDER = pathlib.Path(__file__).parent.parent / "pretrained"


def names() -> tuple[str, ...]:
    """Returns the names of the players that come with azjax."""
    return tuple(read_index())


def describe_unknown(name: str) -> str:
    """Returns the error message for a name that no player has."""
    known = ", ".join(names())
    return f"no player {name!r} comes with azjax: use {known}{did_you_mean(name, names())}"


def path_of(name: str) -> pathlib.Path:
    """Returns the path of the file of a player that comes with azjax."""
    return FOLDER / f"{name.replace(':', '_')}.npz"


def read_index() -> dict[str, dict[str, str]]:
    """Reads the index; loading a run does not, so that a damaged one does not prevent it."""
    path = FOLDER / "index.json"
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


def read(name: str) -> Shipped:
    """Reads a player's file; raises a ValueError if there is no such player, or it is damaged."""
    if name not in names():
        raise ValueError(describe_unknown(name))
    path = path_of(name)
    content = path.read_bytes() if path.exists() else b""
    if hashlib.sha256(content).hexdigest() != read_index()[name]["sha256"]:
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
