"""A map of a whole game: every position up to symmetry, and how a network plays there.

Positions that are equal up to symmetry form a class. An atlas gives each class a place in the
picture; if there are too many classes, it has a sample of them. A snapshot holds the outputs of one
network in these classes. Training saves a small snapshot of each iteration in its run directory.
"""

import math
import os
import pathlib
import zipfile
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import replacing
from azjax.games.base import Game
from azjax.games.solver import Solution, symmetry_classes
from azjax.proof.verify import Verdict
from azjax.viz.page import pack
from azjax.viz.positions import board_text, has_rules, pack_names, pack_pictures, true_values

Array = jax.Array | np.ndarray

_MOST = 2400  # Dots.
_WIDTH = 34  # Dots in a row, at most.
_GAP = 1  # Empty rows between the blocks of two plies.
_SCALES = {"policy": 255, "value": 100, "value_error": 100}  # Stored steps per unit.
_TYPES = {
    "policy": np.uint8,
    "value": np.int8,
    "action": np.int16,
    "blunders": np.uint16,
    "value_error": np.uint8,
}
# Errors from reading a damaged file; zipfile raises RuntimeError for encryption flags.
DAMAGE = (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)


class Atlas(NamedTuple):
    """`C` classes of positions that are equal up to symmetry, as NumPy arrays.

    They are sorted by ply from top to bottom. Within a ply they are sorted from left to right by
    the value for the player to move: won, drawn, lost, then finished games.

    Attributes:
      representatives: `int32 [C]`, one state of each class, as a row of the solution.
      ply: `int32 [C]`, moves made so far.
      classes: `int32 [S]`, the class of every state; `C` for states that are not shown.
      members: `int32 [C]`, the number of decision states in the class; 0 where the game is over.
      total: the number of classes in the game, shown or not.
      x, y: `float32 [C]`, the place of the dot; neighbors are 1 apart, and y grows downwards.
    """

    representatives: np.ndarray
    ply: np.ndarray
    classes: np.ndarray
    members: np.ndarray
    total: int
    x: np.ndarray
    y: np.ndarray

    @property
    def is_merged(self) -> bool:
        """Whether some dot is several positions, as the game has symmetries."""
        return bool((self.members > 1).any())


class Snapshot(NamedTuple):
    """The outputs of one network in every class of an atlas; zeros where the game is over.

    Attributes:
      policy: `float32 [C, A]`, probabilities in the representative; 0 where illegal.
      value: `float32 [C]`, the value of the representative, for the player to move.
      action: `int32 [C]`, the network's move in the representative; -1 where the game is over.
      blunders: `int32 [C]`, the number of members in which the network's move worsens the outcome.
      value_error: `float32 [C]`, the mean absolute error of the values over the members.
    """

    policy: Array
    value: Array
    action: Array
    blunders: Array
    value_error: Array


def make_atlas(game: Game, solution: Solution, most: int = _MOST) -> Atlas:
    """Groups the positions of a solved game into classes and places each of them.

    If there are more classes than `most`, the atlas is a sample: the same number of classes from
    each ply, or all classes of a ply that has fewer.
    """
    found = symmetry_classes(game, solution)
    first = np.empty(found.max() + 1, int)
    first[found[::-1]] = np.arange(len(found))[::-1]  # The last write wins.
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
    """Chooses at most `most` classes, as `make_atlas` describes; returns `bool [all classes]`."""
    sizes = np.bincount(ply)
    room = max(n for n in range(1, most + 1) if n == 1 or np.minimum(sizes, n).sum() <= most)
    drawn = np.lexsort((np.random.default_rng(0).random(len(ply)), ply))
    nth = np.empty(len(ply), int)  # Within its ply, in random order.
    nth[drawn] = np.arange(len(ply)) - (np.cumsum(sizes) - sizes)[ply[drawn]]
    return nth < room


