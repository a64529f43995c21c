"""Pictures of searches and of their trees."""

import re
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from azjax.games.base import Display
from azjax.search import PUCT, make_search
from azjax.search.evaluators import rollout_evaluator
from azjax.viz.pictures import draw_tree
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


@pytest.mark.parametrize("row", [0, "end"])
def test_a_node_has_the_numbers_by_which_its_parent_chose(tic_tac_toe, searched, row):
    """Values are those of the player who moved there, also where moves end the game."""
    trees = searched[1].tree
    row = int(trees.children_rewards.any((1, 2)).argmax()) if row == "end" else row
    tree = jax.tree.map(lambda leaf: leaf[row], trees)
    priors = np.asarray(jax.nn.softmax(tree.children_prior_logits))
    shown, corners = {}, set()
    picture = draw_tree(tic_tac_toe, searched[1], row, max_nodes=500)
    for group in ElementTree.fromstring(str(picture)).iter(SVG + "g"):
        if (title := group.findtext(SVG + "title")) and title.startswith("node "):
            numbers = [e.text for e in group.findall(SVG + "text")]
            corners.add((title.split()[2], group.find(SVG + "rect").get("rx")))
            shown[int(re.findall(r"node (\d+)", title)[0])] = dict(map(str.split, numbers))
    assert {each for each in corners if each[0] in "XO"} == {("X", "2"), ("O", "12")}
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
    few = str(draw_tree(tic_tac_toe, searched[1], row, max_nodes=1))
    assert f"the 1 most visited of {len(shown)} positions" in few


def test_trees_of_a_game_without_pictures_are_text(tic_tac_toe, searched):
    _, result = searched
    lines = lambda state: "|" * (1 + int(np.abs(state.board).sum()))  # noqa: E731
    tree = str(draw_tree(tic_tac_toe._replace(display=Display(lines)), result, max_nodes=20))
    assert ">|<" in tree and ">||<" in tree
    assert_refused(
        (
            lambda: draw_tree(tic_tac_toe, result, row=ROWS),
            f"row {ROWS} is not in this batch of {ROWS}: use 0 to {ROWS - 1}",
        ),
        (lambda: draw_tree(tic_tac_toe, result, max_nodes=0), "max_nodes is 0: use 1 or more"),
    )
