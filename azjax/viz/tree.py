"""Pictures of search trees."""

from collections.abc import Collection
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import jax
import numpy as np

from azjax.drawing import COLOR_O, COLOR_X, Drawing, canvas, node, signed
from azjax.games.base import Game, State
from azjax.search import SearchResult
from azjax.viz.layout import children_of, depths_of, most_visited, tidy
from azjax.viz.pictures import draw_state

BOARD = 44
_SPACING, _LEVEL = 64, 128  # Pixels between siblings, and between plies.
_BOX, _HEIGHT = 56, 102
_EDGE, _INK, _FAINT, _PAPER, _PANEL = "#8c959f", "#24292f", "#57606a", "#ffffff", "#f6f8fa"
_VARIABLES = {  # CSS variables of a page for these colors, in light and dark themes.
    **{COLOR_X: "x", COLOR_O: "o", _EDGE: "control", _INK: "ink", _FAINT: "muted"},
    **{_PAPER: "paper", _PANEL: "panel"},
}


class _Nodes(NamedTuple):
    """The nodes to show of one tree; arrays are NumPy arrays over all `N` nodes.

    Attributes:
      shown: the chosen nodes, sorted.
      children: the shown children of each shown node.
      hidden: the number of children that are not shown, for each shown node that has any.
      actions: `int [N]`, the action that leads to each node.
      visits: `int [N]`, 0 for nodes that do not exist.
      values: `float32 [N]`, the mean value for the player who moved there; for the root, the
        value for the player to move.
      priors: `float32 [N]`, the prior of the action that leads to each node.
      depths: `int [N]`, number of moves from the root.
    """

    shown: list[int]
    children: dict[int, list[int]]
    hidden: dict[int, int]
    actions: np.ndarray
    visits: np.ndarray
    values: np.ndarray
    priors: np.ndarray
    depths: np.ndarray


def _choose_nodes(
    result: SearchResult, row: int, max_nodes: int, max_depth: int | None, min_visits: int
) -> _Nodes:
    batch = len(result.action)
    if not 0 <= row < batch:
        raise ValueError(f"row {row} is not in this batch of {batch}: use 0 to {batch - 1}")
    limits = {
        "max_nodes": (max_nodes, 1),
        "min_visits": (min_visits, 1),
        "max_depth": (max_depth, 0),
    }
    for name, (limit, least) in limits.items():
        if limit is not None and limit < least:
            raise ValueError(f"{name} is {limit}: use {least} or more")
    tree: Any = jax.device_get(jax.tree.map(lambda leaf: leaf[row], result.tree))
    parents, actions = tree.parents, tree.action_from_parent
    depths = depths_of(parents)
    exists = depths >= 0
    visits = np.where(exists, tree.node_visits, 0)
    wanted = visits >= min_visits
    if max_depth is not None:
        wanted &= depths <= max_depth
    wanted[0] = True
    shown = most_visited(np.where(wanted, visits, 0), max_nodes)
    edge = (np.maximum(parents, 0), np.maximum(actions, 0))
    q = tree.children_rewards + tree.children_discounts * tree.children_values
    priors = np.asarray(jax.nn.softmax(tree.children_prior_logits))
    below = children_of(parents, actions, np.flatnonzero(exists).tolist())
    hidden = {i: len(set(below.get(i, ())) - set(shown)) for i in shown}
    return _Nodes(
        shown=shown,
        children=children_of(parents, actions, shown),
        hidden={i: count for i, count in hidden.items() if count},
        actions=actions,
        visits=visits,
        values=np.where(parents >= 0, q[edge], tree.node_values),
        priors=priors[edge],
        depths=depths,
    )


