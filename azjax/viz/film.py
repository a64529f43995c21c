"""A film of a run: the whole game in one picture that moves, one frame an iteration.

The picture is an SVG with an animation of its own, for pages, READMEs and slides. It follows the
theme of whoever shows it, and for readers who prefer stillness it is its last frame.
"""

from typing import Any

import numpy as np

from azjax.drawing import Drawing, canvas, node
from azjax.viz.atlas import Atlas, Snapshot, check_atlas, choose_frames

_WIDTH, _PITCH, _LEFT, _RIGHT = 504, 13, 46, 488  # Text of 13 has 9 pixels on a phone.
_TOP, _BELOW = 108, 68  # Above and below the dots.
_SECONDS, _HOLD = 1.0, 4  # Of a frame; frames that the last one stays for.
_STYLE = """
.az-film:root { color-scheme: light dark }
.az-film-paper { fill: light-dark(#fdfdfc, #16191d) }
.az-film text { fill: light-dark(#24292f, #e6e8eb) }
.az-film .az-film-quiet { fill: light-dark(#59616b, #a3abb5) }
.az-film path { fill: none; stroke-linecap: round }
.az-film-over { stroke: light-dark(#dcdfe3, #3a414a); stroke-width: 8 }
.az-film-ok { stroke: light-dark(#5b9fc0, #3f7f9f); stroke-width: 8 }
.az-film-some { stroke: light-dark(#f2a56f, #8a5a35); stroke-width: 11 }
.az-film-half { stroke: light-dark(#e3772b, #c96a24); stroke-width: 11 }
.az-film-all { stroke: light-dark(#d55e00, #ff8f3f); stroke-width: 11 }
.az-film-frame { opacity: 0 }
.az-film-frame:last-of-type { opacity: 1 }
"""
_LEGEND = (  # Dots, what they mean, and where: from the left and from below.
    (("ok",), "plays an optimal move", 16, 38),
    (("over",), "game over", 260, 38),
    (("some", "half", "all"), "blunders, in some, half or all", 16, 16),
)


def film(
    atlas: Atlas, iterations: np.ndarray, snapshots: Snapshot, max_frames: int = 12
) -> Drawing:
    """Draws how a network came to play, in every class of equal positions.

    Every dot is one class; see `Atlas` for its place.

    Args:
      atlas: the places.
      iterations: `int [K]`, ascending.
      snapshots: of these iterations, stacked, as `load_snapshots` returns them.
      max_frames: the most to draw; the first and the last iteration are always shown.

    Raises:
      ValueError: if the snapshots are of another game.
    """
    check_atlas(atlas, snapshots)
    chosen = choose_frames(iterations, max_frames)
    height = _TOP + int(atlas.y.max()) * _PITCH + _BELOW
    frames = [_frame(atlas, int(iterations[k]), snapshots.blunders[k]) for k in chosen]
    for i, frame in enumerate(frames):
        frame.set("style", _turn(i, len(frames)))
    first, last = (int(snapshots.blunders[k].sum()) for k in (chosen[0], chosen[-1]))
    label = (
        f"{_of_all(atlas)} positions up to symmetry, over {len(frames)} iterations: "
        f"{first:,} blunders at the start, {last:,} at the end"
    )
    picture = canvas(
        _WIDTH,
        height,
        node("style", None, _STYLE + _animation(len(frames))),
        node("rect", {"class": "az-film-paper", "width": _WIDTH, "height": height, "rx": 8}),
        *_plies(atlas),
        _dots(atlas, atlas.members == 0, "over"),
        *_words(atlas, height),
        *frames,
        label=label,
    )
    picture.element.set("class", "az-film")
    picture.element.set("style", f"width: 100%; max-width: {_WIDTH}px; height: auto")
    return picture


def _of_all(atlas: Atlas) -> str:
    shown, total = len(atlas.ply), atlas.total
    return f"all {total:,}" if shown == total else f"{shown:,} of {total:,}"


