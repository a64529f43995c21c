"""Pictures of search trees of all algorithms: layout, omitted nodes, numbers."""

import re
import shutil
import subprocess
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from azjax.games.base import init_batch
from azjax.search import ALGORITHMS, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.viz.layout import children_of, most_visited, tidy
from azjax.viz.tree import draw_tree, graphviz

SVG = "{http://www.w3.org/2000/svg}"


def random_tree(rng, size):
    """Returns a tree in which every parent precedes its children."""
    children = {}
    for node in range(1, size):
        children.setdefault(int(rng.integers(max(0, node - 12), node)), []).append(node)
    return children


def depths_of(children):
    depths = {0: 0}
    for node in sorted(children):
        for child in children[node]:
            depths[child] = depths[node] + 1
    return depths


@pytest.mark.parametrize("seed", range(20))
def test_the_layout_is_tidy(seed):
    children = random_tree(np.random.default_rng(seed), 80)
    places, depths = tidy(children), depths_of(children)
    assert places.keys() == depths.keys() and min(places.values()) == 0
    for level in range(max(depths.values()) + 1):
        row = sorted(place for node, place in places.items() if depths[node] == level)
        assert np.diff(row).min(initial=1.0) >= 1 - 1e-9
    for parent, below in children.items():
        xs = [places[child] for child in below]
        assert xs == sorted(xs)
        assert places[parent] == pytest.approx((xs[0] + xs[-1]) / 2)


def test_equal_subtrees_have_the_same_layout():
    below = {10: [11, 12, 13], 12: [14]}
    children = {0: [1, 10], 1: [2, 3, 4], 3: [5]} | below
    places = tidy(children)
    assert [places[i + 9] - places[10] for i in (2, 3, 4, 5)] == [
        places[i] - places[1] for i in (2, 3, 4, 5)
    ]


@pytest.fixture(
    scope="module", params=[pytest.param("puct", marks=pytest.mark.slow), "gumbel", "uct"]
)
def result(request, tic_tac_toe):
    config = ALGORITHMS[request.param](num_simulations=60)
    search = jax.jit(make_search(config, tic_tac_toe, uniform_evaluator(tic_tac_toe)))
    keys = jax.random.split(jax.random.key(0), 2)
    return search(None, keys, init_batch(tic_tac_toe, 2))


def test_the_most_visited_nodes_are_connected(result):
    visits, parents = result.tree.node_visits[1], np.asarray(result.tree.parents[1])
    for count in range(1, 50):
        chosen = most_visited(np.asarray(visits), count)
        assert chosen[0] == 0 and len(chosen) <= count
        assert {parents[i] for i in chosen[1:]} <= set(chosen)


def test_a_picture_shows_the_number_of_nodes_in_its_caption(tic_tac_toe, result):
    total = int((result.tree.node_visits[1] > 0).sum())
    for count in (1, 17, 500):
        picture = str(draw_tree(tic_tac_toe, result, 1, max_nodes=count))
        titles = [e.text for e in ElementTree.fromstring(picture).iter(SVG + "title")]
        assert len(titles) == min(count, total)
        caption = f"all {total} positions" if count == 500 else f"{count} of {total} positions"
        assert caption in picture
    assert f"node 0: X to move, {int(result.tree.node_visits[1, 0])} visits" in titles[0]


def test_limits_of_depth_and_visits(tic_tac_toe, result):
    tree = result.tree
    shallow = str(draw_tree(tic_tac_toe, result, max_nodes=500, max_depth=1))
    assert shallow.count("<title>") == 1 + int((tree.children_index[0, 0] >= 0).sum())
    often = str(draw_tree(tic_tac_toe, result, max_nodes=500, min_visits=3))
    parents = np.asarray(tree.parents[0])
    exists = (parents >= 0) | (np.arange(len(parents)) == 0)
    visits = np.where(exists, tree.node_visits[0], 0)
    assert often.count("<title>") == (visits >= 3).sum()
    assert f"the others have at most {visits[visits < 3].max()} visit" in often


def test_values_are_those_of_the_player_who_moved(tic_tac_toe, result):
    picture = str(draw_tree(tic_tac_toe, result, max_nodes=500))
    shown = dict(re.findall(r"<title>node (\d+): .*?Q (.*?)</title>", picture))
    for action, child in enumerate(result.tree.children_index[0, 0]):
        if child >= 0:
            shown_value = float(shown[str(int(child))].replace("\N{MINUS SIGN}", "-"))
            assert shown_value == pytest.approx(float(result.q_values[0, action]), abs=0.0051)


def test_hidden_children_are_counted(tic_tac_toe, result):
    picture = str(draw_tree(tic_tac_toe, result, max_nodes=1))
    assert f"+{int((result.tree.children_index[0, 0] >= 0).sum())} below" in picture


def test_a_page_can_set_every_color(tic_tac_toe, result):
    """Boards are styled by their classes, other parts by variables."""
    tree = draw_tree(tic_tac_toe, result, max_nodes=3).element
    boards = {part for board in tree.iter("svg") if board is not tree for part in board.iter()}
    colored = 0
    for part in set(tree.iter()) - boards:
        for name in ("fill", "stroke"):
            if part.get(name, "none") != "none":
                assert f"{name}: var(--az-" in part.get("style", "")
                assert f", {part.get(name)})" in part.get("style", "")
                colored += 1
    assert colored > 15


def test_graphviz_reads_the_tree(tic_tac_toe, result):
    text = graphviz(tic_tac_toe, result, max_nodes=20)
    assert len(re.findall(r"->", text)) == 19
    assert text.count("[shape=") == 20
    if dot := shutil.which("dot"):
        drawn = subprocess.run([dot, "-Tsvg"], input=text, text=True, capture_output=True)
        assert drawn.returncode == 0 and drawn.stdout.count('class="node"') == 20


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"row": 2}, "row 2 is not in this batch of 2: use 0 to 1"),
        ({"max_nodes": 0}, "max_nodes is 0: use 1 or more"),
        ({"min_visits": 0}, "min_visits is 0: use 1 or more"),
        ({"max_depth": -1}, "max_depth is -1: use 0 or more"),
    ],
)
def test_invalid_limits_raise(tic_tac_toe, result, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw_tree(tic_tac_toe, result, **arguments)


def test_children_are_in_the_order_of_their_actions():
    parents, actions = np.array([-1, 0, 0, 0]), np.array([-1, 7, 2, 5])
    assert children_of(parents, actions, [0, 1, 2, 3]) == {0: [2, 3, 1]}
