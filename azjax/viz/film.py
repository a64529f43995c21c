"""A film strip: the whole game in one picture for a few iterations of a run."""

import importlib.util
import os
import pathlib
from typing import Any

import numpy as np

from azjax.drawing import check_folder
from azjax.viz.atlas import Atlas, Portrait, check_atlas, choose_frames

# In points, from the top left; one drawing unit of the picture is one point.
_WIDTH, _MARGIN, _HEAD = 960, 40, 74
_PITCH, _COLUMNS = 6, 4
_PAPER, _INK, _QUIET = "#fdfdfc", "#24292f", "#6e7781"
_OVER, _OPTIMAL = "#dcdfe3", "#5b9fc0"
_BLUNDERS = ("#f2a56f", "#e3772b", "#d55e00")  # Some members, half or more, all of them.
_DOT, _LARGE_DOT = 3.8, 5.4  # Diameters.


def film_strip(
    atlas: Atlas,
    iterations: np.ndarray,
    portraits: Portrait,
    path: str | os.PathLike[str],
    panels: int = 8,
) -> None:
    """Draws a run as up to `panels` pictures of the whole game, into an SVG or PNG file.

    Every dot is one class of positions; see `Atlas` for its place.

    Args:
      atlas: the places.
      iterations: `int [K]`, ascending.
      portraits: of these iterations, stacked, as `load_portraits` returns them.
      path: the file; its ending says what it becomes.
      panels: the most pictures to draw; the first and the last iteration are always shown.

    Raises:
      ValueError: if matplotlib is missing, the path will not do, or the portraits are of
        another game.
    """
    path = pathlib.Path(path)
    check_film(path)
    check_atlas(atlas, portraits)
    import matplotlib  # An extra, and slow to import.
    from matplotlib.figure import Figure

    chosen = choose_frames(iterations, panels)
    step = (_WIDTH - 2 * _MARGIN - 33 * _PITCH) / (_COLUMNS - 1)
    tall = int(atlas.y.max()) * _PITCH + 58
    height = _HEAD + tall * -(-len(chosen) // _COLUMNS)
    figure = Figure((_WIDTH / 72, height / 72), facecolor=_PAPER)
    page: Any = figure.add_axes((0, 0, 1, 1), xlim=(0, _WIDTH), ylim=(height, 0))
    page.axis("off")
    _draw_head(page, len(atlas.ply))
    for place, k in enumerate(chosen):
        line, column = divmod(place, _COLUMNS)
        x, y = round(_MARGIN + column * step), _HEAD + line * tall
        blunders = np.asarray(portraits.blunders[k])
        _draw_panel(page, atlas, blunders, x, y)
        _write_below(page, int(iterations[k]), atlas, blunders, x, y)
        if column == 0:
            _number_plies(page, atlas, x, y)
    with matplotlib.rc_context({"svg.hashsalt": "azjax"}):  # The same picture, the same bytes.
        svg = path.suffix.lower() == ".svg"
        figure.savefig(path, dpi=144, metadata={"Date": None} if svg else None)


def check_film(path: pathlib.Path) -> None:
    """Refuses what no film strip can be written to.

    Raises:
      ValueError: if matplotlib is missing, the ending is another, or there is no folder.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("film strips need matplotlib: pip install 'azjax[plots]'")
    if path.suffix.lower() not in (".svg", ".png"):
        raise ValueError(f"{path} is neither SVG nor PNG: give a name that ends in .svg or .png")
    check_folder(path)


def _draw_head(page, num_classes: int) -> None:
    title = f"Every position of the game: {num_classes:,} up to symmetry, by number of moves made"
    page.text(_MARGIN, 30, title, fontsize=13, color=_INK, va="center")
    key = [
        (_OPTIMAL, _DOT, "plays an optimal move"),
        (_BLUNDERS[0], _LARGE_DOT, ""),
        (_BLUNDERS[1], _LARGE_DOT, ""),
        (_BLUNDERS[2], _LARGE_DOT, "blunders; stronger: in more of the symmetric positions"),
        (_OVER, _DOT, "game over"),
    ]
    x = _MARGIN + 3
    for color, size, words in key:
        _draw_dots(page, [x], [51], color, size)
        if words:
            page.text(x + 8, 51, words, fontsize=10, color=_QUIET, va="center_baseline")
        x += 8 if not words else 30 + 5.1 * len(words)


def _draw_panel(page, atlas: Atlas, blunders: np.ndarray, x: int, y: int) -> None:
    share = blunders / np.maximum(atlas.members, 1)
    over = atlas.members == 0
    some = blunders > 0
    groups = [
        (over, _OVER, _DOT),
        (~over & ~some, _OPTIMAL, _DOT),
        (some & (share < 0.5), _BLUNDERS[0], _LARGE_DOT),
        ((share >= 0.5) & (share < 1), _BLUNDERS[1], _LARGE_DOT),
        (some & (share == 1), _BLUNDERS[2], _LARGE_DOT),
    ]
    for chosen, color, size in groups:
        if chosen.any():
            xs, ys = x + _PITCH * atlas.x[chosen], y + _PITCH * atlas.y[chosen]
            _draw_dots(page, xs, ys, color, size)


def _draw_dots(page, xs, ys, color: str, size: float) -> None:
    """Draws dots as one path of round caps: a tenth of the size of as many circles."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    points = np.repeat(np.column_stack([xs, ys]).astype(float), 2, axis=0)
    points[1::2, 0] += 0.1  # Lines of no length at all would not be drawn.
    dots = Path(points, np.tile([Path.MOVETO, Path.LINETO], len(xs)))
    dots.should_simplify = False
    look = {"edgecolor": color, "linewidth": size, "capstyle": "round", "snap": False}
    page.add_patch(PathPatch(dots, fill=False, clip_on=False, **look))


def _write_below(page, iteration: int, atlas: Atlas, blunders: np.ndarray, x: int, y: int) -> None:
    count, decisions = int(blunders.sum()), int(atlas.members.sum())
    words = "1 blunder" if count == 1 else f"{count:,} blunders" if count else "no blunder"
    middle, below = x + 16.5 * _PITCH, y + _PITCH * int(atlas.y.max()) + 22
    text = f"iteration {iteration} · {words} of {decisions:,}"
    if not count:
        text = f"iteration {iteration} · {words} in {decisions:,}"
    look = {"fontsize": 10.5, "ha": "center", "color": _INK}
    page.text(middle, below, text, **look)


def _number_plies(page, atlas: Atlas, x: int, y: int) -> None:
    for ply in range(int(atlas.ply.max()) + 1):
        row = y + _PITCH * atlas.y[atlas.ply == ply].mean()
        look = {"fontsize": 8, "ha": "right", "va": "center_baseline", "color": "#9aa1a9"}
        page.text(x - 12, row, str(ply), **look)
