"""Writes the playground, `index.html`: visitors play against the players that come with azjax.

The page contains the integers of their networks and their override tables, so it needs neither
Python nor a network connection. `shipped.js` opens what `pack_shipped` packs, and `proofs.json` has
the results of exhaustive play.
"""

import base64
import gzip
import hashlib
import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

import azjax
from azjax._files import Path, replacing
from azjax.networks.symmetric import make_group
from azjax.players.overrides import Overrides
from azjax.runs import Player
from azjax.runs.pretrained import names, path_of
from azjax.viz import live
from azjax.viz.live import search_settings
from azjax.viz.page import Section, write_page

FOLDER = pathlib.Path(__file__).parent
SHOWN = ("connect_four", "tic_tac_toe", "hex:6")  # The page starts with the first.
MOST_BYTES = 4_000_000
ANIMATION = FOLDER.parent / "animation.svg"  # Of a training of tic-tac-toe.

_TITLE = "Can you beat this player?"
_LEARNS = (
    "A training of tic-tac-toe: all 4,520 positions in which the game is not over, iteration by "
    "iteration."
)
_PROOF_FIELDS = ("sha256", "decisions", "won", "drawn", "lost")


def write_playground(path: Path, packed: Sequence[dict[str, Any]]) -> pathlib.Path:
    """Writes the page.

    Args:
      path: the file, which is replaced if it exists.
      packed: the players on the page, from `pack_shipped`.

    Raises:
      ValueError: if the page would be larger than 4 MB, or its folder does not exist.
    """
    svg = ElementTree.fromstring(re.sub(' xmlns="[^"]*"', "", ANIMATION.read_text()))
    sections = [
        Section("", kind="playground", data={"players": list(packed)}),
        Section("How a player of tic-tac-toe learns", _LEARNS, element=svg),
    ]
    with replacing(path) as partial:
        write_page(partial, _TITLE, sections, FOLDER / "main.js", [FOLDER / "playground.css"])
        size = partial.stat().st_size
        if size > MOST_BYTES:
            raise ValueError(
                f"the page has {size:,} bytes, more than {MOST_BYTES:,}: leave a player out of "
                "SHOWN"
            )
    return pathlib.Path(path)


def pack_available(proofs: dict[str, Any]) -> list[dict[str, Any]]:
    """Packs the players in `SHOWN` that have a file; `proofs` is the result of `read_proofs`."""
    return [pack_shipped(name, proofs.get(name)) for name in SHOWN if name in names()]


def read_proofs(path: pathlib.Path) -> dict[str, Any]:
    """Reads the results of exhaustive play, by the name of the player.

    A result has the `sha256` of the player's file, the number of `decisions`, and the numbers of
    moves that end a game: `won`, `drawn` and `lost`. Symmetric copies count once. A player without
    a result has None.

    Raises:
      ValueError: if a field is missing, a result belongs to another file of the player, or the
        player loses.
    """
    proofs = json.loads(path.read_text())
    for name, proof in proofs.items():
        if proof is None:
            continue
        if sorted(proof) != sorted(_PROOF_FIELDS):
            raise ValueError(f"the proof of {name} in {path} needs {', '.join(_PROOF_FIELDS)}")
        if proof["sha256"] != sha256_of(name):
            raise ValueError(f"the proof of {name} in {path} belongs to another file: repeat it")
        if proof["lost"]:
            raise ValueError(f"{path} says that {name} loses: repair the player")
    return proofs


def sha256_of(name: str) -> str:
    """Returns the SHA-256 of the file of a player that comes with azjax."""
    return hashlib.sha256(path_of(name).read_bytes()).hexdigest()


def pack_shipped(name: str, proof: dict[str, Any] | None = None) -> dict[str, Any]:
    """Packs a player that comes with azjax, for `openShipped` in `shipped.js`."""
    packed = pack_player(azjax.load(name))
    packed["about"] |= {"name": name, "sha256": sha256_of(name), "proof": proof}
    return packed


def pack_player(player: Player) -> dict[str, Any]:
    """Packs the integers and the overrides of a quantized player.

    Returns:
      A dictionary for JSON. `about` describes the player. `game` and `settings` are those
      of `live_data`. `arrays` lists the layer, name, type and shape of each array, and `bytes` has
      them in this order, compressed with gzip, in base64. `group` and `symmetries` are
      permutations, as lists.
    """
    game, network = player.game, player.parts.network
    layers = live.integers(player)
    if player.overrides is not None:
        layers["overrides"] = _columns(player.overrides)
    arrays, content = live.list_arrays(layers)
    group, symmetries = make_group(game, network.symmetric), game.symmetries
    if symmetries is None:
        symmetries = group
    about = {"encoding": network.encoding, "iteration": player.iteration, "alone": player.alone}
    return {
        "about": about,
        "game": game.name,
        "settings": search_settings(player.parts.search) | {"evaluator": "network", "seed": 0},
        "group": live.list_group(group),
        "symmetries": {name: getattr(symmetries, name).tolist() for name in ("cells", "actions")},
        "arrays": arrays,
        "bytes": base64.b64encode(gzip.compress(content, 9, mtime=0)).decode(),
    }


def _columns(overrides: Overrides) -> dict[str, np.ndarray]:
    """Returns a table with transposed planes, which compress better."""
    return {"planes": overrides.planes.T, "actions": overrides.actions}


if __name__ == "__main__":
    available = pack_available(read_proofs(FOLDER / "proofs.json"))
    page = write_playground(FOLDER / "index.html", available)
    print(f"{page}: {page.stat().st_size:,} bytes")
