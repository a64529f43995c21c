"""Where the nodes of a tree stand: a tidy layout, and which nodes to show of a large tree."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np


def tidy(children: Mapping[int, Sequence[int]], root: int = 0) -> dict[int, float]:
    """Places a tree so that siblings are at least 1 apart and parents above their middle.

    Subtrees are drawn the same wherever they stand, and pushed together until their outlines
    touch (Reingold and Tilford 1981, "Tidier Drawings of Trees").

    Args:
      children: of each node that has any, from left to right.
      root: where to start.

    Returns:
      The horizontal place of every node below `root`; the leftmost is at 0.
    """
    offsets: dict[int, float] = {}  # Of a node against its parent.
    _outline(children, root, offsets)
    places, stack = {root: 0.0}, [root]
    while stack:
        node = stack.pop()
        for child in children.get(node, ()):
            places[child] = places[node] + offsets[child]
            stack.append(child)
    leftmost = min(places.values())
    return {node: place - leftmost for node, place in places.items()}


def _outline(children, node, offsets) -> list[tuple[float, float]]:
    """Places what is below a node; returns its outline, (left, right) of every level."""
    merged: list[tuple[float, float]] = []
    places = []
    for child in children.get(node, ()):
        outline = _outline(children, child, offsets)
        overlap = zip(merged, outline, strict=False)  # As deep as both go.
        place = max((right + 1 - left for (_, right), (left, _) in overlap), default=0.0)
        places.append(place)
        merged = _merge(merged, [(left + place, right + place) for left, right in outline])
    middle = (places[0] + places[-1]) / 2 if places else 0.0
    for child, place in zip(children.get(node, ()), places, strict=True):
        offsets[child] = place - middle
    return [(0.0, 0.0), *((left - middle, right - middle) for left, right in merged)]


def _merge(first, second):
    """The outline of two subtrees side by side, `second` to the right."""
    both = [(left, right) for (left, _), (_, right) in zip(first, second, strict=False)]
    return both + first[len(both) :] + second[len(both) :]


def most_visited(visits: np.ndarray, count: int, always: Iterable[int] = ()) -> list[int]:
    """Chooses the nodes to show: a part of the tree that hangs together.

    A node has more visits than its children together, so its parent is never left out. The
    nodes of a search that come to few visits are those that it learned least from.

    Args:
      visits: `int [N]`, 0 for nodes that do not exist.
      count: how many to choose.
      always: nodes to add to these in any case, whole paths from the root.

    Returns:
      Node numbers, sorted.
    """
    order = np.lexsort((np.arange(len(visits)), -visits))[:count]
    return sorted({int(i) for i in order if visits[i] > 0}.union(always))


def depths_of(parents: np.ndarray) -> np.ndarray:
    """Returns `int [N]`, the moves from the root, node 0, to each node.

    Args:
      parents: `int [N]`, of a search's tree, where a parent is always made before its children;
        -1 for the root and for numbers that were never used. These have depth -1.
    """
    depths = np.full(len(parents), -1)
    depths[0] = 0
    for i in np.flatnonzero(parents >= 0):
        depths[i] = depths[parents[i]] + 1
    return depths


def children_of(parents: np.ndarray, actions: np.ndarray, nodes: Sequence[int]):
    """Returns the children of each of `nodes` among themselves, in the order of the actions."""
    below: dict[int, list[int]] = {}
    for node in sorted(nodes, key=lambda i: actions[i]):
        if parents[node] >= 0:
            below.setdefault(int(parents[node]), []).append(int(node))
    return below
