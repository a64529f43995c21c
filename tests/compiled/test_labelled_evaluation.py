"""Evaluation on labelled positions, during training and by `azjax verify`."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import azjax
from azjax import training
from azjax.cli import custom, verify
from azjax.proof.callbacks import LabelledEvaluation
from azjax.proof.verify import count_errors, rates
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import PUCT, make_search
from azjax.training.loop import Loop
from azjax.training.metrics import Record
from guard import sharing
from refusals import check_program
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
def player(run_dir):
    return azjax.load(run_dir)


@pytest.fixture(scope="module")
def answers(player):
    """The scores and values of the network alone, and of its search with two simulations."""
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
    expected = rates(POSITIONS, count_errors(POSITIONS, *answers[0]))
    assert loop.record.errors == {
        "error": expected.errors["mean"].estimate,
        **{f"error/{name}": expected.errors[name].estimate for name in POSITIONS.classes},
        "sign_error": expected.sign_errors["mean"].estimate,
    }


# A trained player.


def test_verify_counts_errors_on_labelled_positions(run_dir, answers, capfd):
    """Its search has the settings of the run."""
    with sharing():
        assert verify.main(["--run-dir", str(run_dir), "--simulations", "2", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["game"], found["iteration"]) == ("connect_four", 0)
    assert [agent["simulations"] for agent in found["players"]] == [0, 2]
    for agent, (scores, values) in zip(found["players"], answers, strict=True):
        tally = count_errors(POSITIONS, scores, values)
        for name, counts in tally._asdict().items():
            said = dict(zip(POSITIONS.classes, counts.tolist(), strict=True))
            assert agent["counts"][name] == said
        errors = rates(POSITIONS, tally).errors
        assert agent["rates"]["errors"] == {n: share._asdict() for n, share in errors.items()}


def test_what_cannot_be_proved_is_refused(run_dir, player, monkeypatch, capfd):
    many = "connect_four has too many positions to enumerate"
    instead = "leave it out to count errors on labelled positions"
    rows = [("--until unbeatable", f"{many}, so --until unbeatable can", instead)]
    monkeypatch.setattr(custom, "open_run", lambda typed: (run_dir, player))
    check_program(verify.main, rows, capfd)
    parts = PARTS._replace(game=PARTS.game._replace(positions=None))
    unlabelled = dataclasses.replace(player, parts=parts)
    monkeypatch.setattr(custom, "open_run", lambda typed: (run_dir, unlabelled))
    check_program(verify.main, [("", many)], capfd)