def _places(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places blocks of dots below each other; each block is filled column by column."""
    xs, ys, top = [], [], 0
    for size in sizes:
        lines = -(-size // _WIDTH)
        column, line = np.divmod(np.arange(size), max(lines, 1))
        columns = -(-size // max(lines, 1))
        xs.append(column + (_WIDTH - columns) / 2)
        ys.append(top + line)
        top += lines + _GAP
    return np.concatenate(xs).astype(np.float32), np.concatenate(ys).astype(np.float32)


def make_snapshot(
    atlas: Atlas, solution: Solution, verdict: Verdict, logits: jax.Array, values: jax.Array
) -> Snapshot:
    """Summarizes a network's outputs in every decision state shown; can be jitted.

    Args:
      atlas: from `make_atlas`.
      solution: of the same game.
      verdict: of the same network.
      logits: `[D, A]`, in the `D` decision states; entries of illegal actions are ignored.
      values: `[D]`, for the player to move, in [-1, 1].
    """
    decisions, open_classes = solution.decisions, np.flatnonzero(atlas.members)
    rows = np.searchsorted(decisions, atlas.representatives[open_classes])  # In `[D]`.
    classes, size = atlas.classes[decisions], len(atlas.members)
    policy = jax.nn.softmax(logits[rows], where=solution.legal[decisions[rows]])
    error = jnp.abs(values - solution.values[decisions])
    zeros = jnp.zeros(size, jnp.float32)
    members = np.maximum(atlas.members, 1).astype(np.float32)
    is_blunder = verdict.is_blunder.astype(jnp.int32)
    return Snapshot(
        policy=jnp.zeros((size, logits.shape[1]), jnp.float32).at[open_classes].set(policy),
        value=zeros.at[open_classes].set(values[rows]),
        action=jnp.full(size, -1, jnp.int32).at[open_classes].set(verdict.actions[rows]),
        blunders=jnp.zeros(size, jnp.int32).at[classes].add(is_blunder, mode="drop"),
        value_error=zeros.at[classes].add(error, mode="drop") / members,
    )


def save_snapshot(run_dir: str | os.PathLike[str], iteration: int, snapshot: Snapshot) -> None:
    """Writes `snapshots/ITERATION.npz` into a run directory, atomically.

    Probabilities are rounded to 1/255, values and errors to 1/100. Equal snapshots give equal
    bytes.
    """
    folder = pathlib.Path(run_dir) / "snapshots"
    folder.mkdir(exist_ok=True)
    path = folder / f"{iteration:06d}.npz"
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **_quantize(snapshot))


def _quantize(snapshot: Snapshot) -> dict[str, Any]:
    """Rounds the fields to small integers; numbers that are not finite become 0."""
    rounded = {}
    for name, field in snapshot._asdict().items():
        numbers = np.nan_to_num(np.asarray(field) * _SCALES.get(name, 1), posinf=0, neginf=0)
        limits = np.iinfo(_TYPES[name])
        rounded[name] = np.rint(numbers).clip(limits.min, limits.max).astype(_TYPES[name])
    return rounded


def load_snapshots(run_dir: str | os.PathLike[str]) -> tuple[np.ndarray, Snapshot]:
    """Reads the files that `save_snapshot` wrote.

    Returns:
      `int [K]`, the iterations in ascending order, and the snapshots, stacked to `[K, C, ...]`.
    """
    found = (pathlib.Path(run_dir) / "snapshots").glob("*.npz")
    paths = sorted((path for path in found if path.stem.isdecimal()), key=lambda p: int(p.stem))
    if not paths:
        raise ValueError(
            f"{run_dir} holds no snapshots: use the directory of a training run, made by this "
            "version, of a game that can be enumerated"
        )
    snapshots = [_load(path) for path in paths]
    if len({snapshot.policy.shape for snapshot in snapshots}) > 1:
        raise ValueError(f"the snapshots in {run_dir} are of several games: keep those of one")
    stacked = Snapshot(*(np.stack(fields) for fields in zip(*snapshots, strict=True)))
    return np.array([int(path.stem) for path in paths]), stacked


def _load(path: pathlib.Path) -> Snapshot:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            fields = {name: arrays[name] for name in Snapshot._fields}
        _check_fields(fields)
    except DAMAGE as error:
        raise ValueError(
            f"{path} is damaged: delete it, and the picture leaves out this iteration"
        ) from error
    scaled = {k: (fields[k] / scale).astype(np.float32) for k, scale in _SCALES.items()}
    whole = {k: field.astype(np.int32) for k, field in fields.items() if k not in _SCALES}
    return Snapshot(**scaled, **whole)


def _check_fields(fields: dict[str, np.ndarray]) -> None:
    """Rejects arrays that do not form one snapshot."""
    classes, actions = fields["policy"].shape
    for name, field in fields.items():
        shape = (classes, actions) if name == "policy" else (classes,)
        if field.dtype != _TYPES[name] or field.shape != shape:
            raise ValueError(f"{name} is {field.dtype}{list(field.shape)}")


def choose_frames(iterations: np.ndarray, count: int) -> np.ndarray:
    """Chooses at most `count` iterations: all of them, or a choice that is denser at the start.

    Returns:
      `int [N]`, indices into `iterations`, always with the first and the last.
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
    snapshots: Snapshot,
    max_frames: int = 24,
) -> dict[str, Any]:
    """Packs an atlas and the snapshots of a run for `js/atlas.js`.

    Returns:
      A dictionary for JSON. Arrays are little-endian, in base64: `x2` (twice x), `y`, `ply`,
      `player`, `members`, `truth` (for the player to move, in finished games the outcome), and
      `moves` (`[C, A]`: 0 illegal, 1 legal, 2 optimal). Each frame has its `iteration`, the total
      of its `blunders`, and arrays by class: `policy` in 1/255, `value` and `error` in 1/100,
      `action`, and `wrong`, the number of blunders. `_board_data` describes the other entries.
    """
    check_atlas(atlas, snapshots)
    rows = atlas.representatives
    small = _quantize(snapshots)
    frames = [
        {
            "iteration": int(iterations[k]),
            "blunders": int(snapshots.blunders[k].sum()),
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
        **_board_data(game, solution, atlas),
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


def check_atlas(atlas: Atlas, snapshots: Snapshot) -> None:
    """Rejects snapshots of another game."""
    known, given = len(atlas.members), snapshots.blunders.shape[-1]
    if known != given:
        raise ValueError(
            f"the snapshots have {given} classes of positions, but the atlas has {known}: use "
            "snapshots and an atlas of one game"
        )


def _board_data(game: Game, solution: Solution, atlas: Atlas) -> dict[str, Any]:
    """Describes how the page draws the representatives and finds the class of a position.

    For games whose rules the page has, these are `boards` as `.XO`, their `shape`, and
    `symmetries` as permutations of cells. For other games these are `pictures`, and `names` and
    `named` as in `position_table`; if the game is small, also the `rows` of the representatives in
    the solution, and the `classes` of its states.
    """
    rows = atlas.representatives
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    if has_rules(game):
        identity = np.arange(math.prod(game.board_shape))[None]
        symmetries = identity if game.symmetries is None else game.symmetries.cells
        return {
            "game": game.name,
            "boards": board_text(states),
            "symmetries": symmetries.tolist(),
        }
    drawn = pack_names(game, states)
    drawn["pictures"] = pack_pictures(game, states, solution.legal[rows])
    if not game.is_small:
        return drawn
    return drawn | {"rows": pack(rows, "<u4"), "classes": pack(atlas.classes, "<u4")}
