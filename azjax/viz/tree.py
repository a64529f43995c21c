"""Pictures of search trees."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

import jax
import numpy as np

from azjax.drawing import COLOR_O, COLOR_X, Drawing, canvas, node, signed
from azjax.games.base import Game
from azjax.search import SearchResult
from azjax.viz.pictures import draw_state

BOARD = 44
_SPACING, _LEVEL = 64, 128  # Pixels between siblings, and between plies.
_BOX, _HEIGHT = 56, 102
_EDGE, _INK, _FAINT, _PAPER, _PANEL = "#8c959f", "#24292f", "#57606a", "#ffffff", "#f6f8fa"


def draw_tree(game: Game, result: SearchResult, row: int = 0, *, max_nodes: int = 40) -> Drawing:
    """Draws the tree of a search: boards with their visits N, values Q and priors P.

    Q is the mean outcome for the player who moved there, as used by that player's selection; at
    the root it is the value for the player to move. The border shows the player to move: square
    for X, round for O. UCT has no priors; its P is the order in which it tries actions.

    Args:
      game: the game.
      result: a search result with its tree.
      row: the row of the batch.
      max_nodes: maximum number of nodes; the most visited ones are shown, and the caption gives
        the number of all.
    """
    batch = len(result.action)
    if not 0 <= row < batch:
        raise ValueError(f"row {row} is not in this batch of {batch}: use 0 to {batch - 1}")
    if max_nodes < 1:
        raise ValueError(f"max_nodes is {max_nodes}: use 1 or more")
    tree: Any = jax.device_get(jax.tree.map(lambda leaf: leaf[row], result.tree))
    parents, actions, visits = tree.parents, tree.action_from_parent, tree.node_visits
    # The most visited nodes are connected: a node has more visits than its children together.
    order = np.lexsort((np.arange(len(visits)), -visits))
    shown = sorted(order[: min(max_nodes, np.count_nonzero(visits))].tolist())
    children: dict[int, list[int]] = {}
    for i in sorted(shown[1:], key=lambda i: actions[i]):
        children.setdefault(int(parents[i]), []).append(i)
    edge = np.maximum(parents, 0), np.maximum(actions, 0)
    q = tree.children_rewards + tree.children_discounts * tree.children_values
    values = np.where(parents >= 0, q[edge], tree.node_values)
    priors = np.asarray(jax.nn.softmax(tree.children_prior_logits))[edge]
    states = {i: jax.tree.map(lambda leaf, i=i: leaf[i], tree.embeddings) for i in shown}

    places = _place(children)
    x = {i: _BOX / 2 + 8 + places[i][0] * _SPACING for i in shown}
    y = {i: 8.0 + places[i][1] * _LEVEL for i in shown}
    edges = [
        _edge(x[parent], y[parent], x[child], y[child], visits[child] / visits[0])
        for parent, below in children.items()
        for child in below
    ]
    last = {i: int(actions[i]) if i else None for i in shown}
    pictures = {i: draw_state(game, states[i], BOARD, last=last[i]).element for i in shown}
    _fit(pictures.values())
    boxes = []
    for i in shown:
        player, over = int(game.player(states[i])), bool(game.is_over(states[i]))
        color = _FAINT if over else (COLOR_X, COLOR_O)[player]
        border = {"width": _BOX, "height": _HEIGHT, "rx": (2, 12)[player], "stroke-width": 1.5}
        lines = [f"N {visits[i]}", f"Q {signed(values[i])}"] + [f"P {priors[i]:.2f}"] * (i > 0)
        texts = [
            _text(_BOX / 2, 61 + 12 * n, line, {"text-anchor": "middle"})
            for n, line in enumerate(lines)
        ]
        if hidden := np.count_nonzero(parents == i) - len(children.get(i, ())):
            more = {"text-anchor": "middle", "font-size": 9} | {"fill": _FAINT}
            texts.append(_text(_BOX / 2, _HEIGHT - 4, f"+{hidden} below", more))
        turn = "the game is over" if over else f"{'XO'[player]} to move"
        title = f"node {i}: {turn}, {visits[i]} visits, Q {signed(values[i])}"
        place = {"transform": f"translate({x[i] - _BOX / 2:.1f} {y[i]:.1f})"}
        box = node("rect", border | {"fill": _PANEL, "stroke": color})
        boxes.append(node("g", place, node("title", None, title), box, pictures[i], *texts))

    caption = _caption(visits, shown)
    width = max(max(x.values()) + _BOX / 2 + 8, 7.0 * len(caption))
    height = max(y.values()) + _HEIGHT + 44
    text = _text(8, height - 10, caption, {"fill": _FAINT} | {"font-size": 13})
    paper = node("rect", {"width": width, "height": height, "rx": 6} | {"fill": _PAPER})
    return canvas(width, height, paper, *edges, *boxes, text, label=caption)


def _caption(visits: np.ndarray, shown: list[int]) -> str:
    total = np.count_nonzero(visits)
    if len(shown) == total:
        return f"all {total:,} positions of the tree"
    most = np.delete(visits, shown).max()
    return (
        f"{len(shown):,} of {total:,} positions; "
        f"the others have at most {most:,} visit{'s' if most > 1 else ''}"
    )


def _edge(x1, y1, x2, y2, share):
    start, middle = y1 + _HEIGHT, (y1 + _HEIGHT + y2) / 2
    path = f"M{x1:.1f} {start:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    look = {"fill": "none", "stroke-width": 1 + 6 * float(share)} | {"stroke": _EDGE}
    return node("path", {"d": path} | look)


def _fit(pictures: Collection[Element]) -> None:
    """Fits pictures into the squares of their nodes, all by one factor: text has one size."""
    sizes = [[float(picture.get(side, 0)) for side in ("width", "height")] for picture in pictures]
    scale = min(1.0, BOARD / np.max(sizes))
    for picture, size in zip(pictures, sizes, strict=True):
        width, height = scale * size[0], scale * size[1]
        place = {"x": (_BOX - width) / 2, "y": 5 + (BOARD - height) / 2}
        for name, number in (place | {"width": width, "height": height}).items():
            picture.set(name, f"{number:g}")


def _text(x, y, text, style):
    return node("text", {"x": x, "y": y, "font-size": 10} | {"fill": _INK} | style, text)


def _place(children: Mapping[int, Sequence[int]]) -> dict[int, tuple[float, int]]:
    """Returns the column and the ply of every node.

    Leaves are one column apart, and a parent is above the middle of its children.
    """
    places, leaves = {}, itertools.count()

    def place(i: int, ply: int) -> float:
        columns = [place(child, ply + 1) for child in children.get(i, ())]
        column = (columns[0] + columns[-1]) / 2 if columns else float(next(leaves))
        places[i] = column, ply
        return column

    place(0, 0)
    return places
