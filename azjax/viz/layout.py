"""The layout of a tree, and the choice of nodes to show in a large tree."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np


def tidy(children: Mapping[int, Sequence[int]], root: int = 0) -> dict[int, float]:
    """Places a tree so that siblings are at least 1 apart and parents above their middle.

    A subtree has the same drawing everywhere; subtrees move together until their outlines touch
    (Reingold and Tilford 1981, "Tidier Drawings of Trees").

    Args:
      children: the children of each inner node, from left to right.
      root: the root.

    Returns:
      The horizontal place of every node from `root` down; the leftmost is at 0.
    """
    offsets: dict[int, float] = {}  # Of nodes, relative to their parents.
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
    """Places the nodes below a node; returns its outline, (left, right) of every level."""
    merged: list[tuple[float, float]] = []
    places = []
    for child in children.get(node, ()):
        outline = _outline(children, child, offsets)
        overlap = zip(merged, outline, strict=False)  # Down to the common depth.
        place = max((right + 1 - left for (_, right), (left, _) in overlap), default=0.0)
        places.append(place)
        merged = _merge(merged, [(left + place, right + place) for left, right in outline])
    middle = (places[0] + places[-1]) / 2 if places else 0.0
    for child, place in zip(children.get(node, ()), places, strict=True):
        offsets[child] = place - middle
    return [(0.0, 0.0), *((left - middle, right - middle) for left, right in merged)]


def _merge(first, second):
    """Returns the outline of two subtrees side by side, `second` to the right."""
    both = [(left, right) for (left, _), (_, right) in zip(first, second, strict=False)]
    return both + first[len(both) :] + second[len(both) :]


def most_visited(visits: np.ndarray, count: int, always: Iterable[int] = ()) -> list[int]:
    """Chooses the most visited nodes, which form a connected part of the tree.

    They are connected because a node has more visits than its children together.

    Args:
      visits: `int [N]`, 0 for nodes that do not exist.
      count: the number of nodes.
      always: nodes to add to these; they must be whole paths from the root.

    Returns:
      Node numbers, sorted.
    """
    order = np.lexsort((np.arange(len(visits)), -visits))[:count]
    return sorted({int(i) for i in order if visits[i] > 0}.union(always))


def depths_of(parents: np.ndarray) -> np.ndarray:
    """Returns `int [N]`, the depth of each node below the root, node 0.

    Args:
      parents: `int [N]`, the parents in a search tree, which have lower numbers than their
        children; -1 for the root and for unused numbers. Unused numbers have depth -1.
    """
    depths = np.full(len(parents), -1)
    depths[0] = 0
    for i in np.flatnonzero(parents >= 0):
        depths[i] = depths[parents[i]] + 1
    return depths


def children_of(parents: np.ndarray, actions: np.ndarray, nodes: Sequence[int]):
    """Returns the children of each node, within `nodes`, in the order of the actions."""
    below: dict[int, list[int]] = {}
    for node in sorted(nodes, key=lambda i: actions[i]):
        if parents[node] >= 0:
            below.setdefault(int(parents[node]), []).append(int(node))
    return below
