"""Pictures of states and searches in any game; games without `draw` are shown as text."""

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from azjax.drawing import Drawing, canvas, gallery, node, signed
from azjax.games.base import Game, State, check_batch, name_actions
from azjax.search import SearchResult

_FONT, _MARGIN = 13, 5  # The pages use this font size as well.
_WIDTH, _HEIGHT = 7.9, 17  # Maximum width of a character, and height of a line.


def draw_state(game: Game, state: State, size: float | None = None, **look: Any) -> Drawing:
    """Draws one state.

    Args:
      game: the game. If its display has no `draw`, the picture is the text of `render`.
      state: one state.
      size: width in pixels; by default the game's. Text has the same font size everywhere.
      **look: `values`, `labels` and `last`, as in `Display.draw`. Text has its labels below it
        and ignores the values.
    """
    if game.display.draw is not None:
        return game.display.draw(state, **look | ({} if size is None else {"size": size}))
    labels = look.get("labels")
    named = [] if labels is None else zip(name_actions(game, state), labels, strict=True)
    items = [
        f"{name}: {label}".replace(" ", "\N{NO-BREAK SPACE}") for name, label in named if label
    ]
    return draw_text(game.display.render(state), ", ".join(items))


def split_states(states: State) -> Iterator[State]:
    """Yields the states of a batch, on the host."""
    leaves, structure = jax.tree.flatten(jax.device_get(states))
    return (structure.unflatten(row) for row in zip(*leaves, strict=True))


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
    names = (name_actions(game, state) for state in split_states(states))
    chosen = zip(names, np.asarray(result.action), np.asarray(result.value), strict=True)
    captions = [
        f"plays {moves[action]}, value {signed(float(value))}"
        for moves, action, value in itertools.islice(chosen, most)
    ]
    return draw_states(game, states, captions, most=most, values=weights, labels=labels)


def draw_text(text: str, below: str = "") -> Drawing:
    """Draws monospaced text, and another text below it, which is wrapped at spaces."""
    lines = text.splitlines()
    wide = max(24, *map(len, lines), 0)
    lines += textwrap.wrap(below, wide, break_long_words=False, break_on_hyphens=False)
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in lines]
    width = _WIDTH * max(map(len, lines), default=0) + 2 * _MARGIN
    height = _HEIGHT * len(lines) + 2 * _MARGIN
    paper = {"width": width, "height": height, "fill": "#ffffff", "class": "az-paper"}
    look = {"font-family": "monospace", "font-size": _FONT, "fill": "#24292f", "class": "az-text"}
    rows = [
        node("text", {"x": _MARGIN, "y": _HEIGHT * row, "xml:space": "preserve"} | look, line)
        for row, line in enumerate(lines, start=1)
    ]
    return canvas(width, height, node("rect", paper), *rows, label="\n".join(lines))
