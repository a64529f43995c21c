"""A picture of a state in any game: the game's own, or else its text."""

import textwrap
from collections.abc import Sequence
from typing import Any

from azjax.drawing import Drawing, canvas, node
from azjax.games.base import Game, State

_WIDTH, _HEIGHT, _MARGIN = 6.1, 13, 4  # Of a character of 10 units, of a line, around the text.


def draw_state(game: Game, state: State, size: float | None = None, **look: Any) -> Drawing:
    """Draws one state.

    Args:
      game: whose `draw` is used; without one the picture is what `render` writes.
      state: one state.
      size: width in pixels; the game's own choice if None.
      **look: `values`, `labels` and `last`, as in `Game.draw`. A text has the labels below
        it, and shows no values.
    """
    if game.draw is not None:
        return game.draw(state, **look | ({} if size is None else {"size": size}))
    return draw_text(game.render(state), look.get("labels"), 120 if size is None else size)


def draw_text(text: str, labels: Sequence[str] | None = None, size: float = 120) -> Drawing:
    """Draws lines of a terminal, in a square at most.

    Args:
      text: the lines.
      labels: `[A]`; those that are not empty are written below, with their actions' numbers.
      size: width and height in pixels, of which the picture fills one.
    """
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in text.splitlines()]
    named = enumerate(() if labels is None else labels)
    below = ", ".join(f"{action}: {label}" for action, label in named if label)
    lines += textwrap.wrap(below, max(24, *map(len, lines), 0))
    width = _WIDTH * max(map(len, lines), default=0) + 2 * _MARGIN
    height = _HEIGHT * len(lines) + 2 * _MARGIN
    paper = {"width": width, "height": height, "fill": "#ffffff", "class": "az-paper"}
    look = {"font-family": "monospace", "font-size": 10, "fill": "#24292f", "class": "az-text"}
    rows = [
        node("text", {"x": _MARGIN, "y": _HEIGHT * row, "xml:space": "preserve"} | look, line)
        for row, line in enumerate(lines, start=1)
    ]
    scale, label = size / max(width, height), "\n".join(lines)
    return canvas(width, height, node("rect", paper), *rows, scale=scale, label=label)
