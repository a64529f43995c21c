"""The pictures of a report: its games, its animation and its trees."""

import dataclasses
from types import SimpleNamespace
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from azjax import callbacks
from azjax.games.base import Display, init_batch
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from azjax.search import PUCT, make_search
from azjax.search.evaluators import rollout_evaluator
from azjax.viz import animation, pictures
from azjax.viz.pictures import draw_tree, sample_games
from refusals import assert_refused
from tables import AS_IN_TRAINING

CONFIG = presets.smoke(presets.get("default"))


@pytest.fixture(scope="module")
def player(tic_tac_toe):
    """An untrained network; its search, its games and its report share one program."""
    parts = make_parts(CONFIG)
    variables = jax.jit(parts.network.init)(jax.random.key(0))
    return Player(parts, jax.device_get(parts.network.fold(variables)), 2)


@pytest.mark.compiles(1)
def test_games_have_the_noise_and_the_temperature_of_training(player, monkeypatch):
    """The first plies of a game have noise and a temperature, the others noise alone."""
    compiled, calls, results = pictures._make_search(player.parts), [], []

    def search(params, key, states, temperature):
        calls.append(float(temperature))
        results.append(compiled(params, key, states, temperature))
        return *results[-1][:2], np.full(1, len(calls) == 3)

    monkeypatch.setattr(pictures, "_make_search", lambda parts: search)
    plies = dataclasses.replace(CONFIG.selfplay, temperature=0.7, temperature_plies=2)
    changed = dataclasses.replace(player, parts=player.parts._replace(selfplay=plies))
    (moves,) = sample_games(changed, jax.random.key(0), 1)
    assert calls == [np.float32(0.7), np.float32(0.7), 0.0]
    for ply, (move, (result, *_)) in enumerate(zip(moves, results, strict=True)):
        assert move.value == result.q_values[0, move.action]
        assert np.count_nonzero(move.state.board) == ply
    start, others = init_batch(player.game, 1), {}
    for seed in range(8):  # With noise, the policy of a deterministic network differs.
        others[
            int(compiled(player.params, jax.random.key(seed), start, np.float32(0))[0].action[0])
        ] = seed
    assert len(others) > 1


def test_a_finished_run_keeps_its_report(player, tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "Player", lambda *given: player)
    monkeypatch.setattr(callbacks, "write_report", lambda *given: None)
    monkeypatch.setattr(callbacks, "write_note", (notes := []).append)
    network = SimpleNamespace(fold=lambda variables: variables)
    loop = SimpleNamespace(iteration=3, parts=SimpleNamespace(network=network), average=None)
    report = callbacks.Report(tmp_path, None, display=True)
    report.on_start(loop)
    report.on_end(loop)
    assert notes == ["writing the report"]
    (tmp_path / "report.html").touch()
    report.on_end(loop)
    assert len(notes) == 1
    loop.iteration = 4
    report.on_end(loop)
    assert len(notes) == 2


def test_callbacks_save_the_blunders_of_every_verification(tmp_path):
    is_blunder = np.random.rand(33) < 0.5
    verification = SimpleNamespace(verdict=SimpleNamespace(is_blunder=is_blunder))
    snapshots = callbacks.Snapshots(verification, tmp_path)
    snapshots.on_start(SimpleNamespace(iteration=0))
    snapshots.on_iteration(SimpleNamespace(iteration=5))
    verification.verdict = None  # This iteration was not verified.
    snapshots.on_iteration(SimpleNamespace(iteration=6))
    iterations, loaded = animation.load_blunders(tmp_path, 33, 12)
    assert iterations.tolist() == [0, 5]
    np.testing.assert_array_equal(loaded[1], is_blunder)
    snapshots.on_start(SimpleNamespace(iteration=4))  # The last session ended without a checkpoint.
    assert animation.load_blunders(tmp_path, 33, 12)[0].tolist() == [0]


# The picture of a whole game.


@pytest.fixture(scope="module")
def atlas(tic_tac_toe, solution):
    return animation.make_atlas(tic_tac_toe, solution)


def test_the_classes_of_tic_tac_toe(solution, atlas):
    assert np.bincount(atlas.ply).tolist() == [1, 3, 12, 38, 108, 174, 204, 153, 57, 15]
    assert len(atlas.ply) == 765
    assert atlas.members.sum() == len(solution.decisions) == 4520 and atlas.members.max() == 8
    ply = np.repeat(np.arange(10), np.diff(solution.layers))[solution.decisions]
    np.testing.assert_array_equal(atlas.ply[atlas.classes], ply)
    np.testing.assert_array_equal(np.bincount(atlas.classes, minlength=765), atlas.members)
    order = np.full(765, 2.0)  # Finished games come last.
    order[atlas.classes] = -solution.values[solution.decisions]
    assert (np.diff(order)[np.diff(atlas.ply) == 0] >= 0).all()


