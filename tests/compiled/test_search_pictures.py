"""Pictures of search trees, and the trace of a search: replayed, it is the search."""

import dataclasses
import functools
import re
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from azjax.games.base import init_batch
from azjax.games.display import Display
from azjax.search import PUCT, Gumbel, make_search
from azjax.search.evaluators import rollout_evaluator
from azjax.viz import trace as trace_module
from azjax.viz.pictures import draw_search
from azjax.viz.trace import trace
from azjax.viz.tree import BOARD, draw_tree
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


@pytest.fixture(scope="module")
def tree(searched):
    return searched[1].tree


@pytest.fixture(scope="module")
def traces(tree):
    """The histories; compiled like the searches, so that both round equally."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "jit", functools.partial(jax.jit, compiler_options=AS_IN_TRAINING))
        trace_module._compiled.cache_clear()
        return [trace(CONFIG, tree, row) for row in range(ROWS)]


# Traces.


def test_replaying_the_trace_gives_the_visits_and_values_of_the_tree(tree, traces):
    for row, traced in enumerate(traces):
        visits = np.zeros(SIMULATIONS + 1, int)
        values = traced.values.copy()
        visits[0] = 1
        for k, simulation in enumerate(traced.simulations):
            assert simulation.new == (visits[simulation.leaf] == 0)
            visits[simulation.leaf] += 1
            assert simulation.value == traced.values[simulation.leaf]
            np.testing.assert_array_equal(simulation.prior, traced.priors[simulation.leaf])
            steps = (simulation.path, simulation.actions, simulation.backup)
            for node, action, backup in zip(*steps, strict=True):
                assert traced.history.terms.score[k, node].argmax() == action
                # XLA multiplies and adds with one rounding.
                total = np.float32(np.float64(values[node]) * visits[node] + np.float64(backup))
                visits[node] += 1
                values[node] = total / np.float32(visits[node])
        nodes = traced.nodes
        assert np.array_equal(visits[nodes], tree.node_visits[row, nodes])
        assert np.array_equal(values[nodes], tree.node_values[row, nodes])
        assert visits.sum() == tree.node_visits[row].sum()
        assert np.array_equal(traced.history.node_values[-1], tree.node_values[row])
        assert np.array_equal(traced.history.children_visits[-1], tree.children_visits[row])


def test_backups_start_at_the_leaf_and_turn_their_sign_with_the_player(traces):
    for traced in traces:
        for simulation in traced.simulations:
            leaf, mover = simulation.leaf, traced.states.player[simulation.path[-1]]
            for_mover = -np.float32(simulation.value)
            if traced.states.over[leaf]:
                for_mover = traced.rewards[leaf]
                assert simulation.value == 0 and for_mover in (0, 1)
            signs = np.where(traced.states.player[list(simulation.path)] == mover, 1, -1)
            assert np.array_equal(simulation.backup, signs * for_mover)
            *path, last = (*simulation.path, leaf)
            assert path[0] == 0 and traced.depths[last] == len(path)
            edges = zip(path, (*path[1:], last), simulation.actions, strict=True)
            for parent, child, action in edges:
                assert (traced.parents[child], traced.actions[child]) == (parent, action)


def test_trees_of_other_searches_are_refused(tree):
    def trace_all(config):
        return [trace(config, tree, row) for row in range(3)]  # Some trees are equal.

    assert_refused(
        (lambda: trace_all(Gumbel()), "a search by gumbel cannot be traced: search with PUCT()"),
        (lambda: trace_all(dataclasses.replace(CONFIG, c_puct=0.01)), "belongs to other settings"),
    )


# Pictures.


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
    shallow = str(draw_tree(tic_tac_toe, result, max_nodes=500, max_depth=1))
    assert shallow.count("<title>") == 1 + below
    often = str(draw_tree(tic_tac_toe, result, max_nodes=500, min_visits=3))
    visits = tree.node_visits[0]
    assert often.count("<title>") == (visits >= 3).sum()
    assert f"the others have at most {visits[visits < 3].max()} visit" in often


def test_a_node_has_the_numbers_by_which_its_parent_chose(tic_tac_toe, searched, traces):
    """Values are those of the player who moved there; widths of edges grow with visits."""
    picture = draw_tree(tic_tac_toe, searched[1], max_nodes=500)
    shown, terms = {}, traces[0].history.terms
    for group in ElementTree.fromstring(str(picture)).iter(SVG + "g"):
        if (title := group.findtext(SVG + "title")) and title.startswith("node "):
            numbers = [e.text for e in group.findall(SVG + "text")]
            shown[int(re.findall(r"node (\d+)", title)[0])] = dict(map(str.split, numbers))
    assert shown.keys() == {*traces[0].nodes}
    for node, numbers in shown.items():
        parent, action = traces[0].parents[node], traces[0].actions[node]
        value = float(numbers["Q"].replace("\N{MINUS SIGN}", "-"))
        if node:
            assert float(numbers["P"]) == pytest.approx(terms.prior[-1, parent, action], abs=0.006)
            assert value == pytest.approx(terms.q[-1, parent, action], abs=0.0051)
        assert int(numbers["N"]) == traces[0].history.node_visits[-1, node]


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


def test_a_search_is_shown_with_its_policy(tic_tac_toe, searched):
    states, result = searched
    shown = str(draw_search(tic_tac_toe, states, result))
    labels = [
        e.text
        for e in ElementTree.fromstring(shown).iter(SVG + "text")
        if e.get("class") == "az-label"
    ]
    free = states.board[:4].ravel() == 0
    assert labels == [f"{share:.0%}" for share in result.action_weights[:4].ravel()[free]]
    assert shown.count("plays ") >= 4 and f"and {ROWS - 4} more" in shown


def test_invalid_limits_are_refused(tic_tac_toe, searched):
    def draw(**limits):
        return lambda: draw_tree(tic_tac_toe, searched[1], **limits)

    assert_refused(
        (draw(row=ROWS), f"row {ROWS} is not in this batch of {ROWS}: use 0 to {ROWS - 1}"),
        (draw(max_nodes=0), "max_nodes is 0: use 1 or more"),
        (draw(min_visits=0), "min_visits is 0: use 1 or more"),
        (draw(max_depth=-1), "max_depth is -1: use 0 or more"),
        (
            lambda: draw_search(tic_tac_toe, init_batch(tic_tac_toe, 1).board, searched[1]),
            re.compile("."),
        ),
    )
