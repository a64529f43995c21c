"""SVG pictures of boards. They are built as element trees, which escape all text.

X and O are a blue cross and a vermilion ring, which color-blind readers can distinguish; discs have
these marks cut out. A picture has its colors as presentation attributes, so it needs no style
sheet. CSS classes let a page adapt it to a dark theme.
"""

import base64
import dataclasses
import math
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from azjax._files import Path, check_folder, write_text

COLOR_X, COLOR_O = "#0072B2", "#D55E00"
COLOR_HEAT = "#117A65"
PAPER, GRID, _INK = "#ffffff", "#c4c9d1", "#24292f"
_LAST = {"class": "az-last", "fill": "none", "stroke": "#8c959f", "stroke-dasharray": "3 2"}
_LOOKS = {1: (COLOR_X, "az-x"), -1: (COLOR_O, "az-o")}  # Color and CSS class of a player.
CELL = 30  # Width of a cell in drawing units, which do not depend on the size in pixels.
_HIGH = 2 * CELL / math.sqrt(3)  # Height of a hexagon; its width is `CELL`.
_GAP = 12


@dataclasses.dataclass(frozen=True)
class Drawing:
    """An SVG picture as an element tree. Notebooks display it; `str` gives the SVG text.

    Notebooks get an HTML image, because they display bare SVG only in trusted notebooks.
    """

    element: ElementTree.Element

    def __str__(self) -> str:
        """Returns the SVG text."""
        return ElementTree.tostring(self.element, encoding="unicode")

    def _repr_html_(self) -> str:
        packed = base64.b64encode(ElementTree.tostring(self.element)).decode()
        label = self.element.get("aria-label", "")
        image = node("img", {"src": f"data:image/svg+xml;base64,{packed}", "alt": label})
        return ElementTree.tostring(image, encoding="unicode", method="html")

    def save(self, path: Path) -> None:
        """Writes an SVG file, if `check_folder` accepts the path."""
        path = pathlib.Path(path)
        check_folder(path)
        write_text(path, str(self) + "\n")


def node(tag: str, attributes: dict[str, Any] | None = None, *children) -> ElementTree.Element:
    """Makes an element of an SVG or HTML tree.

    Args:
      tag: the name of the element.
      attributes: numbers are rounded to two decimals; None values are left out.
      *children: elements and text.
    """
    written = {k: _attribute(v) for k, v in (attributes or {}).items() if v is not None}
    element = ElementTree.Element(tag, written)
    for child in children:
        if isinstance(child, ElementTree.Element):
            element.append(child)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + str(child)
        else:
            element.text = (element.text or "") + str(child)
    return element


def _attribute(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def canvas(width: float, height: float, *children, scale: float = 1.0, label=None) -> Drawing:
    """Makes a picture of `width` by `height` units, shown with `scale` pixels per unit."""
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "width": width * scale,
        "height": height * scale,
        "viewBox": f"0 0 {_attribute(float(width))} {_attribute(float(height))}",
        "font-family": "system-ui, sans-serif",
        "role": "img",
        "aria-label": label,
    }
    return Drawing(node("svg", attributes, *children))


def board(
    cells: Sequence[int] | np.ndarray,
    shape: tuple[int, int],
    *,
    values: Sequence[float] | np.ndarray | None = None,
    labels: Sequence[str] | None = None,
    last: int | None = None,
    size: float = 120,
    discs: bool = False,
    hexagons: bool = False,
) -> Drawing:
    """Draws a board of stones.

    Args:
      cells: `[H * W]`, row-major: 1 = X, -1 = O, 0 = empty.
      shape: `(H, W)`.
      values: `[H * W]`, in [0, 1]: a heat map behind the stones; larger values are more opaque.
      labels: `[H * W]`, text for empty cells.
      last: the cell of the last move, which is marked.
      size: width in pixels.
      discs: whether the stones are discs, as in Connect Four.
      hexagons: whether the cells are hexagons, as in Hex.
    """
    stones = np.asarray(cells)
    for name, given in (("cells", stones), ("values", values), ("labels", labels)):
        if given is not None and np.shape(given) != (shape[0] * shape[1],):
            raise ValueError(
                f"{name} has shape {np.shape(given)}: a board of {shape[0]} by {shape[1]} cells "
                f"needs {shape[0] * shape[1]} of them, row by row"
            )
    grid = _hexagons(shape) if hexagons else _squares(shape)
    parts = list(grid.paper)
    for center, value in zip(grid.centers, [] if values is None else values, strict=False):
        if value > 0:
            heat = {"fill": COLOR_HEAT, "fill-opacity": 0.7 * min(float(value), 1.0)}
            parts.append(grid.outline(center, 0, heat | {"class": "az-heat"}))
    parts += grid.lines
    if last is not None:
        parts.append(grid.outline(grid.centers[last], 2, _LAST))
    for i, mark in enumerate(stones.tolist()):
        if mark:
            parts.append(_stone(grid.centers[i], mark, discs))
        elif labels is not None and labels[i]:
            x, y = grid.centers[i]
            look = {"font-size": 9, "text-anchor": "middle", "dominant-baseline": "central"}
            look |= {"fill": _INK, "class": "az-label"}
            parts.append(node("text", {"x": x, "y": y} | look, labels[i]))
    group = node("g", {"transform": "translate(2 2)"}, *parts)
    marks = np.where(stones == 1, "X", np.where(stones == -1, "O", ".")).reshape(shape)
    label = "board " + " ".join("".join(row) for row in marks)
    width, height = grid.width + 4, grid.height + 4
    return canvas(width, height, group, scale=size / width, label=label)


