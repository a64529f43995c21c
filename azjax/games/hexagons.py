"""Pictures of hexagonal boards."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from azjax import drawing
from azjax.drawing import CELL, COLOR_HEAT, COLOR_O, COLOR_X, GRID, LAST, PAPER, node

_HIGH = 2 * CELL / math.sqrt(3)  # Height of a hexagon; its width is `CELL`.
_CORNERS = [math.radians(60 * k - 30) for k in range(6)]  # Clockwise, starting at the upper right.


def board(
    cells: np.ndarray,
    values: Sequence[float] | np.ndarray | None = None,
    labels: Sequence[str] | None = None,
    last: int | None = None,
    size: float | None = None,
) -> drawing.Drawing:
    """Draws a board of Hex, a rhombus: each row is half a cell to the right of the one above.

    Sides have the color of the player who connects them: X top and bottom, O left and right.

    Args:
      cells: `[n * n]`, row-major: 1 = X, -1 = O, 0 = empty.
      values: `[n * n]`, in [0, 1]: a heat map behind the stones.
      labels: `[n * n]`, text for empty cells.
      last: the cell of the last move, which is marked.
      size: width in pixels; one per drawing unit if None.
    """
    n = math.isqrt(len(cells))
    centers = [_center(*divmod(cell, n)) for cell in range(n * n)]
    parts = []
    for i, center in enumerate(centers):
        parts.append(_hexagon(center, 1, {"fill": PAPER, "stroke": GRID, "class": "az-paper"}))
        if values is not None and values[i] > 0:
            opacity = 0.7 * min(float(values[i]), 1.0)
            attributes = {"fill": COLOR_HEAT, "fill-opacity": opacity, "class": "az-heat"}
            parts.append(_hexagon(center, 1, attributes))
    rows, columns = centers[::n], centers[n - 1 :: n]  # Centers of the first and the last column.
    parts += [_side(centers[:n], 4, COLOR_X), _side(centers[: -n - 1 : -1], 1, COLOR_X)]
    parts += [_side(rows[::-1], 2, COLOR_O), _side(columns, 5, COLOR_O)]
    if last is not None:
        parts.append(_hexagon(centers[last], 0.85, LAST))
    for i, mark in enumerate(cells.tolist()):
        if mark:
            parts.append(drawing.stone(centers[i], mark))
        elif labels is not None and labels[i]:
            parts.append(drawing.cell_label(centers[i], labels[i]))
    width, height = (1.5 * n - 0.5) * CELL + 6, (0.75 * n + 0.25) * _HIGH + 6
    marks = np.array([".", "X", "O"])[cells].reshape(n, n)
    label = "board " + " ".join("".join(row) for row in marks)
    group = node("g", {"transform": "translate(3 3)"}, *parts)
    scale = 1 if size is None else size / width
    return drawing.canvas(width, height, group, scale=scale, label=label)


def _center(row: int, column: int) -> tuple[float, float]:
    return (column + row / 2 + 0.5) * CELL, (0.75 * row + 0.5) * _HIGH


def _corner(center: tuple[float, float], k: int, scale: float = 1) -> str:
    (x, y), angle = center, _CORNERS[k % 6]
    reach = scale * _HIGH / 2
    return f"{x + reach * math.cos(angle):.2f},{y + reach * math.sin(angle):.2f}"


def _hexagon(center: tuple[float, float], scale: float, attributes: dict[str, Any]):
    points = " ".join(_corner(center, k, scale) for k in range(6))
    return node("polygon", {"points": points} | attributes)


def _side(centers: Iterable[tuple[float, float]], first: int, color: str):
    """Draws a side of the board clockwise: three corners of each cell, starting with `first`."""
    points = " ".join(_corner(center, first + k) for center in centers for k in range(3))
    attributes = {"fill": "none", "stroke": color, "stroke-width": 3, "stroke-linejoin": "round"}
    return node("polyline", {"points": points} | attributes)