def _animation(count: int) -> str:
    """Shows the frames in turn, the last one for longer."""
    slots = count - 1 + _HOLD
    length = f"{slots * _SECONDS:g}s"
    one, rest = 100 / slots, 100 * _HOLD / slots
    return (
        f"@keyframes az-film-show {{ {one:.3f}%, to {{ opacity: 0 }} from {{ opacity: 1 }} }}\n"
        f"@keyframes az-film-stay {{ {rest:.3f}%, to {{ opacity: 0 }} from {{ opacity: 1 }} }}\n"
        "@media (prefers-reduced-motion: no-preference) {\n"
        f".az-film-frame {{ animation: az-film-show {length} step-end infinite }}\n"
        ".az-film-frame:last-of-type { animation-name: az-film-stay }\n}\n"
    )


def _turn(i: int, count: int) -> str:
    """When a frame begins; as if the film had been running before, so that none waits."""
    slots = count - 1 + _HOLD
    return f"animation-delay: {(i - slots) * _SECONDS:g}s"


def _frame(atlas: Atlas, iteration: int, blunders: Any):
    """The dots of one iteration, and its numbers."""
    blunders, over = np.asarray(blunders), atlas.members == 0
    share = blunders / np.maximum(atlas.members, 1)
    looks = {
        "ok": ~over & (share == 0),
        "some": (share > 0) & (share < 0.5),
        "half": (share >= 0.5) & (share < 1),
        "all": share == 1,
    }
    count = int(blunders.sum())
    large = {"x": _RIGHT, "y": 36, "text-anchor": "end"}
    said = "1 blunder" if count == 1 else f"{count:,} blunders" if count else "no blunder"
    dots = [_dots(atlas, where, look) for look, where in looks.items() if where.any()]
    return node(
        "g",
        {"class": "az-film-frame"},
        *dots,
        node("text", {"x": 16, "y": 36, "font-size": 17}, f"iteration {iteration}"),
        node("text", large | {"font-size": 28, "font-weight": 650}, said),
    )


def _dots(atlas: Atlas, where: np.ndarray, look: str):
    """Dots as one path of round caps: a tenth of the size of as many circles."""
    places = zip(atlas.x[where], atlas.y[where], strict=True)
    points = (f"M{_LEFT + _PITCH * float(x):g} {_TOP + _PITCH * float(y):g}h0" for x, y in places)
    return node("path", {"class": f"az-film-{look}", "d": "".join(points)})


def _plies(atlas: Atlas) -> list:
    """The number of moves beside each block of dots."""
    quiet = {"class": "az-film-quiet", "font-size": 13, "text-anchor": "middle", "x": 20}
    rows = [atlas.y[atlas.ply == ply].mean() for ply in range(int(atlas.ply.max()) + 1)]
    return [
        node("text", quiet | {"y": _TOP + _PITCH * float(row) + 4}, ply)
        for ply, row in enumerate(rows)
    ]


def _words(atlas: Atlas, height: float) -> list:
    """What the dots are, and the legend."""
    quiet = {"class": "az-film-quiet", "font-size": 13}
    total = f"{int(atlas.members.sum()):,}"
    said = [
        f"of {total} positions with a choice, {_of_all(atlas)} up to symmetry,",
        "by the number of moves made",
    ]
    place = {"x": _RIGHT, "text-anchor": "end"}
    parts = [node("text", quiet | place | {"y": 60 + 19 * i}, t) for i, t in enumerate(said)]
    for looks, words, x, below in _LEGEND:
        y = height - below - 4
        for j, look in enumerate(looks):
            parts.append(
                node("path", {"class": f"az-film-{look}", "d": f"M{x + 5 + 13 * j} {y:g}h0"})
            )
        parts.append(node("text", quiet | {"x": x + 4 + 13 * len(looks), "y": y + 4}, words))
    return parts
