"""Matches during training: opponents, budgets, metrics, and the best network in its folder."""

import types

import jax
import pytest

import azjax as az
from azjax.players.arena import Match, Tally
from azjax.runs import presets, strength
from azjax.runs.config import make_parts
from azjax.runs.directory import CheckpointError
from azjax.search import PUCT

TINY = presets.smoke(presets.get("default"))
WON, DRAWN, AHEAD = Tally(10, 0, 0, 10), Tally(0, 10, 0, 10), Tally(11, 0, 9, 20)


class FakeLoop(types.SimpleNamespace):
    """A loop whose averaged network is one number."""

    def __init__(self, iteration):
        super().__init__(iteration=iteration, average={"w": jax.numpy.float32(iteration)})
        self.metrics = {}

    def add(self, **metrics):
        self.metrics |= metrics


@pytest.fixture
def played(monkeypatch):
    """Replaces matches by results from `tally`; `matches` has the networks, keys and budgets."""
    played = types.SimpleNamespace(tally=DRAWN, matches=[], openings=[])

    def play_match(game, first, second, num_games, key, openings):
        weights = [float(agent.params["w"]) if agent.params else None for agent in (first, second)]
        budgets = first.nodes - 1, second.nodes - 1, num_games
        played.matches.append((tuple(weights), tuple(jax.random.key_data(key).tolist()), budgets))
        return Match(first.name, second.name, played.tally, played.tally, False)

    def draw_openings(*arguments):
        played.openings.append(arguments[2:])
        return types.SimpleNamespace(states=None)

    monkeypatch.setattr(strength, "play_match", play_match)
    monkeypatch.setattr(strength, "draw_openings", draw_openings)
    monkeypatch.setattr(strength.jax, "jit", lambda fold: fold)
    return played


@pytest.fixture(scope="module")
def parts():
    made = make_parts(TINY)
    return made._replace(network=made.network._replace(fold=lambda variables: variables))


def test_a_network_that_wins_becomes_the_best_one(parts, played, tmp_path):
    callback = az.callbacks.Strength(parts, every=2, num_games=4, folder=tmp_path / "strength")
    callback.on_start(FakeLoop(0))
    loops = [FakeLoop(iteration) for iteration in (1, 2, 4, 6, 8)]
    for loop, tally in zip(loops, (WON, WON, DRAWN, WON, AHEAD), strict=True):
        played.tally = tally
        callback.on_iteration(loop)
    assert loops[0].metrics == {}
    assert [loop.metrics["elo_best_iteration"] for loop in loops[1:]] == [0, 2, 2, 6]
    opponents, keys, budgets = zip(*played.matches, strict=True)
    assert opponents[:6] == ((2, None), (2, 0), (4, None), (4, 2), (6, None), (6, 2))
    assert len(set(keys)) == 8 and set(budgets[::2]) == {(4, 100, 4)} != set(budgets[1::2])
    first, drawn = loops[1].metrics, loops[2].metrics
    assert 0 < first["elo_best_low"] < first["elo_best"] == first["elo_best_high"]
    assert drawn["elo_uct"] == pytest.approx(0, abs=1e-6)
    assert drawn["elo_uct_low"] < 0 < drawn["elo_uct_high"]
    assert {path.name for path in (tmp_path / "strength").iterdir()} == {"0", "2", "6"}


def test_its_settings_are_those_of_the_matches(parts, played):
    """Simulations of UCT, the search of the network, the seed, and the games."""
    keys = set()
    for seed in (0, 1):
        callback = az.callbacks.Strength(
            parts, 1, 6, seed, search=PUCT(num_simulations=3), simulations=7
        )
        callback.on_start(FakeLoop(0))
        callback.on_iteration(FakeLoop(1))
        (_, key, against_uct), (_, other, against_best) = played.matches
        assert (against_uct, against_best) == ((3, 7, 6), (3, 3, 6))
        assert played.openings.pop() == (3, 2)
        keys |= {key, other}
        played.matches.clear()
    assert len(keys) == 4


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
    assert played.matches[1][0] == (3, 2)
    (tmp_path / "3" / "arrays.npz").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="3 is damaged .*: delete it, and the network of the"):
        start(3)
    with pytest.raises(ValueError, match="every is 0 and num_games 64: use 1 and 2 or more"):
        az.callbacks.Strength(parts, every=0)
