"""An animated SVG of a training run: every position of the game, one frame per iteration.

The animation is plain CSS, so READMEs, slides and pages show it without JavaScript. It follows the
viewer's color scheme; with reduced motion, only the last frame is shown.
"""

import numpy as np

from azjax.drawing import Drawing, canvas, node
from azjax.viz.atlas import Atlas, Snapshot, check_atlas, choose_frames

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
)
_BLUNDERS = {  # By `Atlas.is_merged`.
    True: (("some", "half", "all"), "blunder in some, at least half, or all symmetric copies"),
    False: (("all",), "blunder"),
}


def draw_animation(
    atlas: Atlas, iterations: np.ndarray, snapshots: Snapshot, max_frames: int = 12
) -> Drawing:
    """Draws the blunders of the network in every iteration.

    Every dot is one class of positions; `Atlas` defines where it is.

    Args:
      atlas: the places of the dots.
      iterations: `int [K]`, ascending.
      snapshots: those of the iterations, stacked, as returned by `load_snapshots`.
      max_frames: the maximum number of frames. The first and last iteration are always shown.
    """
    check_atlas(atlas, snapshots)
    chosen = choose_frames(iterations, max_frames)
    height = _TOP + int(atlas.y.max()) * _PITCH + _BELOW
    slots = len(chosen) - 1 + _HOLD
    frames = []
    for i, k in enumerate(chosen):
        frame = _frame(atlas, int(iterations[k]), np.asarray(snapshots.blunders[k]))
        # A negative delay starts in the middle of the cycle, so the first cycle shows all frames.
        frame.set("style", f"animation-delay: {(i - slots) * _SECONDS:g}s")
        frames.append(frame)
    first, last = (int(snapshots.blunders[k].sum()) for k in (chosen[0], chosen[-1]))
    label = (
        f"{_of_all(atlas)} {_positions(atlas)}: {first:,} blunders after "
        f"{iterations[chosen[0]]} iterations, {last:,} after {iterations[chosen[-1]]}"
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


def _of_all(atlas: Atlas) -> str:
    shown, total = len(atlas.ply), atlas.total
    return f"all {total:,}" if shown == total else f"{shown:,} of {total:,}"


def _positions(atlas: Atlas) -> str:
    return "positions up to symmetry" if atlas.is_merged else "positions"


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
    """Draws the number of moves next to each block of dots."""
    look = {"class": "az-animation-quiet", "font-size": 13, "text-anchor": "middle", "x": 20}
    rows = [atlas.y[atlas.ply == ply].mean() for ply in range(int(atlas.ply.max()) + 1)]
    return [
        node("text", look | {"y": _TOP + _PITCH * float(row) + 4}, ply)
        for ply, row in enumerate(rows)
    ]


def _legend(atlas: Atlas, height: float) -> list:
    """Draws the description of the dots and of their colors."""
    look = {"class": "az-animation-quiet", "font-size": 13}
    place = {"x": _RIGHT, "text-anchor": "end"}
    total = f"{int(atlas.members.sum()):,}"
    lines = (
        f"in {total} positions. The dots are {_of_all(atlas)}",
        f"{_positions(atlas)}, by the number of moves made",
    )
    parts = [node("text", look | place | {"y": 60 + 19 * i}, t) for i, t in enumerate(lines)]
    for styles, text, x, below in (*_LEGEND, (*_BLUNDERS[atlas.is_merged], 16, 16)):
        y = height - below - 4
        for j, style in enumerate(styles):
            dot = {"class": f"az-animation-{style}", "d": f"M{x + 5 + 13 * j} {y:g}h0"}
            parts.append(node("path", dot))
        parts.append(node("text", look | {"x": x + 4 + 13 * len(styles), "y": y + 4}, text))
    return parts
