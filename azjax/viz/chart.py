"""Line charts as SVG elements that follow a page's theme, with nothing but this package."""

import math
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from azjax.drawing import canvas, node

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 496, 40, 204
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8a6d00")
_MOST_TITLES = 60  # Points of a line that tell their numbers.
_LINE = 15  # Between labels, at least.


def line_chart(
    title: str,
    xs: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    *,
    log: bool = False,
    unit: str = "",
    x_label: str = "iteration",
) -> Element:
    """Draws lines over common points, each with its name at its end.

    Colours are those of the surrounding text and of the style sheet's `--az-series-1` to `-5`.

    Args:
      title: what the numbers are.
      xs: `[N]`, ascending.
      series: `[N]` numbers for each name; None and what is not finite are left out.
      log: a logarithmic scale for counts, which has room for 0: log(1 + y).
      unit: what the numbers are counted in, for the labels of the points.
      x_label: what `xs` are.

    Raises:
      ValueError: if there are no points, or a line has another number of them than `xs`.
    """
    for name, ys in series.items():
        if not xs or len(ys) != len(xs):
            raise ValueError(f"{name!r} has {len(ys)} points for {len(xs)} places: give as many")
    lines = {name: _finite(xs, ys) for name, ys in series.items()}
    values = [y for line in lines.values() for _, y in line]
    ticks = _log_ticks(values) if log else _ticks(min([0, *values]), max(values, default=1))
    to_x = _scale(xs[0], xs[-1], _LEFT, _RIGHT)
    squash = math.log1p if log else float
    height = _scale(squash(ticks[0]), squash(ticks[-1]), _BOTTOM, _TOP)

    def to_y(value: float) -> float:
        return height(squash(value))

    parts = [_axes(title, unit, x_label, xs, ticks, to_x, to_y)]
    ends = [to_y(line[-1][1]) for line in lines.values() if line]
    labels = iter(_spread(ends))
    for i, (name, line) in enumerate(lines.items()):
        if line:
            places = [(to_x(x), to_y(y)) for x, y in line]
            said = [f"{name}, {x_label} {_number(x)}: {_number(y)} {unit}".strip() for x, y in line]
            parts.append(_line(name, i, places, said, next(labels)))
    picture = canvas(_WIDTH, _HEIGHT, *parts, label=title).element
    picture.set("class", "az-chart")
    picture.set("style", "max-width: 100%; height: auto")
    return picture


def _finite(xs, ys) -> list[tuple[float, float]]:
    return [
        (x, y) for x, y in zip(xs, ys, strict=True) if y is not None and math.isfinite(float(y))
    ]


def _scale(low: float, high: float, start: float, end: float):
    """Maps `low` to `start` and `high` to `end`; everything to the middle if they are equal."""
    if low == high:
        return lambda value: (start + end) / 2
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers, 1, 2 or 5 times a power of ten apart, that enclose the range."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / count))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= span / count * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, max(last, first + 1) + 1)]


def _log_ticks(values: Sequence[float]) -> list[float]:
    """0, 1, 10, 100 and so on, and at last the first 1, 2 or 5 times such that is enough."""
    top = max(values, default=1)
    if min(values, default=0) < 0:
        raise ValueError("a logarithmic scale has no room for negative numbers: use log=False")
    powers = [10.0**k for k in range(10) if 10**k < top]
    last = powers[-1] if powers else 1.0
    return [0.0, *powers, *([m * last for m in (1, 2, 5, 10) if m * last >= top][:1])]


def _axes(title, unit, x_label, xs, ticks, to_x, to_y) -> Element:
    parts = [_text(_LEFT - 44, 18, title, size=13, weight=600)]
    if unit:
        parts[0].append(node("tspan", {"font-weight": 400, "fill-opacity": 0.7}, f"  {unit}"))
    for i, tick in enumerate(ticks):
        y = to_y(tick)
        look = {"stroke": "currentColor", "stroke-opacity": 0.16 if i else 0.5}
        parts.append(node("line", {"x1": _LEFT, "x2": _RIGHT, "y1": y, "y2": y} | look))
        if tick == ticks[-1] or to_y(tick) - to_y(ticks[-1]) > 12:
            parts.append(_text(_LEFT - 8, y + 4, _number(tick), anchor="end", faint=True))
    whole = [x for x in _ticks(xs[0], xs[-1], 6) if xs[0] <= x <= xs[-1] and x == int(x)]
    for x in whole or [xs[0]]:
        parts.append(_text(to_x(x), _BOTTOM + 16, _number(x), anchor="middle", faint=True))
    parts.append(_text(_RIGHT + 10, _BOTTOM + 16, x_label, faint=True))
    return node("g", None, *parts)


def _line(name: str, index: int, places, said: list[str], label_y: float) -> Element:
    number = index % len(_COLORS) + 1
    color = f"var(--az-series-{number}, {_COLORS[number - 1]})"
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    look = {"fill": "none", "stroke-width": 2, "stroke-linejoin": "round"}
    look |= {"stroke-linecap": "round", "style": f"stroke: {color}"}
    parts = [node("path", {"d": d} | look)]
    if len(places) == 1:
        parts.append(_dot(places[0], 3, color))
    stride = -(-len(places) // _MOST_TITLES)
    for (x, y), words in list(zip(places, said, strict=True))[::-stride]:
        spot = {"cx": x, "cy": y, "r": 6, "fill-opacity": 0, "class": "az-spot"}
        parts.append(node("circle", spot, node("title", None, words)))
    label = _text(places[-1][0] + 10, label_y + 4, name)
    label.set("style", f"fill: {color}")
    return node("g", {"class": "az-series"}, *parts, label)


def _dot(place, radius: float, color: str) -> Element:
    return node("circle", {"cx": place[0], "cy": place[1], "r": radius, "style": f"fill: {color}"})


def _text(x, y, words, size=12.0, anchor=None, weight=None, faint=False) -> Element:
    look = {"x": x, "y": y, "font-size": size, "text-anchor": anchor, "font-weight": weight}
    return node("text", look | {"fill": "currentColor", "fill-opacity": 0.7 * faint or None}, words)


def _spread(heights: list[float]) -> list[float]:
    """Moves labels apart that would stand on each other, keeping their order."""
    spread = dict.fromkeys(range(len(heights)), 0.0)
    below = _BOTTOM - 2 + _LINE  # Above the name of the axis.
    for i in sorted(spread, key=lambda i: -heights[i]):
        below = spread[i] = min(heights[i], below - _LINE)
    return list(spread.values())


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
