"""The examples run unchanged, are short, and each has a page in the guide."""

import dataclasses
import functools
import itertools
import re
import runpy
import sys
import types

import jax
import numpy as np
import pytest

import azjax
import dots
from azjax import runs
from azjax.games import solver
from azjax.games.base import init_batch
from azjax.games.check import check_game
from azjax.proof import verify
from azjax.proof.certificate import network_policy
from azjax.runs import checkpoint, presets
from azjax.runs.config import CustomNetworkConfig, make_parts
from azjax.search import PUCT, make_search
from azjax.search.evaluators import rollout_evaluator, uniform_evaluator
from azjax.training.selfplay import self_play, start_games
from azjax.training.sharding import make_iteration, make_mesh, make_state
from azjax.training.step import init, iteration
from azjax.viz.architecture import layers
from reference import Position
from reference import tic_tac_toe as rules
from small import playing
from test_imports import ROOT

LONGER = ("counterexamples", "dots_and_boxes")  # An experiment with controls; a game with pictures.
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def names(path):
    """The names defined by an example, without running it as a program."""
    return runpy.run_path(str(path), run_name=path.stem)


def test_there_are_twelve_and_each_is_short():
    assert len(EXAMPLES) == 12
    for path in EXAMPLES:
        most = 100 if path.stem in LONGER else 80
        assert len(path.read_text().splitlines()) <= most, path


def test_each_is_included_in_one_page():
    pages = [page.read_text() for page in PAGES]
    for path in EXAMPLES:
        included = f'--8<-- "examples/{path.name}"'
        assert sum(included in page for page in pages) == 1, path


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys):
    if path.stem == "equinox_network":
        pytest.importorskip("equinox")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])  # Without the options of pytest.
    blunders = itertools.cycle([1, 0])  # No training takes more than two iterations.
    judged = types.SimpleNamespace
    if "train(" not in path.read_text():  # Examples with a custom loop.
        monkeypatch.setattr(verify, "verify_outputs", lambda *_: judged(blunders=next(blunders)))
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["domineering", "dots_and_boxes"])
def test_a_game_satisfies_the_contract(name):
    check_game(names(ROOT / "examples" / f"{name}.py")["make"](), num_games=4)


def test_dots_and_boxes_plays_as_the_game_of_the_tests():
    """Every position of every game, as one traversal of both games."""
    ours, other = names(ROOT / "examples" / "dots_and_boxes.py")["make"](), dots.make()
    found, expected = solver.solve(ours), solver.solve(other)
    assert found.num_states == expected.num_states == ours.most_positions
    np.testing.assert_array_equal(found.values, expected.values)
    for left, right in zip(*map(jax.tree.leaves, (found.states, expected.states)), strict=True):
        np.testing.assert_array_equal(left, right)


def test_dots_and_boxes_draws_every_edge():
    game = names(ROOT / "examples" / "dots_and_boxes.py")["make"]()
    state = jax.device_get(game.step(game.init(), 3)[0])
    picture = game.display.draw(state, values=np.linspace(0, 1, 12), last=3)
    lines = picture.element.findall("line")
    heat = [line for line in lines if line.get("class") == "az-heat"]
    assert (len(lines), len(heat)) == (12 + 11, 11)
    assert [line.get("stroke") for line in lines].count("#d55e00") == 1


def test_the_networks_work_for_other_games():
    pytest.importorskip("equinox")
    other = names(ROOT / "examples" / "domineering.py")["make"]()
    networks = [("networks", "transformer"), ("networks", "residual_mlp")]
    networks += [("nnx_network", "residual_mlp"), ("equinox_network", "mlp")]
    games = itertools.cycle([azjax.make("connect_four"), other])
    for (file, network), game in zip(networks, games, strict=False):
        made = names(ROOT / "examples" / f"{file}.py")[network](game)
        variables = jax.eval_shape(made.init, jax.random.key(0))

        def observe(game=game, encoding=made.encoding):
            return jax.vmap(lambda state: game.observe(state, encoding))(init_batch(game, 3))

        logits, value = jax.eval_shape(made.apply, variables, jax.eval_shape(observe))
        assert (logits.shape, value.shape) == ((3, game.num_actions), (3,))


@pytest.mark.slow
def test_an_nnx_network_becomes_perfect(tic_tac_toe, solution):
    network = names(ROOT / "examples" / "nnx_network.py")["residual_mlp"](tic_tac_toe)
    parts = make_parts(presets.get("default"), tic_tac_toe, network)
    step = jax.jit(functools.partial(iteration, parts))
    prove = jax.jit(lambda params: examine(parts, solution, params))
    state, blunders = init(parts, jax.random.key(0)), []
    while not blunders or (blunders[-1] and len(blunders) < 40):
        state, _ = step(state)
        blunders.append(int(prove(network.fold(state.learner.average))))
    assert blunders[-1] == 0, blunders


def examine(parts, solution, params):
    return verify.verify(solution, network_policy(parts, params)).blunders


