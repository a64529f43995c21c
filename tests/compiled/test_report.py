"""The report of a run that was not trained: games, and the page as a whole."""

import dataclasses
import json
import re
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from azjax import callbacks, runs
from azjax.games.base import init_batch, name_actions
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from azjax.viz import animation, pictures
from azjax.viz.pictures import sample_games
from azjax.viz.report import write_report

CONFIG = presets.smoke(presets.get("default"))


@pytest.fixture(scope="module")
def player(tic_tac_toe):
    """An untrained network; its search, its games and its report share one program."""
    parts = make_parts(CONFIG)
    variables = jax.jit(parts.network.init)(jax.random.key(0))
    return Player(parts, jax.device_get(parts.network.fold(variables)), 2)


@pytest.fixture(scope="module")
def searched(player):
    """The result of one search, the step that its moves make, and whether that ends the game."""
    states, still = init_batch(player.game, 1), np.zeros(1, np.float32)
    search = pictures._make_search(player.parts)
    return jax.device_get(search(player.params, jax.random.key(0), states, still, False))


@pytest.fixture(scope="module")
def written(player, solution, tmp_path_factory):
    """A report of two iterations."""
    run_dir = tmp_path_factory.mktemp("runs") / '<b>&"'
    runs.create_run(run_dir, CONFIG)
    record = {"loss": 2.0, "policy_loss": 1.0, "value_loss": 0.5, "games_per_second": 9.0}
    record |= {"blunders": 7, "losing_lines_first": 1, "losing_lines_second": 2, "value_error": 1}
    lines = []
    for iteration in (1, 2):
        lines.append(json.dumps({"iteration": iteration, "seconds": 1.0} | record))
        animation.save_blunders(run_dir, iteration, np.ones(len(solution.decisions), bool))
    (run_dir / "metrics.jsonl").write_text("\n".join([*lines, ""]))
    numbers = ["decision_states", "blunders", "losing_lines_first", "losing_lines_second"]
    content = dict.fromkeys([*numbers, "value_sign_errors", "moves", "seconds"], 4520)
    content |= {"game": "tic_tac_toe", "iterations": 2, "seed": 0, "device": "cpu"}
    content |= {"searches": [], "versions": {}, "perfect": False, "unbeatable": False}
    (run_dir / "certificate.json").write_text(json.dumps(content))
    path = write_report(run_dir, player, solution)
    return path.read_text(encoding="utf-8")


def read(content):
    """Returns the text that a browser shows."""
    body = re.sub(r"<(script|style).*?</\1>", "", content, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_games_have_the_noise_and_the_temperature_of_training(player, searched, monkeypatch):
    """The first plies of a game have noise and a temperature, the others noise alone."""
    calls, (result, step, _) = [], searched

    def search(params, key, states, temperature, add_noise):
        calls.append((temperature.tolist(), add_noise))
        return result, step, np.full(1, len(calls) == 3)

    monkeypatch.setattr(pictures, "_make_search", lambda parts: search)
    plies = dataclasses.replace(CONFIG.selfplay, temperature=0.7, temperature_plies=2)
    changed = dataclasses.replace(player, parts=player.parts._replace(selfplay=plies))
    (moves,) = sample_games(changed, jax.random.key(0), 1)
    expected = [np.float32(0.7), np.float32(0.7), 0.0]
    assert calls == [([number], True) for number in expected]
    assert [move.value for move in moves] == 3 * [result.q_values[0, result.action[0]]]


def test_searches_are_shown_move_by_move(player, searched):
    """As many as a game has; the first is open, and each starts where the last one ended."""
    shown = list(pictures.search_strips(player, 3))
    moves = [strip.findtext("summary") for strip in shown]
    first = name_actions(player.game, player.game.init())[int(searched[0].action[0])]
    assert moves[0] == f"Move 1: the search plays {first}" and len(set(moves)) == 3
    assert [strip.get("open") for strip in shown] == ["open", None, None]
    roots = [next(strip.iter("title")).text.partition(",")[0] for strip in shown]
    assert roots == ["node 0: X to move", "node 0: O to move", "node 0: X to move"]
    assert 5 <= len(pictures.search_strips(player, 20)) <= 9


def test_the_report_shows_everything(written, player):
    text = read(written)
    headings = re.findall(r"<h2.*?>(.*?)</h2>", written)
    assert headings == [
        *["Training", "Not proved: this player can be beaten"],
        *["The whole game, iteration by iteration", "Games of self-play", "Configuration"],
    ]
    for words in (
        *["decision states checked", "4,520", "The start is at the top"],
        *["Game 1:", "Game 3:", "learner.learning_rate", "search.num_simulations"],
    ):
        assert words in text, words
    assert "4,520 blunders" in text
    assert written.count('class="az-chart"') == 4


def test_a_failing_report_does_not_affect_the_run(player, tmp_path, monkeypatch):
    def fail(*arguments, **settings):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(callbacks, "Player", lambda *given: player)
    monkeypatch.setattr(callbacks, "write_report", fail)
    monkeypatch.setattr(callbacks, "write_note", (notes := []).append)
    network = SimpleNamespace(fold=lambda variables: variables)
    loop = SimpleNamespace(iteration=3, parts=SimpleNamespace(network=network), average=None)
    report = callbacks.Report(tmp_path, None, display=True)
    report.on_start(loop)
    report.on_end(loop)
    failed = "the report was not written: [Errno 28] No space left on device"
    assert notes == ["writing the report", failed]
    (tmp_path / "report.html").touch()
    report.on_end(loop)  # A finished run has a report already.
    assert len(notes) == 2
    loop.iteration = 4
    report.on_end(loop)
    assert len(notes) == 4


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
