"""Trained networks as JSON, for pages that search without Python, and what a run keeps of them.

Of a game that can be enumerated a network is what it answers to every position with a decision;
of other games it is its weights. In float32, where there is room, a page searches as Python does.
"""

import os
import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax._files import replacing
from azjax.games.solver import Solution
from azjax.runs.player import Player
from azjax.viz.atlas import DAMAGE
from azjax.viz.page import pack

_FOLDER = "answers"


class Answers(NamedTuple):
    """What a network says about the `D` positions of a game that have a decision.

    Attributes:
      logits: `float32 [M]`, of the legal actions alone, position by position.
      values: `float32 [D]`, for the player to move.
    """

    logits: np.ndarray
    values: np.ndarray


def make_answers(solution: Solution, logits: Any, values: Any) -> Answers:
    """Leaves out what is illegal of `logits [D, A]`; `values` are `[D]`."""
    legal = solution.legal[solution.decisions]
    return Answers(np.asarray(logits, np.float32)[legal], np.asarray(values, np.float32))


def ask(player: Player, solution: Solution) -> Answers:
    """Asks a player's raw network about every position with a decision."""
    return make_answers(solution, *player.evaluate(solution.decision_states))


def save_answers(run_dir: str | os.PathLike[str], iteration: int, answers: Answers) -> None:
    """Writes `answers/ITERATION.npz` into a run directory, 83 kB of tic-tac-toe, whole or not.

    Raises:
      OSError: if the disk is full.
    """
    folder = pathlib.Path(run_dir) / _FOLDER
    folder.mkdir(exist_ok=True)
    with replacing(folder / f"{iteration:06d}.npz") as beside, beside.open("wb") as file:
        np.savez(file, **answers._asdict())


def answered(run_dir: str | os.PathLike[str]) -> list[int]:
    """Returns the iterations that a run has answers of, oldest first."""
    paths = (pathlib.Path(run_dir) / _FOLDER).glob("*.npz")
    return sorted(int(path.stem) for path in paths if path.stem.isdecimal())


def load_answers(run_dir: str | os.PathLike[str], iteration: int, solution: Solution) -> Answers:
    """Reads what `save_answers` wrote.

    Raises:
      ValueError: if the file is damaged, or of another game.
    """
    path = pathlib.Path(run_dir) / _FOLDER / f"{iteration:06d}.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            answers = Answers(*(arrays[name] for name in Answers._fields))
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged: delete it") from error
    legal = solution.legal[solution.decisions]
    wanted = [(np.float32, (int(legal.sum()),)), (np.float32, (len(legal),))]
    if [(field.dtype, field.shape) for field in answers] != wanted:
        raise ValueError(f"{path} holds no answers to the positions of this game: delete it")
    return answers


def pack_answers(iteration: int, answers: Answers) -> dict[str, Any]:
    """Returns a network as its answers, for `openNetworks` in `js/network.js`."""
    packed = {name: pack(field, "<f4") for name, field in answers._asdict().items()}
    return {"iteration": iteration, "kind": "answers"} | packed


def pack_weights(player: Player, width: int | None = None) -> dict[str, Any]:
    """Returns a network as its folded weights, for `openNetworks` in `js/network.js`.

    Args:
      player: whose network.
      width: bytes of a weight, 2 to 4; all that it has if None, 4 in float32 and 2 in bfloat16.
        With 3 it is rounded by up to 2**-16 of itself.

    Raises:
      ValueError: if it is no network that a page can compute.
    """
    network = player.parts.network
    if network.plain is None:
        raise ValueError(
            "a page computes MLPs and residual networks, and this network is another: train one of "
            "these"
        )
    kind, blocks, norm, layers = network.plain(player.params)
    size = width or jax.tree.leaves(layers)[0].dtype.itemsize
    about = {"kind": kind, "blocks": blocks, "norm": norm, "iteration": player.iteration}
    packed = {
        name: {part: _pack_floats(weights, size) for part, weights in layer.items()}
        for name, layer in layers.items()
    }
    return about | {"encoding": network.encoding, "width": size, "layers": packed}


def _pack_floats(weights: Any, width: int) -> str:
    """Rounds float32 numbers to their `width` upper bytes; base64."""
    bits = np.asarray(weights, "<f4").view("<u4")
    dropped = 4 - width
    bits = bits + np.uint32(2 ** (8 * dropped) // 2)
    return pack(bits.reshape(-1, 1).view("u1")[:, dropped:], "u1")
