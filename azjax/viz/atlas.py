"""The whole game in one picture: every position up to symmetry, and what a network does there.

Where they are too many it is a sample of them, of each ply as many as there is room for.

An atlas says where each class of equal positions stands; a portrait says how one network
plays in all of them. Training leaves one small portrait an iteration in its run directory.
"""

import os
import pathlib
import zipfile
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import replacing
from azjax.games import tic_tac_toe
from azjax.games.base import Game
from azjax.games.solver import Solution, symmetry_classes
from azjax.proof.verify import Verdict
from azjax.viz.page import pack
from azjax.viz.positions import true_values

Array = jax.Array | np.ndarray

_MOST = 2400  # Dots.
_WIDTH = 34  # Dots in a line, at most.
_GAP = 1  # Empty lines between the blocks of two plies.
_SCALES = {"policy": 255, "value": 100, "value_error": 100}  # Steps that a unit is stored in.
_TYPES = {
    "policy": np.uint8,
    "value": np.int8,
    "action": np.int16,
    "blunders": np.uint16,
    "value_error": np.uint8,
}
# What reading a file can raise; the last for marks of encryption or of another compression.
DAMAGE = (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)


class Atlas(NamedTuple):
    """`C` classes of positions equal up to symmetry, in the order in which they stand.

    From top to bottom by ply; inside a ply from left to right by what perfect play brings the
    player to move: won, drawn, lost, and at last finished games. NumPy arrays.

    Attributes:
      representatives: `int32 [C]`, one state of each class, as a row of the solution.
      ply: `int32 [C]`, moves made so far.
      classes: `int32 [S]`, the class of every state; `C` for those that are not shown.
      members: `int32 [C]`, how many decision states the class has; 0 where the game is over.
      total: how many classes the game has, all of them or more than are shown.
      x, y: `float32 [C]`, the place of its dot; neighbours are 1 apart, and y grows downwards.
    """

    representatives: np.ndarray
    ply: np.ndarray
    classes: np.ndarray
    members: np.ndarray
    total: int
    x: np.ndarray
    y: np.ndarray


class Portrait(NamedTuple):
    """What one network does in every class of an atlas. Zeros where the game is over.

    Attributes:
      policy: `float32 [C, A]`, its probabilities in the representative; 0 where illegal.
      value: `float32 [C]`, its value of the representative, for the player to move.
      action: `int32 [C]`, its move in the representative; -1 where the game is over.
      blunders: `int32 [C]`, members of the class where its move throws away value.
      value_error: `float32 [C]`, mean absolute error of its values over the members.
    """

    policy: Array
    value: Array
    action: Array
    blunders: Array
    value_error: Array


def make_atlas(game: Game, solution: Solution, most: int = _MOST) -> Atlas:
    """Sorts the positions of a solved game into classes and gives each of them its place.

    Of more classes than `most` it takes a sample: of each ply equally many, or all.
    """
    found = symmetry_classes(game, solution)
    first = np.empty(found.max() + 1, int)
    first[found[::-1]] = np.arange(len(found))[::-1]  # What is written last stays.
    ply = np.searchsorted(solution.layers, first, side="right") - 1
    shown = _sample(ply, most)
    order = np.lexsort((first, -solution.values[first], solution.over[first], ply))
    order = order[shown[order]]
    rank = np.full(len(first), len(order), np.int32)
    rank[order] = np.arange(len(order))
    classes = rank[found]
    members = np.bincount(classes[solution.decisions], minlength=len(order))[: len(order)]
    x, y = _places(np.bincount(ply[order]))
    return Atlas(
        representatives=first[order].astype(np.int32),
        ply=ply[order].astype(np.int32),
        classes=classes,
        members=members.astype(np.int32),
        total=len(first),
        x=x,
        y=y,
    )


def _sample(ply: np.ndarray, most: int) -> np.ndarray:
    """Chooses at most `most` classes, of each ply equally many or all: `bool [all of them]`."""
    sizes = np.bincount(ply)
    room = max(n for n in range(1, most + 1) if n == 1 or np.minimum(sizes, n).sum() <= most)
    drawn = np.lexsort((np.random.default_rng(0).random(len(ply)), ply))
    nth = np.empty(len(ply), int)  # Of those of its ply, in an order by lot.
    nth[drawn] = np.arange(len(ply)) - (np.cumsum(sizes) - sizes)[ply[drawn]]
    return nth < room


