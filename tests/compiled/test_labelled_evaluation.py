"""Labelled positions: their labels, and evaluation during training and by `azjax verify`."""

import dataclasses
import re

import jax
import numpy as np
import pytest

import azjax
from azjax import training
from azjax.cli import verify
from azjax.games import connect_four
from azjax.games.base import ILLEGAL, Positions
from azjax.players.statistics import mean_proportion, proportion
from azjax.proof.callbacks import LabelledEvaluation
from azjax.proof.labelled import MEAN, ErrorCounts, count_errors, rates
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import PUCT, make_search
from azjax.training.loop import Loop
from azjax.training.metrics import Record
from guard import sharing
from small import conv, make_run

CONFIG = dataclasses.replace(
    presets.smoke(presets.get("default")),
    game="connect_four",
    network=conv(width=4, blocks=0, head_hidden=4),
    search=PUCT(num_simulations=4, c_puct=0.3, first_play_urgency="loss"),  # No default.
    seed=3,
)
PARTS = make_parts(CONFIG)
POSITIONS = PARTS.game.positions()


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("labelled") / "run", CONFIG)


@pytest.fixture(scope="module")
def answers(run_dir):
    """The scores and values of the network alone, and of its search with two simulations."""
    player = azjax.load(run_dir)
    config = dataclasses.replace(CONFIG.search, num_simulations=2)
    search = make_search(config, PARTS.game, PARTS.evaluate)
    searched = jax.jit(search)(player.params, jax.random.key(9), POSITIONS.states)
    scores = np.eye(7)[searched.action]
    values = np.asarray(searched.q_values)[np.arange(len(scores)), searched.action]
    return player.evaluate(POSITIONS.states), (scores, values)


# In training.


def test_training_evaluates_the_averaged_network_without_search(answers):
    mesh = training.make_mesh(jax.devices()[:1])
    with sharing():
        state = training.make_state(PARTS, jax.random.key(3), mesh)
        evaluation = LabelledEvaluation(PARTS, 1)
        variables = jax.tree.map(lambda leaf: -leaf, state.learner.variables)
        learner = state.learner._replace(variables=variables)
        state = state.replace(learner=learner, iteration=state.iteration + 1)
        loop = Loop(PARTS, state, None, 9, 0.0, record=Record(1, 0.0, 0, 0.0, {"loss": 0.0}))
        evaluation.on_iteration(loop)
        search = dataclasses.replace(CONFIG.search, num_simulations=2)
        searched = evaluation.find_errors(loop.average, search)
    with_search = rates(POSITIONS, count_errors(POSITIONS, *answers[1]))
    assert searched["error"] == with_search.errors["mean"].estimate
    expected = rates(POSITIONS, count_errors(POSITIONS, *answers[0]))
    assert loop.record.extra == {
        "error": expected.errors["mean"].estimate,
        **{f"error/{name}": expected.errors[name].estimate for name in POSITIONS.classes},
        "sign_error": expected.sign_errors["mean"].estimate,
    }


# A trained player.


def test_verify_counts_errors_on_labelled_positions(run_dir, answers, capfd):
    """Its search has the settings of the run."""
    with sharing():
        assert verify.main(["--run-dir", str(run_dir), "--simulations", "2", "--limit", "0"]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "positions of network alone 2 simulations" in printed
    players = [rates(POSITIONS, count_errors(POSITIONS, *answer)) for answer in answers]
    for kind in ("errors", "sign_errors"):
        columns = [getattr(player, kind) for player in players]
        for name in (*POSITIONS.classes, MEAN):
            if name in columns[0]:
                shares = [(100 * of[name].estimate, 100 * of[name].low) for of in columns]
                first, second = (re.escape(f"{share:.1f} ({low:.1f}") for share, low in shares)
                assert re.search(rf"{re.escape(name)} [\d,]* ?{first}\S* {second}", printed)


# The labels of Connect Four.


def test_positions_differ_and_labels_agree():
    """The player to move wins after an odd number of plies; a draw fills the board."""
    with np.load(connect_four.POSITIONS) as file:
        plies = file["plies"]  # `int8 [S, 7]`, to the end of the game after each move.
    stones = np.count_nonzero(POSITIONS.states.board, axis=1)
    boards = POSITIONS.states.board.reshape(-1, 6, 7)
    distinct = {min(board.tobytes(), board[:, ::-1].tobytes()) for board in boards}
    assert len(distinct) == len(boards)
    np.testing.assert_array_equal(POSITIONS.states.player, stones % 2)
    left = 42 - stones[:, None]
    for outcome, right in {
        1: (plies % 2 == 1) & (plies <= left),
        0: plies == left,
        -1: (plies % 2 == 0) & (plies <= left) & (plies > 0),
        ILLEGAL: plies == 0,
    }.items():
        assert right[POSITIONS.outcomes == outcome].all()


# Errors.


def test_errors_are_counted_by_class():
    """Against loops over the positions of each class."""
    rng = np.random.default_rng(1)
    some = np.random.default_rng(0).choice(len(POSITIONS.outcomes), 700, replace=False)
    outcomes, class_of = POSITIONS.outcomes[some], POSITIONS.class_of[some]
    few = Positions((), outcomes, POSITIONS.classes, class_of, POSITIONS.apart)
    scores = rng.normal(size=outcomes.shape).astype(np.float32)
    values = rng.normal(size=len(some)).astype(np.float32)
    values[:60:2], values[1:60:2] = np.nan, 0
    expected = np.zeros((4, len(POSITIONS.classes)), int)
    for row, (labels, score, value) in enumerate(zip(outcomes, scores, values, strict=True)):
        legal = [action for action in range(7) if labels[action] != ILLEGAL]
        best = max(labels[legal])
        chosen = labels[max(legal, key=lambda action, score=score: score[action])]
        flags = [True, chosen < best, best != 0, best != 0 and not value * best > 0]
        expected[:, class_of[row]] += flags
    found = jax.device_get(count_errors(few, scores, values))
    np.testing.assert_array_equal(np.stack(found), expected)
    assert expected.any(axis=1).all() and len({*map(tuple, expected.tolist())}) == 4


def test_rates_are_shares_with_intervals():
    positions = Positions((), np.zeros((1, 1)), ("a", "b", "c"), np.zeros(1), apart=("c",))
    numbers = [9, 4, 5], [3, 1, 5], [0, 0, 1], [0, 0, 0]
    found = rates(positions, ErrorCounts(*map(np.array, numbers)))
    expected = {"a": (3, 9), "b": (1, 4), "c": (5, 5)}
    mean = mean_proportion([3, 1], [9, 4])
    assert found.errors == {n: proportion(*x) for n, x in expected.items()} | {MEAN: mean}
    assert found.sign_errors == {"c": proportion(0, 1)}  # No mean without positions.