def gallery(drawings: Iterable[Drawing], captions: Sequence[str] = (), rest: int = 0) -> Drawing:
    """Arranges pictures in a row, with captions; `rest` counts those not shown."""
    pictures = [drawing.element for drawing in drawings]
    width, height = (max(float(p.get(side, 0)) for p in pictures) for side in ("width", "height"))
    parts = list(pictures)
    for i, picture in enumerate(pictures):
        picture.set("x", _attribute(i * (width + _GAP)))
    for i, caption in enumerate(captions):
        middle = i * (width + _GAP) + width / 2
        parts.append(note(middle, height + 16, caption, {"text-anchor": "middle"}))
    total = len(pictures) * (width + _GAP)
    if rest:
        parts.append(note(total, height / 2, f"and {rest:,} more"))
        total += 120
    label = "; ".join([*captions, *(picture.get("aria-label", "") for picture in pictures)])
    return canvas(total, height + (24 if captions else 0), *parts, label=label)


def note(x: float, y: float, text: str, style: dict[str, Any] | None = None):
    """Makes a text element in a gray that is readable on light and dark pages."""
    attributes = {"x": x, "y": y, "font-size": 13, "fill": "#6e7781"}
    themed = {"style": "fill: var(--az-muted, #6e7781)"}
    return node("text", attributes | themed | (style or {}), text)


def signed(value: float) -> str:
    """Formats a value with a plus or a true minus sign: `+0.21`, `\N{MINUS SIGN}0.21`."""
    text = f"{abs(value):.2f}"
    if math.isnan(value) or float(text) == 0:
        return text
    return ("\N{MINUS SIGN}" if value < 0 else "+") + text


class _Grid(NamedTuple):
    """The cells of a board: their centers, paper below and lines above a heat map, and the size.

    `outline(center, inset, attributes)` draws a cell, smaller by `inset` on each side.
    """

    centers: list[tuple[float, float]]
    outline: Callable[..., ElementTree.Element]
    paper: list[ElementTree.Element]
    lines: list[ElementTree.Element]
    width: float
    height: float


def _squares(shape: tuple[int, int]) -> _Grid:
    rows, columns = shape
    width, height = columns * CELL, rows * CELL

    def square(center, inset, attributes):
        half = CELL / 2 - inset
        place = {"x": center[0] - half, "y": center[1] - half, "width": 2 * half}
        return node("rect", place | {"height": 2 * half} | attributes)

    centers = [((c + 0.5) * CELL, (r + 0.5) * CELL) for r in range(rows) for c in range(columns)]
    look = {"fill": PAPER, "stroke": GRID, "rx": 3, "class": "az-paper"}
    paper = node("rect", {"width": width, "height": height} | look)
    across = [f"M0 {r * CELL}H{width}" for r in range(1, rows)]
    down = [f"M{c * CELL} 0V{height}" for c in range(1, columns)]
    lines = node("path", {"d": "".join(across + down), "stroke": GRID, "class": "az-grid"})
    return _Grid(centers, square, [paper], [lines], width, height)


def _hexagons(shape: tuple[int, int]) -> _Grid:
    """Arranges hexagons in a rhombus: each row is half a cell to the right of the one above.

    Sides have the color of the player who connects them: X top and bottom, O left and right.
    """
    rows, columns = shape

    def corners(center, numbers, inset=0) -> str:  # Clockwise.
        angles = [math.radians(60 * (number % 6) - 30) for number in numbers]
        (x, y), reach = center, _HIGH / 2 - inset
        points = [(x + reach * math.cos(a), y + reach * math.sin(a)) for a in angles]
        return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)

    def hexagon(center, inset, attributes):
        return node("polygon", {"points": corners(center, range(6), inset)} | attributes)

    def side(cells, first, color):  # Three corners of each cell.
        points = " ".join(corners(cell, range(first, first + 3)) for cell in cells)
        look = {"fill": "none", "stroke": color, "stroke-width": 3, "stroke-linejoin": "round"}
        return node("polyline", {"points": points} | look)

    centers = [
        ((c + r / 2 + 0.5) * CELL, (0.75 * r + 0.5) * _HIGH)
        for r in range(rows)
        for c in range(columns)
    ]
    look = {"fill": PAPER, "stroke": GRID, "class": "az-paper"}
    sides = [
        side(centers[:columns], 4, COLOR_X),
        side(centers[: -columns - 1 : -1], 1, COLOR_X),
        side(centers[::columns][::-1], 2, COLOR_O),
        side(centers[columns - 1 :: columns], 5, COLOR_O),
    ]
    width, height = (columns + (rows - 1) / 2) * CELL, (0.75 * rows + 0.25) * _HIGH
    return _Grid(centers, hexagon, [hexagon(c, 0, look) for c in centers], sides, width, height)


def _stone(center: tuple[float, float], mark: int, is_disc: bool) -> ElementTree.Element:
    """Draws a cross for 1 and a ring for -1; in a disc, they are cut out."""
    (x, y), (color, name) = center, _LOOKS[mark]
    scale, look = 1.0, {"stroke": color, "class": name, "stroke-width": 3.5}
    if is_disc:
        scale, look = 0.5, {"stroke": PAPER, "class": "az-cut", "stroke-width": 2}
    look |= {"fill": "none", "stroke-linecap": "round"}
    if mark == 1:
        arm = CELL * 0.24 * scale
        side = 2 * arm
        cross = f"M{x - arm:g} {y - arm:g}l{side:g} {side:g}m0 {-side:g}l{-side:g} {side:g}"
        stone = node("path", {"d": cross} | look)
    else:
        stone = node("circle", {"cx": x, "cy": y, "r": CELL * 0.26 * scale} | look)
    if not is_disc:
        return stone
    disc = node("circle", {"cx": x, "cy": y, "r": CELL * 0.42})
    return node("g", {"fill": color, "class": f"az-disc {name}"}, disc, stone)
