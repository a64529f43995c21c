"""An animated SVG of a training run: every position of the game, one frame per iteration.

Training saves in which positions the network blunders: `snapshots/` in the run directory. In the
picture, positions that are equal up to symmetry are one dot. The animation is plain CSS, so
READMEs, slides and pages show it without JavaScript. It follows the viewer's color scheme; with
reduced motion, only the last frame is shown.
"""

import pathlib
from typing import NamedTuple

import numpy as np

from azjax._files import Path, replacing
from azjax.drawing import Drawing, canvas, node
from azjax.games.base import Game
from azjax.games.solver import Solution, symmetry_classes

_FRAMES = 12  # At most.
_COLUMNS = 34  # Dots in a row, at most; the next ply starts after an empty row.
_WIDTH, _PITCH, _LEFT, _RIGHT = 504, 13, 46, 488  # A font size of 13 is 9 pixels on a phone.
_TOP, _BELOW = 108, 68  # Margins above and below the dots.
_SECONDS, _HOLD = 1.0, 4  # Duration of a frame; number of durations that the last frame stays.
_STYLE = """
.az-animation:root { color-scheme: light dark }
.az-animation-paper { fill: light-dark(#fdfdfc, #16191d) }
.az-animation text { fill: light-dark(#24292f, #e6e8eb) }
.az-animation .az-animation-quiet { fill: light-dark(#59616b, #a3abb5) }
.az-animation path { fill: none; stroke-linecap: round }
.az-animation-over { stroke: light-dark(#dcdfe3, #3a414a); stroke-width: 8 }
.az-animation-ok { stroke: light-dark(#5b9fc0, #3f7f9f); stroke-width: 8 }
.az-animation-some { stroke: light-dark(#f2a56f, #8a5a35); stroke-width: 11 }
.az-animation-half { stroke: light-dark(#e3772b, #c96a24); stroke-width: 11 }
.az-animation-all { stroke: light-dark(#d55e00, #ff8f3f); stroke-width: 11 }
.az-animation-frame { opacity: 0 }
.az-animation-frame:last-of-type { opacity: 1 }
"""
_LEGEND = (  # Styles of the dots, their meaning, and the distance from the left and the bottom.
    (("ok",), "plays an optimal move", 16, 38),
    (("over",), "game over", 260, 38),
    (("some", "half", "all"), "blunder in some, at least half, or all symmetric copies", 16, 16),
)


class Atlas(NamedTuple):
    """`C` dots, the classes of positions that are equal up to symmetry.

    They are sorted by ply from top to bottom. Within a ply they are sorted from left to right by
    the value for the player to move: won, drawn, lost, then finished games.
    """

    ply: np.ndarray  # `int [C]`, moves made so far.
    classes: np.ndarray  # `int [D]`, the dot of every decision state.
    members: np.ndarray  # `int [C]`, decision states of the dot; 0 where the game is over.
    x: np.ndarray  # `float32 [C]`; neighbors are 1 apart.
    y: np.ndarray  # `float32 [C]`, from top to bottom.


def make_atlas(game: Game, solution: Solution) -> Atlas:
    """Groups the positions of a solved game into classes and places each of them."""
    every = symmetry_classes(game, solution)
    _, first = np.unique(every, return_index=True)
    ply = np.searchsorted(solution.layers, first, side="right") - 1
    order = np.lexsort((first, -solution.values[first], solution.over[first], ply))
    classes = np.argsort(order)[every[solution.decisions]]
    members = np.bincount(classes, minlength=len(order))
    return Atlas(ply[order], classes, members, *_places(np.bincount(ply)))


