"""Pictures of searches and of their trees."""

import re
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from azjax.games.base import Display, init_batch
from azjax.search import PUCT, make_search
from azjax.search.evaluators import rollout_evaluator
from azjax.viz.pictures import draw_search
from azjax.viz.tree import BOARD, children_of, depths_of, draw_tree, tidy
from refusals import assert_refused
from tables import AS_IN_TRAINING

SVG = "{http://www.w3.org/2000/svg}"
ROWS, SIMULATIONS = 24, 32
CONFIG = PUCT(num_simulations=SIMULATIONS, c_puct=1.7, first_play_urgency="parent")


@pytest.fixture(scope="module")
def searched(tic_tac_toe, solution):
    """Noisy searches of positions of all plies, and their results; the first is the start."""
    rows = np.random.default_rng(0).choice(solution.decisions[1:], ROWS - 1, replace=False)
    states = jax.tree.map(lambda leaf: leaf[[0, *rows]], solution.states)
    search = make_search(CONFIG, tic_tac_toe, rollout_evaluator(tic_tac_toe))
    run = jax.jit(search, static_argnums=4, compiler_options=AS_IN_TRAINING)
    keys = jax.random.split(jax.random.key(1), ROWS)
    return states, jax.device_get(run(None, keys, states, 0.0, True))


def texts(picture):
    return [e.text for e in ElementTree.fromstring(str(picture)).iter(SVG + "text")]


def test_a_picture_of_a_tree_shows_its_nodes_and_their_number(tic_tac_toe, searched):
    _, result = searched
    tree = result.tree
    total = int((tree.node_visits[0] > 0).sum())
    for count in (1, 17, 500):
        picture = str(draw_tree(tic_tac_toe, result, max_nodes=count))
        titles = [e.text for e in ElementTree.fromstring(picture).iter(SVG + "title")]
        assert len(titles) == min(count, total)
        caption = f"all {total} positions" if count == 500 else f"{count} of {total} positions"
        assert caption in picture
    assert f"node 0: X to move, {SIMULATIONS + 1} visits" in titles[0]
    below = int((tree.children_index[0, 0] >= 0).sum())
    assert f"+{below} below" in str(draw_tree(tic_tac_toe, result, max_nodes=1))


def test_a_node_has_the_numbers_by_which_its_parent_chose(tic_tac_toe, searched):
    """Values are those of the player who moved there."""
    tree = jax.tree.map(lambda leaf: leaf[0], searched[1].tree)
    priors = np.asarray(jax.nn.softmax(tree.children_prior_logits))
    shown = {}
    picture = draw_tree(tic_tac_toe, searched[1], max_nodes=500)
    for group in ElementTree.fromstring(str(picture)).iter(SVG + "g"):
        if (title := group.findtext(SVG + "title")) and title.startswith("node "):
            numbers = [e.text for e in group.findall(SVG + "text")]
            shown[int(re.findall(r"node (\d+)", title)[0])] = dict(map(str.split, numbers))
    assert [*shown] == np.flatnonzero(tree.node_visits).tolist()
    for node, numbers in shown.items():
        edge = tree.parents[node], tree.action_from_parent[node]
        if node:
            q = tree.children_rewards[edge] + tree.children_discounts[edge] * tree.node_values[node]
            assert float(numbers["P"]) == pytest.approx(priors[edge], abs=0.006)
            assert float(numbers["Q"].replace("\N{MINUS SIGN}", "-")) == pytest.approx(
                q, abs=0.0051
            )
        assert int(numbers["N"]) == tree.node_visits[node]


def test_trees_and_searches_of_a_game_without_pictures_are_text(tic_tac_toe, searched):
    """The names depend on the position."""
    states, result = searched
    lines = lambda state: "|" * (1 + int(np.abs(state.board).sum()))  # noqa: E731
    names = lambda state: [f"{'XO'[int(state.player)]} to {cell}" for cell in range(9)]  # noqa: E731
    game = tic_tac_toe._replace(display=Display(lines, name_actions=names))
    picture = draw_tree(game, result, max_nodes=20)
    assert texts(picture).count("|") == 1 and "||" in texts(picture)
    boards = [e for e in ElementTree.fromstring(str(picture)).iter(SVG + "svg") if e.get("x")]
    widths = [float(e.get("width")) for e in boards]
    assert max(widths) <= BOARD
    scales = [x / float(e.get("viewBox").split()[2]) for x, e in zip(widths, boards, strict=True)]
    assert scales == pytest.approx([scales[0]] * len(boards), rel=1e-2)  # One font size.
    written = texts(draw_search(game, states, result, most=2))
    captions = [text for text in written if text.startswith("plays ")]
    for row, caption in enumerate(captions):
        mover = "XO"[int(states.player[row])]
        assert caption.startswith(f"plays {mover} to {result.action[row]}, value ")
    assert len(captions) == 2 and written[-1] == f"and {ROWS - 2} more"


def test_invalid_limits_are_refused(tic_tac_toe, searched):
    def draw(**limits):
        return lambda: draw_tree(tic_tac_toe, searched[1], **limits)

    assert_refused(
        (draw(row=ROWS), f"row {ROWS} is not in this batch of {ROWS}: use 0 to {ROWS - 1}"),
        (draw(max_nodes=0), "max_nodes is 0: use 1 or more"),
        (
            lambda: draw_search(tic_tac_toe, init_batch(tic_tac_toe, 1).board, searched[1]),
            re.compile("."),
        ),
    )


def test_the_layout_is_tidy():
    rng = np.random.default_rng(0)
    parents = np.array([-1, *(int(rng.integers(max(0, i - 12), i)) for i in range(1, 80))])
    children = children_of(parents, np.arange(80), range(80))
    places, depths = tidy(children), depths_of(parents)
    for parent, below in children.items():
        xs = [places[child] for child in below]
        assert xs == sorted(xs) and places[parent] == pytest.approx((xs[0] + xs[-1]) / 2)
    for level in range(depths.max() + 1):
        row = sorted(places[node] for node in np.flatnonzero(depths == level))
        assert np.diff(row).min(initial=1.0) >= 1 - 1e-9
