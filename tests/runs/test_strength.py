"""Matches during training: metrics, opponents, and a training that they leave unchanged."""

import types
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

import azjax as az
from azjax.players.arena import Match, Tally
from azjax.runs import presets, strength
from azjax.runs.config import make_parts
from azjax.runs.directory import CheckpointError
from azjax.viz import report

TINY = presets.smoke(presets.get("default"))
WON, DRAWN = Tally(10, 0, 0, 10), Tally(0, 10, 0, 10)


class FakeLoop(types.SimpleNamespace):
    """A loop whose averaged network is one number."""

    def __init__(self, iteration):
        super().__init__(iteration=iteration, average={"w": jax.numpy.float32(iteration)})
        self.metrics = {}

    def add(self, **metrics):
        self.metrics |= metrics


@pytest.fixture
def played(monkeypatch):
    """Replaces the matches by results from `tally`; returns what was played."""
    played = types.SimpleNamespace(tally=DRAWN, matches=[])

    def play_match(game, first, second, num_games, key, openings):
        weights = [float(agent.params["w"]) if agent.params else None for agent in (first, second)]
        played.matches.append((*weights, jax.random.key_data(key).tolist()))
        return Match(first.name, second.name, played.tally, played.tally, False)

    monkeypatch.setattr(strength, "play_match", play_match)
    return played


@pytest.fixture(scope="module")
def parts():
    made = make_parts(TINY)
    return made._replace(network=made.network._replace(fold=lambda variables: variables))


def test_a_network_that_wins_becomes_the_best_one(parts, played, tmp_path):
    callback = az.callbacks.Strength(parts, every=2, num_games=4, folder=tmp_path / "strength")
    callback.on_start(FakeLoop(0))
    loops = [FakeLoop(iteration) for iteration in (1, 2, 4, 6)]
    for loop, tally in zip(loops, (WON, WON, DRAWN, WON), strict=True):
        played.tally = tally
        callback.on_iteration(loop)
    assert loops[0].metrics == {}
    assert [loop.metrics["elo_best_iteration"] for loop in loops[1:]] == [0, 2, 2]
    opponents = [match[:2] for match in played.matches]
    assert opponents == [(2, None), (2, 0), (4, None), (4, 2), (6, None), (6, 2)]
    assert len({tuple(match[2]) for match in played.matches}) == 6
    first, drawn = loops[1].metrics, loops[2].metrics
    assert 0 < first["elo_best_low"] < first["elo_best"] == first["elo_best_high"]
    assert drawn["elo_uct"] == pytest.approx(0, abs=1e-6)
    assert drawn["elo_uct_low"] < 0 < drawn["elo_uct_high"]
    assert {path.name for path in (tmp_path / "strength").iterdir()} == {"0", "2", "6"}


def test_a_resumed_training_finds_the_best_one_of_then(parts, played, tmp_path):
    def start(iteration):
        callback = az.callbacks.Strength(parts, every=1, num_games=4, folder=tmp_path)
        callback.on_start(FakeLoop(iteration))
        return callback

    played.tally = WON
    callback = start(0)
    for iteration in (1, 2, 3):
        callback.on_iteration(FakeLoop(iteration))
        if iteration == 1:
            callback.on_checkpoint(FakeLoop(1))
            assert [path.name for path in tmp_path.iterdir()] == ["1"]
    played.matches.clear()
    callback = start(2)  # Where it was killed after iteration 3.
    assert {path.name for path in tmp_path.iterdir()} == {"1", "2"}
    callback.on_iteration(FakeLoop(3))
    assert played.matches[1][:2] == (3, 2)
    (tmp_path / "3" / "arrays.npz").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="3 is damaged .*: delete it, and the network of the"):
        start(3)


def test_links_are_deleted_but_not_followed(parts, played, tmp_path):
    folder, outside = tmp_path / "strength", tmp_path / "outside"
    callback = az.callbacks.Strength(parts, every=1, num_games=4, folder=folder)
    callback.on_start(FakeLoop(0))
    (outside / "1").mkdir(parents=True)
    for name in ("1.partial", "7", "8"):
        (folder / name).symlink_to(outside)
    played.tally = WON
    callback.on_iteration(FakeLoop(1))
    callback.on_checkpoint(FakeLoop(1))
    (folder / "9").symlink_to(outside)
    callback.on_start(FakeLoop(1))
    assert [path.name for path in folder.iterdir()] == ["1"] and not (folder / "1").is_symlink()
    assert [*outside.rglob("*")] == [outside / "1"]


def test_the_report_draws_elo_with_its_intervals():
    elo = {"elo_uct": 10.0, "elo_uct_low": -5.0, "elo_uct_high": 30.0}
    records = [{"iteration": i, "loss": 1.0, **(elo if i % 2 else {})} for i in range(1, 6)]
    (section,) = report._curves(records, az.make("connect_four"))
    drawn = ElementTree.tostring(section.element).decode()
    assert "against UCT" in drawn and drawn.count("az-band") == 1


def test_numbers_out_of_range_are_refused(parts):
    with pytest.raises(ValueError, match="every is 0 and num_games 64: use 1 and 2 or more"):
        az.callbacks.Strength(parts, every=0)


def test_training_is_bit_for_bit_the_same_with_matches(tmp_path):
    few = {"max_iterations": 2, "until": "never", "report": False, "display": False}
    plain = az.train(TINY, tmp_path / "plain", **few)
    run = az.train(TINY, tmp_path / "run", strength_every=1, strength_games=4, **few)
    jax.tree.map(np.testing.assert_array_equal, run.loop.average, plain.loop.average)
    jax.tree.map(
        np.testing.assert_array_equal,
        run.loop.state.learner.variables,
        plain.loop.state.learner.variables,
    )
    for ours, theirs in zip(run.metrics, plain.metrics, strict=True):
        assert ours["loss"] == theirs["loss"] and "elo_uct" not in theirs
        assert ours["elo_uct_low"] <= ours["elo_uct"] <= ours["elo_uct_high"]
        assert ours["elo_uct_low"] < ours["elo_uct_high"]
    assert (tmp_path / "run" / "strength").is_dir()