def _places(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places blocks of so many dots below each other, each filled column by column."""
    xs, ys, top = [], [], 0
    for size in sizes:
        lines = -(-size // _WIDTH)
        column, line = np.divmod(np.arange(size), max(lines, 1))
        columns = -(-size // max(lines, 1))
        xs.append(column + (_WIDTH - columns) / 2)
        ys.append(top + line)
        top += lines + _GAP
    return np.concatenate(xs).astype(np.float32), np.concatenate(ys).astype(np.float32)


def make_portrait(
    atlas: Atlas, solution: Solution, verdict: Verdict, logits: jax.Array, values: jax.Array
) -> Portrait:
    """Sums up what a network does in every decision state shown; pure, to be jitted.

    Args:
      atlas: from `make_atlas`.
      solution: of the same game.
      verdict: of the same network.
      logits: `[D, A]`; those of illegal actions mean nothing.
      values: `[D]`, for the player to move, in [-1, 1].
    """
    decisions, goes_on = solution.decisions, np.flatnonzero(atlas.members)
    rows = np.searchsorted(decisions, atlas.representatives[goes_on])  # Of those in `[D]`.
    classes, size = atlas.classes[decisions], len(atlas.members)
    policy = jax.nn.softmax(logits[rows], where=solution.legal[decisions[rows]])
    error = jnp.abs(values - solution.values[decisions])
    zeros = jnp.zeros(size, jnp.float32)
    return Portrait(
        policy=jnp.zeros((size, logits.shape[1])).at[goes_on].set(policy),
        value=zeros.at[goes_on].set(values[rows]),
        action=jnp.full(size, -1, jnp.int32).at[goes_on].set(verdict.actions[rows]),
        blunders=jnp.zeros(size, jnp.int32).at[classes].add(verdict.is_blunder, mode="drop"),
        value_error=zeros.at[classes].add(error, mode="drop") / np.maximum(atlas.members, 1),
    )


def save_portrait(run_dir: str | os.PathLike[str], iteration: int, portrait: Portrait) -> None:
    """Writes `portraits/ITERATION.npz` into a run directory, a few kilobytes, whole or not at all.

    Probabilities are rounded to 1/255, values and errors to 1/100. The same portrait always
    gives the same bytes.

    Raises:
      OSError: if it cannot be written.
    """
    folder = pathlib.Path(run_dir) / "portraits"
    folder.mkdir(exist_ok=True)
    path = folder / f"{iteration:06d}.npz"
    with replacing(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, **_quantize(portrait))


def _quantize(portrait: Portrait) -> dict[str, Any]:
    """Rounds the fields to small integers, what is not finite to 0."""
    rounded = {}
    for name, field in portrait._asdict().items():
        numbers = np.nan_to_num(np.asarray(field) * _SCALES.get(name, 1), posinf=0, neginf=0)
        limits = np.iinfo(_TYPES[name])
        rounded[name] = np.rint(numbers).clip(limits.min, limits.max).astype(_TYPES[name])
    return rounded


def load_portraits(run_dir: str | os.PathLike[str]) -> tuple[np.ndarray, Portrait]:
    """Reads what `save_portrait` wrote.

    Returns:
      `int [K]`, the iterations in ascending order, and the portraits, stacked to `[K, C, ...]`.

    Raises:
      ValueError: if there are none, or one is damaged.
    """
    found = (pathlib.Path(run_dir) / "portraits").glob("*.npz")
    paths = sorted((path for path in found if path.stem.isdecimal()), key=lambda p: int(p.stem))
    if not paths:
        raise ValueError(
            f"{run_dir} holds no portraits: give the folder of a training run, made by this "
            "version, of a game that can be enumerated"
        )
    portraits = [_load(path) for path in paths]
    if len({portrait.policy.shape for portrait in portraits}) > 1:
        raise ValueError(f"the portraits in {run_dir} are of different games: delete those of one")
    stacked = Portrait(*(np.stack(fields) for fields in zip(*portraits, strict=True)))
    return np.array([int(path.stem) for path in paths]), stacked


def _load(path: pathlib.Path) -> Portrait:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            fields = {name: arrays[name] for name in Portrait._fields}
        _check_fields(fields)
    except DAMAGE as error:
        raise ValueError(
            f"{path} is damaged: delete it, and the picture goes on without this iteration"
        ) from error
    scaled = {k: (fields[k] / scale).astype(np.float32) for k, scale in _SCALES.items()}
    whole = {k: field.astype(np.int32) for k, field in fields.items() if k not in _SCALES}
    return Portrait(**scaled, **whole)


def _check_fields(fields: dict[str, np.ndarray]) -> None:
    """Refuses arrays that are not those of one portrait."""
    classes, actions = fields["policy"].shape
    for name, field in fields.items():
        shape = (classes, actions) if name == "policy" else (classes,)
        if field.dtype != _TYPES[name] or field.shape != shape:
            raise ValueError(f"{name} is {field.dtype}{list(field.shape)}")


def choose_frames(iterations: np.ndarray, count: int) -> np.ndarray:
    """Chooses at most `count` iterations: all if they are few, else denser at the beginning.

    Returns:
      `int [N]`, their places in `iterations`, the first and the last always among them.
    """
    last = len(iterations) - 1
    if last < count:
        return np.arange(last + 1)
    chosen = np.array([0, last])
    for size in range(count, 10 * count):
        spread = np.unique(np.rint(np.geomspace(1, last + 1, size)).astype(int) - 1)
        if len(spread) > count:
            break
        chosen = spread
    return chosen


def atlas_data(
    game: Game,
    solution: Solution,
    atlas: Atlas,
    iterations: np.ndarray,
    portraits: Portrait,
    max_frames: int = 24,
) -> dict[str, Any]:
    """Puts an atlas and the portraits of a run into a JSON object for `js/atlas.js`.

    Arrays are little-endian and in base64: `x2` (twice x, which may be a half), `y`, `ply`,
    `player`, `members`, `truth` (for the player to move; of finished games the outcome),
    `moves` (`[C, A]`: 0 illegal, 1 legal, 2 optimal). `symmetries` are permutations of the
    cells of boards. Each frame has `policy` in 1/255,
    `value` and `error` in 1/100, `action` and `blunders`.
    """
    check_atlas(atlas, portraits)
    rows = atlas.representatives
    small = _quantize(portraits)
    frames = [
        {
            "iteration": int(iterations[k]),
            "blunders": int(portraits.blunders[k].sum()),
            "policy": pack(small["policy"][k], "u1"),
            "value": pack(small["value"][k], "i1"),
            "action": pack(small["action"][k], "<i2"),
            "wrong": pack(small["blunders"][k], "<u2"),
            "error": pack(small["value_error"][k], "u1"),
        }
        for k in choose_frames(iterations, max_frames)
    ]
    legal = solution.legal[rows].astype(int)
    return {
        **_looks(game, solution, rows),
        "decisions": int(atlas.members.sum()),
        "total": atlas.total,
        "x2": pack(atlas.x * 2, "<u2"),
        "y": pack(atlas.y, "<u2"),
        "ply": pack(atlas.ply, "u1"),
        "player": pack(solution.player[rows], "u1"),
        "members": pack(atlas.members, "<u2"),
        "truth": pack(true_values(solution)[rows], "i1"),
        "moves": pack(legal + solution.optimal[rows], "u1"),
        "frames": frames,
    }


def check_atlas(atlas: Atlas, portraits: Portrait) -> None:
    """Refuses portraits of another game.

    Raises:
      ValueError: if they have another number of classes.
    """
    known, given = len(atlas.members), portraits.blunders.shape[-1]
    if known != given:
        raise ValueError(
            f"the portraits have {given} classes of positions, and the atlas {known}: they are "
            "not of the same game"
        )


def _looks(game: Game, solution: Solution, rows: np.ndarray) -> dict[str, Any]:
    """Of some states: boards that the page can draw, or the texts of a game unknown to it."""
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    if game.symmetries is not None and game.display.draw is tic_tac_toe.make().display.draw:
        return {
            "boards": tic_tac_toe.board_text(states),
            "shape": list(game.board_shape),
            "symmetries": game.symmetries.cells.tolist(),
        }
    each = (jax.tree.map(lambda leaf: leaf[i], states) for i in range(len(rows)))
    return {"texts": [game.display.render(state) for state in each]}
