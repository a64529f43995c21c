"""Line charts as SVG elements that follow a page's theme, and the page of a comparison."""

import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from xml.etree.ElementTree import Element

import numpy as np

from azjax.comparison import AXES, Comparison, Curves
from azjax.drawing import canvas, node
from azjax.viz.page import Section, scrolling, write_page

_WIDTH = 470  # On a phone 0.75 of it: `.az-chart` of the style sheet.
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 456, 40, 204  # Of the axes.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8a6d00", "#6a51a3")
_DASHES = (None, "8 4", "2 4")  # So that lines differ by more than their color.
_MOST_TITLES = 60  # Points of a line that have a tooltip.
_LINE = 18  # Height of the row of a name.
_FAINT = {"fill-opacity": 0.7}


def line_chart(
    title: str,
    xs: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    *,
    log: bool = False,
    unit: str = "",
    x_label: str = "iteration",
    log_x: bool = False,
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
) -> Element:
    """Draws lines over common points, with their names below.

    Colors are the text color and the style sheet's `--az-series-1` to `-6`.

    Args:
      title: name of the quantity.
      xs: `[N]`, ascending.
      series: `[N]` numbers by name. None and numbers that are not finite are left out.
      log: whether the scale is logarithmic: log(1 + y), so that counts may be 0.
      unit: unit of the numbers.
      x_label: name of `xs`.
      log_x: whether the scale of `xs` is logarithmic, in the same way.
      bands: ranges `([N], [N])` around lines, by name, drawn as areas.
    """
    lines = {name: line for name, ys in series.items() if (line := _finite(xs, ys))}
    ranges = {
        name: [*_finite(xs, low), *_finite(xs, high)[::-1]]
        for name, (low, high) in (bands or {}).items()
    }
    values = [y for line in (*lines.values(), *ranges.values()) for _, y in line]
    low, high = min([0, *values]), max(values, default=1)
    ticks = _log_ticks(high) if log else _ticks(low, high)
    x_ticks = _log_ticks(xs[-1]) if log_x else _ticks(xs[0], xs[-1], 6)
    x_ticks = [x for x in x_ticks if xs[0] <= x <= xs[-1] and x == int(x)] or [xs[0]]
    to_x = _scale(xs[0], xs[-1], _LEFT, _RIGHT, log_x)
    to_y = _scale(ticks[0], ticks[-1], _BOTTOM, _TOP, log)
    heading = _text(12, 18, title, {"font-size": 13, "font-weight": 600})
    if unit:
        heading.append(node("tspan", {"font-weight": 400, "fill-opacity": 0.7}, f"  {unit}"))
    parts = [heading, *_y_axis(ticks, to_y), _x_axis(x_label, x_ticks, to_x)]
    for i, name in enumerate(lines):
        if outline := [(to_x(x), to_y(y)) for x, y in ranges.get(name, ())]:
            look = {"fill-opacity": 0.16, "style": f"fill: {_color(i)}"}
            parts.append(node("path", {"d": _path(outline) + "Z", "class": "az-band"} | look))
    for i, (name, line) in enumerate(lines.items()):
        places = [(to_x(x), to_y(y)) for x, y in line]
        tips = [f"{name}, {x_label} {_number(x)}: {_number(y)} {unit}".strip() for x, y in line]
        parts.append(_line(name, i, places, tips))
    picture = canvas(_WIDTH, _BOTTOM + 44 + _LINE * len(lines), *parts, label=title).element
    picture.set("class", "az-chart")
    return picture


def side_by_side(charts: Iterable[Element]) -> Element:
    """Arranges charts in columns. On a phone each chart scrolls, which keeps its text legible."""
    return node("div", {"class": "az-charts"}, *map(scrolling, charts))


def _finite(xs, ys) -> list[tuple[float, float]]:
    pairs = zip(xs, ys, strict=True)
    return [(x, y) for x, y in pairs if y is not None and math.isfinite(float(y))]


def _scale(low: float, high: float, start: float, end: float, log: bool):
    """Maps `low` to `start` and `high` to `end`, or everything to the middle if they are equal."""
    squash = math.log1p if log else float
    if low == high:
        return lambda value: (start + end) / 2
    stretch = (end - start) / (squash(high) - squash(low))
    return lambda value: start + (squash(value) - squash(low)) * stretch


