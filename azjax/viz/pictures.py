"""Pictures of states and searches in any game; games without `draw` are shown as text."""

import textwrap
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from azjax.drawing import Drawing, canvas, gallery, node, signed
from azjax.games.base import Game, State, check_batch
from azjax.search import SearchResult

_WIDTH, _HEIGHT, _MARGIN = 6.1, 13, 4  # Width of a character in font size 10; height of a line.


def draw_state(game: Game, state: State, size: float | None = None, **look: Any) -> Drawing:
    """Draws one state.

    Args:
      game: the game. If its display has no `draw`, the picture is the text of `render`.
      state: one state.
      size: width in pixels; by default the game's.
      **look: `values`, `labels` and `last`, as in `Display.draw`. Text has its labels below it
        and ignores the values.
    """
    if game.display.draw is not None:
        return game.display.draw(state, **look | ({} if size is None else {"size": size}))
    return draw_text(game.display.render(state), look.get("labels"), 120 if size is None else size)


def draw_states(
    game: Game,
    states: State,
    captions: Sequence[str] = (),
    *,
    most: int = 8,
    size: float | None = None,
    **look: Any,
) -> Drawing:
    """Draws the first states of a batch side by side, followed by the number of omitted ones.

    Args:
      game: the game.
      states: the states, every leaf `[B, ...]`.
      captions: `[B]`, text below each state.
      most: maximum number of states to draw.
      size: width of one picture in pixels; by default the game's.
      **look: `values [B, A]`, `labels [B, A]` and `last [B]`, as in `draw_state`.

    Raises:
      ValueError: if the states are not a batch of this game.
    """
    count, pictures = check_batch(game, states), []
    batch = jax.device_get(states), {name: np.asarray(array) for name, array in look.items()}
    for i in range(min(count, most)):
        state, shown = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
        pictures.append(draw_state(game, state, size, **shown))
    return gallery(pictures, captions[:most], rest=count - len(pictures))


def draw_search(game: Game, states: State, result: SearchResult, most: int = 4) -> Drawing:
    """Draws the first `most` states `[B, ...]` of a search with its policy, move and value."""
    weights = np.asarray(result.action_weights)
    labels = np.vectorize("{:.0%}".format)(weights)
    chosen = zip(np.asarray(result.action), np.asarray(result.value), strict=True)
    captions = [f"plays {action}, value {signed(float(value))}" for action, value in chosen]
    return draw_states(game, states, captions, most=most, values=weights, labels=labels)


def draw_text(text: str, labels: Sequence[str] | None = None, size: float = 120) -> Drawing:
    """Draws monospaced text, scaled to fit into a square of `size` pixels.

    Of `labels [A]`, those that are not empty are written below the text, with their actions.
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