def draw_tree(
    game: Game,
    result: SearchResult,
    row: int = 0,
    *,
    max_nodes: int = 40,
    max_depth: int | None = None,
    min_visits: int = 1,
) -> Drawing:
    """Draws the tree of a search: boards with their visits N, values Q and priors P.

    Q is the mean outcome for the player who moved there, as used by that player's selection; at
    the root it is the value for the player to move. The border shows the player to move: square
    for X, round for O. UCT has no priors; its P is the order in which it tries actions.

    Args:
      game: the game.
      result: a search result with its tree.
      row: the row of the batch.
      max_nodes: maximum number of nodes; the most visited ones are shown.
      max_depth: maximum number of moves below the root.
      min_visits: minimum number of visits of a node.

    Returns:
      A picture whose caption gives the number of omitted nodes.

    Raises:
      ValueError: if the row is not in the batch, or a limit is too small.
    """
    nodes = _choose_nodes(result, row, max_nodes, max_depth, min_visits)
    places = tidy(nodes.children)
    x = {i: _BOX / 2 + 8 + place * _SPACING for i, place in places.items()}
    y = {i: 8 + float(nodes.depths[i]) * _LEVEL for i in nodes.shown}
    edges = [
        _edge(x[parent], y[parent], x[child], y[child], nodes.visits[child] / nodes.visits[0])
        for parent, children in nodes.children.items()
        for child in children
    ]
    states = {i: _state(result, row, i) for i in nodes.shown}
    last = {i: int(nodes.actions[i]) if i else None for i in nodes.shown}
    pictures = {i: draw_state(game, states[i], BOARD, last=last[i]).element for i in nodes.shown}
    _fit(pictures.values())
    boxes = [_box(game, states[i], pictures[i], nodes, i, x[i], y[i]) for i in nodes.shown]
    caption = _caption(nodes)
    width = max(max(x.values()) + _BOX / 2 + 8, 7.0 * len(caption))
    height = max(y.values()) + _HEIGHT + 44
    text = _text(8, height - 10, caption, _look(fill=_FAINT) | {"font-size": 13})
    paper = node("rect", {"width": width, "height": height, "rx": 6} | _look(fill=_PAPER))
    return canvas(width, height, paper, *edges, *boxes, text, label=caption)


def _caption(nodes: _Nodes) -> str:
    total = int((nodes.visits > 0).sum())
    if len(nodes.shown) == total:
        return f"all {total:,} positions of the tree"
    most = max(nodes.visits[i] for i in set(np.flatnonzero(nodes.visits)) - set(nodes.shown))
    return (
        f"{len(nodes.shown):,} of {total:,} positions; "
        f"the others have at most {most:,} visit{'s' if most > 1 else ''}"
    )


def _edge(x1, y1, x2, y2, share):
    start, middle = y1 + _HEIGHT, (y1 + _HEIGHT + y2) / 2
    path = f"M{x1:.1f} {start:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    look = {"fill": "none", "stroke-width": 1 + 6 * float(share)} | _look(stroke=_EDGE)
    return node("path", {"d": path} | look)


def _state(result: SearchResult, row: int, i: int) -> State:
    return jax.tree.map(lambda leaf: leaf[row, i], result.tree.embeddings)


def _fit(pictures: Collection[Element]) -> None:
    """Fits pictures into the squares of their nodes, all by one factor: text has one size."""
    sizes = [[float(picture.get(side, 0)) for side in ("width", "height")] for picture in pictures]
    scale = min(1.0, BOARD / np.max(sizes))
    for picture, size in zip(pictures, sizes, strict=True):
        width, height = scale * size[0], scale * size[1]
        place = {"x": (_BOX - width) / 2, "y": 5 + (BOARD - height) / 2}
        for name, number in (place | {"width": width, "height": height}).items():
            picture.set(name, f"{number:g}")


def _box(
    game: Game, state: State, picture: Element, nodes: _Nodes, i: int, x: float, y: float
) -> Element:
    """Draws one node: a border for the player to move, the board, and three numbers."""
    player, over = int(game.player(state)), bool(game.is_over(state))
    border = {"width": _BOX, "height": _HEIGHT, "rx": (2, 12)[player], "stroke-width": 1.5}
    border |= _look(fill=_PANEL, stroke=_FAINT if over else (COLOR_X, COLOR_O)[player])
    lines = [f"N {nodes.visits[i]}", f"Q {signed(nodes.values[i])}"]
    lines += [f"P {nodes.priors[i]:.2f}"] if i else []
    texts = [
        _text(_BOX / 2, 61 + 12 * n, line, {"text-anchor": "middle"})
        for n, line in enumerate(lines)
    ]
    if i in nodes.hidden:
        more = {"text-anchor": "middle", "font-size": 9} | _look(fill=_FAINT)
        texts.append(_text(_BOX / 2, _HEIGHT - 4, f"+{nodes.hidden[i]} below", more))
    turn = "the game is over" if over else f"{'XO'[player]} to move"
    words = f"node {i}: {turn}, {nodes.visits[i]} visits, Q {signed(nodes.values[i])}"
    title = node("title", None, words)
    place = {"transform": f"translate({x - _BOX / 2:.1f} {y:.1f})"}
    return node("g", place, title, node("rect", border), picture, *texts)


def _text(x, y, text, style):
    return node("text", {"x": x, "y": y, "font-size": 10} | _look(fill=_INK) | style, text)


def _look(**colors: str) -> dict[str, str]:
    """Returns attributes with these colors, which the variables of a page override."""
    style = (f"{name}: var(--az-{_VARIABLES[color]}, {color})" for name, color in colors.items())
    return colors | {"style": "; ".join(style)}
