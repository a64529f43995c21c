"""An animated SVG of a training run: every position of the game, one frame per iteration.

Training saves in which positions the network blunders: `snapshots/` in the run directory. In the
picture, positions that are equal up to symmetry are one dot. The animation is plain CSS, so
READMEs, slides and pages show it without JavaScript. It follows the viewer's color scheme; with
reduced motion, only the last frame is shown.
"""

import pathlib
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

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
_QUIET = {"class": "az-animation-quiet", "font-size": 13}
_LEGEND = (  # Styles of the dots, their meaning, and the distance from the left and the bottom.
    (("ok",), "plays an optimal move", 16, 42),
    (("over",), "game over", 260, 42),
    (("some", "half", "all"), "blunder in some, at least half, or all symmetric copies", 16, 20),
)


class Atlas(NamedTuple):
    """`C` dots, the classes of positions that are equal up to symmetry.

    They are sorted by ply from top to bottom. Within a ply they are sorted from left to right by
    the value for the player to move: won, drawn, lost, then finished games.
    """

    ply: np.ndarray  # `int [C]`, moves made so far.
    classes: np.ndarray  # `int [D]`, the dot of every decision state.
    members: np.ndarray  # `int [C]`, decision states of the dot; 0 where the game is over.
    x: np.ndarray  # `[C]`; neighbors are 1 apart.
    y: np.ndarray  # `[C]`, from top to bottom.


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
        rows = max(-(-size // _COLUMNS), 1)
        column, row = np.divmod(np.arange(size), rows)
        xs.append(column + (_COLUMNS - -(-size // rows)) / 2)
        ys.append(top + row)
        top += rows + 1
    return np.concatenate(xs), np.concatenate(ys)


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
    slots, frames = len(iterations) - 1 + _HOLD, []
    for i, (iteration, row) in enumerate(zip(iterations, is_blunder, strict=True)):
        # A negative delay starts in the middle of the cycle, so the first cycle shows all frames.
        delay = f"animation-delay: {(i - slots) * _SECONDS:g}s"
        look = {"class": "az-animation-frame", "style": delay}
        frames.append(node("g", look, *_frame(atlas, int(iteration), row)))
    label = (
        f"all {len(atlas.ply):,} positions up to symmetry: {is_blunder[0].sum():,} blunders after "
        f"{iterations[0]} iterations, {is_blunder[-1].sum():,} after {iterations[-1]}"
    )
    picture = canvas(
        _WIDTH,
        height,
        node("style", None, _STYLE + _keyframes(slots)),
        node("rect", {"class": "az-animation-paper", "width": _WIDTH, "height": height, "rx": 8}),
        *_axis_and_legend(atlas, height),
        _dots(atlas, atlas.members == 0, "over"),
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


def _frame(atlas: Atlas, iteration: int, is_blunder: np.ndarray) -> Iterator[Element]:
    """Draws the dots of one iteration, its number, and its number of blunders."""
    blunders = np.bincount(atlas.classes, is_blunder, minlength=len(atlas.ply))
    share = blunders / np.maximum(atlas.members, 1)
    limits = [atlas.members == 0, share == 0, share < 0.5, share < 1]
    styles = np.select(limits, ["over", "ok", "some", "half"], "all")
    for style in sorted({*styles} - {"over"}):
        yield _dots(atlas, styles == style, style)
    count = int(is_blunder.sum())
    text = "1 blunder" if count == 1 else f"{count:,} blunders" if count else "no blunder"
    large = {"x": _RIGHT, "y": 36, "text-anchor": "end", "font-size": 28, "font-weight": 650}
    yield node("text", {"x": 16, "y": 36, "font-size": 17}, f"iteration {iteration}")
    yield node("text", large, text)


def _dots(atlas: Atlas, where: np.ndarray, style: str) -> Element:
    """Draws dots as one path with round caps, a tenth of the size of separate circles."""
    places = zip(atlas.x[where], atlas.y[where], strict=True)
    points = (f"M{_LEFT + _PITCH * float(x):g} {_TOP + _PITCH * float(y):g}h0" for x, y in places)
    return node("path", {"class": f"az-animation-{style}", "d": "".join(points)})


def _axis_and_legend(atlas: Atlas, height: float) -> Iterator[Element]:
    for ply in np.unique(atlas.ply):
        y = _TOP + _PITCH * float(atlas.y[atlas.ply == ply].mean()) + 4
        yield node("text", {"x": 20, "y": y, "text-anchor": "middle"} | _QUIET, ply)
    lines = (
        f"in {int(atlas.members.sum()):,} positions. The dots are all {len(atlas.ply):,}",
        "positions up to symmetry, by the number of moves made",
    )
    for y, text in zip((60, 79), lines, strict=True):
        yield node("text", {"x": _RIGHT, "y": y, "text-anchor": "end"} | _QUIET, text)
    for styles, text, x, below in _LEGEND:
        for i, style in enumerate(styles):
            dot = {"class": f"az-animation-{style}", "d": f"M{x + 5 + 13 * i} {height - below:g}h0"}
            yield node("path", dot)
        place = {"x": x + 4 + 13 * len(styles), "y": height - below + 4}
        yield node("text", place | _QUIET, text)