def _ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Returns multiples of 1, 2 or 5 times a power of ten that enclose the range."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / count))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= span / count * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, max(last, first + 1) + 1)]


def _log_ticks(high: float) -> list[float]:
    """Returns 0, and the powers of ten up to the first that is not below the maximum."""
    return [0.0, *(10.0**k for k in range(math.ceil(math.log10(max(high, 1))) + 1))]


def _y_axis(ticks: Sequence[float], to_y) -> Iterable[Element]:
    for i, tick in enumerate(ticks):
        y = to_y(tick)
        look = {"stroke": "currentColor", "stroke-opacity": 0.16 if i else 0.5}
        yield node("line", {"x1": _LEFT, "x2": _RIGHT, "y1": y, "y2": y} | look)
        if not 0 < _BOTTOM - y < 12:  # On a logarithmic scale, 1 may be too close to 0.
            yield _text(_LEFT - 8, y + 4, _number(tick), {"text-anchor": "end"} | _FAINT)


def _x_axis(x_label: str, ticks: Iterable[float], to_x) -> Element:
    y, middle = _BOTTOM + 16, {"text-anchor": "middle"} | _FAINT
    parts = [_text(to_x(x), y, _number(x), middle) for x in ticks]
    return node("g", None, *parts, _text(_RIGHT, y + 16, x_label, {"text-anchor": "end"} | _FAINT))


def _line(name: str, index: int, places, tips: list[str]) -> Element:
    color, y = _color(index), _BOTTOM + 52 + _LINE * index
    look = {"fill": "none", "stroke-width": 2, "stroke-linejoin": "round"}
    look |= {"stroke-dasharray": _DASHES[index % len(_DASHES)], "style": f"stroke: {color}"}
    parts = [node("path", {"d": _path(places)} | look)]
    # A line of one point is a dot; other points are invisible, and react to the pointer.
    dot = {"r": 6, "fill-opacity": 0} if len(places) > 1 else {"r": 3, "style": f"fill: {color}"}
    stride = -(-len(places) // _MOST_TITLES)
    for (cx, cy), tip in list(zip(places, tips, strict=True))[::-stride]:
        spot = {"cx": cx, "cy": cy, "class": "az-spot"} | dot
        parts.append(node("circle", spot, node("title", None, tip)))
    mark = node("line", look | {"x1": _LEFT, "x2": _LEFT + 20, "y1": y - 4, "y2": y - 4})
    return node("g", {"class": "az-series"}, *parts, mark, _text(_LEFT + 26, y, name))


def _color(index: int) -> str:
    number = index % len(_COLORS) + 1
    return f"var(--az-series-{number}, {_COLORS[number - 1]})"


def _path(places) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _text(x: float, y: float, text: str, look: Mapping[str, object] | None = None) -> Element:
    basic = {"x": x, "y": y, "font-size": 12, "fill": "currentColor"}
    return node("text", {**basic, **(look or {})}, text)


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def write_comparison(path: pathlib.Path, comparison: Comparison) -> pathlib.Path:
    """Writes a page with the error against iterations, evaluations, moves and seconds."""
    curves = comparison.curves
    intro = (
        f"Lines are medians of {len(curves[0].errors[0])} seeds, and areas reach from the first to "
        "the third quartile. The error is the share of positions where the network, without "
        "search, gives up a win or a draw."
    )
    charts = side_by_side(_compare(axis, curves) for axis in AXES)
    section = Section("Errors", intro, element=charts)
    return write_page(path, f"Comparison of settings: {comparison.game}", [section])


def _compare(axis: str, curves: Sequence[Curves]) -> Element:
    """Draws all settings over common points: those of every setting."""
    xs = sorted({x for one in curves for x in getattr(one, axis)})
    lines, bands = {}, {}
    for one in curves:
        own = getattr(one, axis)
        quartiles = np.quantile(100 * np.array(one.errors), [0.25, 0.5, 0.75], axis=1)
        rows = [np.interp(xs, own, row, left=np.nan, right=np.nan).tolist() for row in quartiles]
        bands[one.name], lines[one.name] = (rows[0], rows[2]), rows[1]
    return line_chart("error", xs, lines, log=True, unit="%", x_label=axis, bands=bands)