def test_saved_blunders_are_read_back_and_damaged_ones_refused(tmp_path):
    rows = np.random.default_rng(0).random((40, 21)) < 0.3

    def load(size, count=12):
        return animation.load_blunders(tmp_path, size, count)

    assert_refused((lambda: load(21), "holds no snapshots: use the"))
    for iteration, row in enumerate(rows):
        animation.save_blunders(tmp_path, iteration, row)
    (tmp_path / "snapshots" / "².bits").write_text("Not of an iteration.")
    iterations, loaded = load(21)
    assert iterations[0] == 0 and iterations[-1] == 39 and 8 < len(iterations) <= 12
    assert (np.diff(iterations, 2) >= 0).all()  # Denser at the start.
    np.testing.assert_array_equal(loaded, rows[iterations])
    np.testing.assert_array_equal(load(21, 40)[1], rows)
    assert_refused((lambda: load(33), "is damaged, or of another game"))


def test_an_animation_has_every_class_in_every_iteration(solution, atlas):
    is_blunder = np.random.default_rng(1).random((2, len(solution.decisions))) < 0.4
    is_blunder[1] = False
    picture = animation.draw_animation(atlas, np.array([3, 8]), is_blunder)
    assert len(str(picture)) < 100_000
    root = picture.element
    assert f"{is_blunder[0].sum():,} blunders after 3 iterations" in root.get("aria-label")
    frames = [g for g in root.iter() if g.get("class") == "az-animation-frame"]
    for frame, iteration, row in zip(frames, (3, 8), is_blunder, strict=True):
        dots = {e.get("class"): e.get("d").count("M") for e in frame if e.get("d")}
        share = np.array([row[atlas.classes == i].mean() for i in np.flatnonzero(atlas.members)])
        expected = {
            "ok": share == 0,
            "some": (share > 0) & (share < 0.5),
            "half": (share >= 0.5) & (share < 1),
            "all": share == 1,
        }
        for name, where in expected.items():
            assert dots.get(f"az-animation-{name}", 0) == where.sum()
        words = f"{row.sum():,} blunders" if row.any() else "no blunder"
        assert [e.text for e in frame if e.text] == [f"iteration {iteration}", words]
    delays = [float(g.get("style").split(":")[1].rstrip("s")) for g in frames]
    assert delays == [-5, -4]  # The last frame stays for four.


# Pictures of searches and of their trees.


SVG = "{http://www.w3.org/2000/svg}"
ROWS, SIMULATIONS = 24, 32
NOISY = PUCT(num_simulations=SIMULATIONS, c_puct=1.7, first_play_urgency="parent")


@pytest.fixture(scope="module")
def many_searched(tic_tac_toe, solution):
    """Noisy searches of positions of all plies, and their results; the first is the start."""
    rows = np.random.default_rng(0).choice(solution.decisions[1:], ROWS - 1, replace=False)
    states = jax.tree.map(lambda leaf: leaf[[0, *rows]], solution.states)
    search = make_search(NOISY, tic_tac_toe, rollout_evaluator(tic_tac_toe))
    run = jax.jit(search, static_argnums=4, compiler_options=AS_IN_TRAINING)
    keys = jax.random.split(jax.random.key(1), ROWS)
    return states, jax.device_get(run(None, keys, states, 0.0, True))


@pytest.mark.parametrize("row", [0, "end"])
def test_a_node_has_the_numbers_by_which_its_parent_chose(tic_tac_toe, many_searched, row):
    """Values are those of the player who moved there, also where moves end the game."""
    trees = many_searched[1].tree
    row = int(trees.children_rewards.any((1, 2)).argmax()) if row == "end" else row
    tree = jax.tree.map(lambda leaf: leaf[row], trees)
    priors = np.asarray(jax.nn.softmax(tree.children_prior_logits))
    picture = draw_tree(tic_tac_toe, many_searched[1], row, max_nodes=500)
    nodes = np.flatnonzero(tree.node_visits).tolist()
    groups = ElementTree.fromstring(str(picture)).findall(SVG + "g")
    for node, group in zip(nodes, groups, strict=True):
        numbers = dict(e.text.split() for e in group.findall(SVG + "text"))
        assert group.find(SVG + "rect").get("rx") == ("2", "12")[tree.embeddings.player[node]]
        edge = tree.parents[node], tree.action_from_parent[node]
        if node:
            q = tree.children_rewards[edge] + tree.children_discounts[edge] * tree.node_values[node]
            shown = float(numbers["Q"].replace("\N{MINUS SIGN}", "-"))
            assert float(numbers["P"]) == pytest.approx(priors[edge], abs=0.006)
            assert shown == pytest.approx(q, abs=0.0051)
        assert int(numbers["N"]) == tree.node_visits[node]
    lines = tic_tac_toe._replace(display=Display(lambda state: "|"))
    few = str(draw_tree(lines, many_searched[1], row, max_nodes=1))
    assert f"the 1 most visited of {len(nodes)} positions" in few and ">|<" in few
