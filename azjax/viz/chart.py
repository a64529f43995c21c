"""Line charts as SVG elements that follow a page's theme."""

import math
from collections.abc import Iterable, Mapping, Sequence
from xml.etree.ElementTree import Element

from azjax.drawing import canvas, node
from azjax.viz.page import scrolling

_WIDTH, _BROADEST = 470, 640  # Of the picture, on a phone 0.75 of it; pixels on a wide screen.
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 456, 40, 204  # Of the axes.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8a6d00", "#6a51a3")
_DASHES = (None, "8 4", "2 4")  # So that lines differ by more than their color.
_MOST_TITLES = 60  # Points of a line that have a tooltip.
_LEAST = 0.75  # Minimum scale, at which the font size is 9 pixels.
_LINE, _LETTER = 18, 7  # Height of a row of names; the width of a letter.


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
    lines = {name: _finite(xs, ys) for name, ys in series.items()}
    ranges = {
        name: [*_finite(xs, low), *_finite(xs, high)[::-1]]
        for name, (low, high) in (bands or {}).items()
    }
    values = [y for line in (*lines.values(), *ranges.values()) for _, y in line]
    ticks = _log_ticks(values) if log else _ticks(min([0, *values]), max(values, default=1))
    to_x = _scale(xs[0], xs[-1], _LEFT, _RIGHT, log_x)
    to_y = _scale(ticks[0], ticks[-1], _BOTTOM, _TOP, log)
    heading = _text(12, 18, title, size=13, weight=600)
    if unit:
        heading.append(node("tspan", {"font-weight": 400, "fill-opacity": 0.7}, f"  {unit}"))
    parts = [heading, *_y_axis(ticks, to_y), _x_axis(x_label, _x_ticks(xs, log_x), to_x)]
    for i, name in enumerate(lines):
        if outline := [(to_x(x), to_y(y)) for x, y in ranges.get(name, ())]:
            look = {"fill-opacity": 0.16, "style": f"fill: {_color(i)}"}
            parts.append(node("path", {"d": _path(outline) + "Z", "class": "az-band"} | look))
    width, labels = _place_names([name for name, line in lines.items() if line])
    for i, (name, line) in enumerate(lines.items()):
        if line:
            places = [(to_x(x), to_y(y)) for x, y in line]
            tips = [f"{name}, {x_label} {_number(x)}: {_number(y)} {unit}".strip() for x, y in line]
            parts.append(_line(name, i, places, tips, labels[name]))
    height = max((y for _, y in labels.values()), default=_BOTTOM + 32) + 10
    picture = canvas(width, height, *parts, label=title).element
    picture.set("class", "az-chart")
    sizes = f"min-width: {_least_width(picture)}px; max-width: {max(width, _BROADEST)}px"
    picture.set("style", f"width: 100%; {sizes}; height: auto")
    return picture


def side_by_side(charts: Iterable[Element]) -> Element:
    """Arranges charts in columns. On a phone each chart scrolls, which keeps its text legible."""
    scrolls = [scrolling(chart) for chart in charts]
    least = max((_least_width(scroll[0]) for scroll in scrolls), default=0)
    return node("div", {"class": "az-charts", "style": f"--az-least: {least}px"}, *scrolls)


def _least_width(chart: Element) -> int:
    return math.ceil(_LEAST * float(chart.get("width", 0)))


def _finite(xs, ys) -> list[tuple[float, float]]:
    pairs = zip(xs, ys, strict=True)
    return [(x, y) for x, y in pairs if y is not None and math.isfinite(float(y))]


def _scale(low: float, high: float, start: float, end: float, log: bool = False):
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


def _log_ticks(values: Sequence[float]) -> list[float]:
    """Returns 0, the powers of ten below the maximum, and 1, 2 or 5 times a power above it."""
    top = max(values, default=1)
    powers = [10.0**k for k in range(10) if 10**k < top]
    last = powers[-1] if powers else 1.0
    return [0.0, *powers, *([m * last for m in (1, 2, 5, 10) if m * last >= top][:1])]


def _x_ticks(xs: Sequence[float], log: bool) -> list[float]:
    powers = [0, *(m * 10**k for k in range(10) for m in (1, 2, 5))]
    ticks = powers if log else _ticks(xs[0], xs[-1], 6)
    return [x for x in ticks if xs[0] <= x <= xs[-1] and x == int(x)] or [xs[0]]


def _y_axis(ticks: Sequence[float], to_y) -> Iterable[Element]:
    ends = ticks[0], ticks[-1]  # Always labelled.
    for i, tick in enumerate(ticks):
        y = to_y(tick)
        look = {"stroke": "currentColor", "stroke-opacity": 0.16 if i else 0.5}
        yield node("line", {"x1": _LEFT, "x2": _RIGHT, "y1": y, "y2": y} | look)
        if tick in ends or all(abs(y - to_y(end)) > 12 for end in ends):
            yield _text(_LEFT - 8, y + 4, _number(tick), anchor="end", faint=True)


def _x_axis(x_label: str, ticks: Iterable[float], to_x) -> Element:
    y = _BOTTOM + 16
    parts = [_text(to_x(x), y, _number(x), anchor="middle", faint=True) for x in ticks]
    return node("g", None, *parts, _text(_RIGHT, y + 16, x_label, anchor="end", faint=True))


def _place_names(names: Iterable[str]) -> tuple[int, dict[str, tuple[float, float]]]:
    """Places names in rows below the axis; returns the width of the picture, and their places."""
    places, width, x, y = {}, _WIDTH, _LEFT, _BOTTOM + 52
    for name in names:
        size = 44 + _LETTER * len(name)
        if x + size > width and x > _LEFT:
            x, y = _LEFT, y + _LINE
        places[name] = x, y
        x += size
        width = max(width, x)
    return width, places


def _line(name: str, index: int, places, tips: list[str], label: tuple[float, float]) -> Element:
    color = _color(index)
    look = {"fill": "none", "stroke-width": 2, "stroke-linejoin": "round"}
    look |= {"stroke-dasharray": _DASHES[index % len(_DASHES)], "style": f"stroke: {color}"}
    parts = [node("path", {"d": _path(places)} | look)]
    if len(places) == 1:
        x, y = places[0]
        parts.append(node("circle", {"cx": x, "cy": y, "r": 3, "style": f"fill: {color}"}))
    stride = -(-len(places) // _MOST_TITLES)
    for (x, y), tip in list(zip(places, tips, strict=True))[::-stride]:
        spot = {"cx": x, "cy": y, "r": 6, "fill-opacity": 0, "class": "az-spot"}
        parts.append(node("circle", spot, node("title", None, tip)))
    x, y = label
    mark = node("line", look | {"x1": x, "x2": x + 20, "y1": y - 4, "y2": y - 4})
    return node("g", {"class": "az-series"}, *parts, mark, _text(x + 26, y, name))


def _color(index: int) -> str:
    number = index % len(_COLORS) + 1
    return f"var(--az-series-{number}, {_COLORS[number - 1]})"


def _path(places) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _text(x, y, text, size=12.0, anchor=None, weight=None, faint=False) -> Element:
    look = {"x": x, "y": y, "font-size": size, "text-anchor": anchor, "font-weight": weight}
    return node("text", look | {"fill": "currentColor", "fill-opacity": 0.7 * faint or None}, text)


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
