"""The layout of trees, and the choice of their nodes."""

import numpy as np
import pytest

from azjax.viz.layout import children_of, depths_of, most_visited, tidy


def random_tree(seed, size=80):
    """Returns a tree in which every parent precedes its children."""
    rng, children = np.random.default_rng(seed), {}
    for node in range(1, size):
        children.setdefault(int(rng.integers(max(0, node - 12), node)), []).append(node)
    return children


def test_the_layout_is_tidy():
    for children in map(random_tree, range(4)):
        places, parents = tidy(children), np.full(80, -1)
        for parent, below in children.items():
            parents[below] = parent
            xs = [places[child] for child in below]
            assert xs == sorted(xs)
            assert places[parent] == pytest.approx((xs[0] + xs[-1]) / 2)
        assert sorted(places) == [*range(80)] and min(places.values()) == 0
        depths = depths_of(parents)
        for level in range(depths.max() + 1):
            row = sorted(places[node] for node in np.flatnonzero(depths == level))
            assert np.diff(row).min(initial=1.0) >= 1 - 1e-9


def test_equal_subtrees_have_the_same_layout():
    places = tidy({0: [1, 10], 1: [2, 3, 4], 3: [5], 10: [11, 12, 13], 12: [14]})
    offsets = [[places[i + k] - places[i] for k in range(1, 5)] for i in (1, 10)]
    assert offsets[0] == offsets[1]
    assert max(places.values()) == 5  # Subtrees move together until their outlines touch.


def test_depths_children_and_the_most_visited_nodes():
    parents, actions = np.array([-1, 0, 0, 0, 2, -1]), np.array([-1, 7, 2, 5, 0, -1])
    assert depths_of(parents).tolist() == [0, 1, 1, 1, 2, -1]
    assert children_of(parents, actions, [0, 1, 2, 3, 4]) == {0: [2, 3, 1], 2: [4]}
    assert children_of(parents, actions, [0, 1, 3]) == {0: [3, 1]}
    visits = np.array([9, 1, 5, 2, 3, 0])
    assert most_visited(visits, 3) == [0, 2, 4]
    assert most_visited(visits, 9) == [0, 1, 2, 3, 4]
    assert most_visited(visits, 1, always=[0, 2, 4]) == [0, 2, 4]