@pytest.mark.slow  # `test_custom.py` trains custom networks.
def test_an_equinox_network_is_trained_saved_and_resumed(tic_tac_toe, tmp_path):
    pytest.importorskip("equinox")
    network = names(ROOT / "examples" / "equinox_network.py")["mlp"](tic_tac_toe)
    config = presets.smoke(presets.get("default"))
    learner = dataclasses.replace(config.learner, weight_decay=0.1)
    config = dataclasses.replace(config, network=CustomNetworkConfig(), learner=learner)
    parts, mesh = make_parts(config, tic_tac_toe, network), make_mesh(jax.devices()[:1])
    iterate = make_iteration(parts, mesh)
    runs.create_run(tmp_path / "run", config)
    first = make_state(parts, jax.random.key(0), mesh)
    before = jax.device_get(first.learner.variables)
    state, metrics = iterate(first)
    checkpoint.save(tmp_path / "run", state, 0.0)
    restored = checkpoint.restore(tmp_path / "run", parts, mesh).state
    assert np.isfinite(metrics.losses["loss"])
    for old, new in zip(*map(jax.tree.leaves, (before, state.learner.variables)), strict=True):
        assert (old != new).any()
    ahead, again = iterate(state)[0].learner, iterate(restored)[0].learner
    for one, other in zip(*map(jax.tree.leaves, (ahead, again)), strict=True):
        np.testing.assert_array_equal(one, other)
    trunk, _ = layers(parts, config.network)
    assert [layer.title for layer in trunk] == ["planes", "trunk", "policy", "value"]


@pytest.mark.slow
def test_a_constant_exploration_is_a_special_case_of_the_rule(tic_tac_toe):
    """With a huge base its exploration does not grow, so it equals PUCT."""
    rule = names(ROOT / "examples" / "search_rule.py")["GrowingPUCT"]
    evaluate = rollout_evaluator(tic_tac_toe)  # With random values.
    states, key = init_batch(tic_tac_toe, 1), jax.random.key(0)
    found = [
        make_search(search, tic_tac_toe, evaluate)(None, key, states).visit_counts
        for search in (
            PUCT(num_simulations=40, c_puct=1.25),
            rule(num_simulations=40, c_base=1e30),
            rule(num_simulations=40, c_base=1.0),
        )
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_the_rules_of_the_guide_explore_in_self_play(tic_tac_toe):
    """Without noise and temperature, a rule plays one game in all rows."""
    tutorial = (ROOT / "docs" / "tutorials" / "custom_algorithm.md").read_text()
    block = next(b for b in re.findall(r"```python\n(.*?)```", tutorial, re.S) if "PlainPUCT:" in b)
    found = {"__name__": "tutorial", "jax": jax}
    exec(block, found)
    rules = [names(ROOT / "examples" / "search_rule.py")["GrowingPUCT"], found["PlainPUCT"]]
    settings = {"unroll_length": 5, "opening_share": 0.0}
    for rule in rules:
        algorithm = rule(num_simulations=9)
        parts = playing(tic_tac_toe, algorithm, uniform_evaluator(tic_tac_toe), **settings)
        search = make_search(algorithm, tic_tac_toe, parts.evaluate)
        games = start_games(parts.selfplay, tic_tac_toe, jax.random.split(jax.random.key(0), 64))
        play = jax.jit(functools.partial(self_play, parts, None))
        _, moves = play(jax.random.key(1), games)
        assert np.unique(moves.action, axis=1).shape[1] > 55, rule
        weights = search(None, jax.random.key(2), games.states, add_noise=True).visit_counts
        assert len(np.unique(weights, axis=0)) > 20, rule  # Not only the action is drawn.


@pytest.mark.slow
def test_the_target_is_the_value_at_the_end_of_the_most_visited_line(tic_tac_toe):
    example = names(ROOT / "examples" / "tree_target.py")
    parts = example["make_parts"](tic_tac_toe)
    search = make_search(PUCT(num_simulations=30), tic_tac_toe, uniform_evaluator(tic_tac_toe))
    result = jax.device_get(jax.jit(search)(None, jax.random.key(0), init_batch(tic_tac_toe, 1)))
    tree = jax.tree.map(lambda leaf: leaf[0], result.tree)
    node, total, weight = 0, 0.0, 1.0
    while tree.children_visits[node].any():
        action = tree.children_visits[node].argmax()
        total += weight * tree.children_rewards[node, action]
        weight *= tree.children_discounts[node, action]
        node = tree.children_index[node, action]
    expected = total + weight * tree.raw_values[node]
    np.testing.assert_allclose(example["greedy_value"](result), [expected])
    state, _ = jax.eval_shape(lambda: iteration(parts, init(parts, jax.random.key(0))))
    assert state.replay is not None


def test_games_start_where_the_player_can_still_lose():
    """For the player of the lowest legal action, against plain recursion over all games."""
    example = names(ROOT / "examples" / "counterexamples.py")
    begun = example["from_lost_games"](
        lambda states: np.argmax(states.board == 0, axis=1), np.random.default_rng(0)
    )

    @functools.cache
    def loses(position, seat):
        moves = rules.legal(position)
        after = [rules.play(position, action) for action in moves]
        if position.player == seat:
            after = after[:1]
        elif any(reward > 0 for _, reward in after):
            return True
        return any(loses(child, seat) for child, _ in after)

    boards = {tuple(map(int, board)) for board in np.asarray(begun.states.board)}
    plies = np.asarray((begun.states.board != 0).sum(axis=1))
    np.testing.assert_array_equal(begun.ply, plies)
    assert len(boards) > 20 and set(plies) >= {0, 1, 2, 3, 4}
    for board in boards:
        position = Position(board, sum(map(abs, board)) % 2, False)
        assert not any(rules.has_line(board, mark) for mark in (1, -1)), board
        assert loses(position, 0) or loses(position, 1), board