def _places(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places blocks of dots below each other; each block is filled column by column."""
    xs, ys, top = [], [], 0
    for size in sizes:
        rows = -(-size // _COLUMNS)
        columns = -(-size // max(rows, 1))
        column, row = np.divmod(np.arange(size), max(rows, 1))
        xs.append(column + (_COLUMNS - columns) / 2)
        ys.append(top + row)
        top += rows + 1
    return np.concatenate(xs).astype(np.float32), np.concatenate(ys).astype(np.float32)


def save_blunders(run_dir: Path, iteration: int, is_blunder: np.ndarray) -> None:
    """Writes `bool [D]`, the decision states in which the network blunders, one bit for each."""
    folder = pathlib.Path(run_dir) / "snapshots"
    folder.mkdir(exist_ok=True)
    with replacing(folder / f"{iteration:06d}.bits") as partial:
        partial.write_bytes(np.packbits(is_blunder).tobytes())


def drop_blunders(run_dir: Path, after: int) -> None:
    """Removes what `save_blunders` wrote after an iteration."""
    for path in _find(run_dir):
        if int(path.stem) > after:
            path.unlink()


def _find(run_dir: Path) -> list[pathlib.Path]:
    found = (pathlib.Path(run_dir) / "snapshots").glob("*.bits")
    return [path for path in found if path.stem.isdecimal()]


def load_blunders(run_dir: Path, count: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Reads what `save_blunders` wrote in at most `most` iterations, in a game with `count` states.

    Returns:
      `int [K]`, the iterations in ascending order, and `bool [K, count]`.
    """
    paths = sorted(_find(run_dir), key=lambda path: int(path.stem))
    if not paths:
        raise ValueError(
            f"{run_dir} holds no snapshots: use the directory of a training run, made by this "
            "version, of a game that can be enumerated"
        )
    paths = [paths[i] for i in choose_frames(len(paths), most)]
    rows = []
    for path in paths:
        bits = np.frombuffer(path.read_bytes(), np.uint8)
        if len(bits) != -(-count // 8):
            raise ValueError(f"{path} is damaged, or of another game: delete it")
        rows.append(np.unpackbits(bits, count=count).astype(bool))
    return np.array([int(path.stem) for path in paths]), np.stack(rows)


def choose_frames(number: int, most: int) -> np.ndarray:
    """Returns the indices of at most `most` frames, denser at the start, with first and last."""
    if number <= most:
        return np.arange(number)
    return np.unique(np.rint(np.geomspace(1, number, most)).astype(int)) - 1


def draw_run(run_dir: Path, game: Game, solution: Solution) -> Drawing:
    """Draws the animation of a run; the first and last iteration are always shown."""
    if not game.is_small:
        raise ValueError(f"{game.name} has more positions than a picture can show: leave it out")
    frames = load_blunders(run_dir, len(solution.decisions), _FRAMES)
    return draw_animation(make_atlas(game, solution), *frames)


def draw_animation(atlas: Atlas, iterations: np.ndarray, is_blunder: np.ndarray) -> Drawing:
    """Draws the blunders of the network, `bool [K, D]`, in `K` iterations."""
    height = _TOP + int(atlas.y.max()) * _PITCH + _BELOW
    slots = len(iterations) - 1 + _HOLD
    blunders = [np.bincount(atlas.classes[row], minlength=len(atlas.ply)) for row in is_blunder]
    frames = []
    for i, (iteration, counts) in enumerate(zip(iterations, blunders, strict=True)):
        frame = _frame(atlas, int(iteration), counts)
        # A negative delay starts in the middle of the cycle, so the first cycle shows all frames.
        frame.set("style", f"animation-delay: {(i - slots) * _SECONDS:g}s")
        frames.append(frame)
    label = (
        f"all {len(atlas.ply):,} positions up to symmetry: {blunders[0].sum():,} blunders after "
        f"{iterations[0]} iterations, {blunders[-1].sum():,} after {iterations[-1]}"
    )
    picture = canvas(
        _WIDTH,
        height,
        node("style", None, _STYLE + _keyframes(slots)),
        node("rect", {"class": "az-animation-paper", "width": _WIDTH, "height": height, "rx": 8}),
        *_plies(atlas),
        _dots(atlas, atlas.members == 0, "over"),
        *_legend(atlas, height),
        *frames,
        label=label,
    )
    picture.element.set("class", "az-animation")
    picture.element.set("style", f"width: 100%; max-width: {_WIDTH}px; height: auto")
    return picture


def _keyframes(slots: int) -> str:
    """Returns CSS that shows each frame for one slot, and the last frame for `_HOLD` slots."""
    show, stay = "az-animation-show", "az-animation-stay"
    one, rest = 100 / slots, 100 * _HOLD / slots
    return (
        f"@keyframes {show} {{ {one:.3f}%, to {{ opacity: 0 }} from {{ opacity: 1 }} }}\n"
        f"@keyframes {stay} {{ {rest:.3f}%, to {{ opacity: 0 }} from {{ opacity: 1 }} }}\n"
        "@media (prefers-reduced-motion: no-preference) {\n"
        f".az-animation-frame {{ animation: {show} {slots * _SECONDS:g}s step-end infinite }}\n"
        f".az-animation-frame:last-of-type {{ animation-name: {stay} }}\n}}\n"
    )


def _frame(atlas: Atlas, iteration: int, blunders: np.ndarray):
    """Draws the dots of one iteration, its number, and its number of blunders."""
    share = blunders / np.maximum(atlas.members, 1)
    styles = {
        "ok": (atlas.members > 0) & (share == 0),
        "some": (share > 0) & (share < 0.5),
        "half": (share >= 0.5) & (share < 1),
        "all": share == 1,
    }
    count = int(blunders.sum())
    text = "1 blunder" if count == 1 else f"{count:,} blunders" if count else "no blunder"
    large = {"x": _RIGHT, "y": 36, "text-anchor": "end", "font-size": 28, "font-weight": 650}
    return node(
        "g",
        {"class": "az-animation-frame"},
        *(_dots(atlas, where, style) for style, where in styles.items() if where.any()),
        node("text", {"x": 16, "y": 36, "font-size": 17}, f"iteration {iteration}"),
        node("text", large, text),
    )


def _dots(atlas: Atlas, where: np.ndarray, style: str):
    """Draws dots as one path with round caps, a tenth of the size of separate circles."""
    places = zip(atlas.x[where], atlas.y[where], strict=True)
    points = (f"M{_LEFT + _PITCH * float(x):g} {_TOP + _PITCH * float(y):g}h0" for x, y in places)
    return node("path", {"class": f"az-animation-{style}", "d": "".join(points)})


def _plies(atlas: Atlas) -> list:
    look = {"class": "az-animation-quiet", "font-size": 13, "text-anchor": "middle", "x": 20}
    rows = [atlas.y[atlas.ply == ply].mean() for ply in range(int(atlas.ply.max()) + 1)]
    return [
        node("text", look | {"y": _TOP + _PITCH * float(row) + 4}, ply)
        for ply, row in enumerate(rows)
    ]


def _legend(atlas: Atlas, height: float) -> list:
    look = {"class": "az-animation-quiet", "font-size": 13}
    place = {"x": _RIGHT, "text-anchor": "end"}
    total = f"{int(atlas.members.sum()):,}"
    lines = (
        f"in {total} positions. The dots are all {len(atlas.ply):,}",
        "positions up to symmetry, by the number of moves made",
    )
    parts = [node("text", look | place | {"y": 60 + 19 * i}, t) for i, t in enumerate(lines)]
    for styles, text, x, below in _LEGEND:
        y = height - below - 4
        for j, style in enumerate(styles):
            dot = {"class": f"az-animation-{style}", "d": f"M{x + 5 + 13 * j} {y:g}h0"}
            parts.append(node("path", dot))
        parts.append(node("text", look | {"x": x + 4 + 13 * len(styles), "y": y + 4}, text))
    return parts
