"""Export of players: the files compute what the players compute.

`tests/system/test_export_player.py` has a process without azjax.
"""

import dataclasses
import functools

import jax
import numpy as np
import pytest

import azjax as az
import guard
from azjax.games.tic_tac_toe import from_board
from azjax.players.overrides import oriented_overrides
from azjax.runs import export as exports
from azjax.runs.export import name_leaves
from azjax.search import UCT
from integers import make_case
from refusals import assert_refused

FILE = "player.stablehlo"


@pytest.fixture(autouse=True)
def _for_this_machine(monkeypatch):
    monkeypatch.setattr(exports, "PLATFORMS", ("cpu",))


@functools.cache
def make_player():
    case = make_case("tic_tac_toe")
    parts = az.make_parts(az.Config(search=UCT()), case.game, case.made.network)
    with guard.sharing():
        return az.Player(parts, case.made.network.fold(case.made.variables))


def read(path):
    return jax.export.deserialize(path.read_bytes())


def assert_close(arrays, wanted):
    for array, expected in zip(arrays, wanted, strict=True):
        np.testing.assert_allclose(array, expected, atol=1e-4)


@pytest.fixture
def states(some_states):
    return jax.tree.map(lambda leaf: leaf[:5], some_states)


@pytest.mark.compiles(2)  # The player's search, and the file's.
def test_a_file_searches_as_its_seed_says(states, tmp_path):
    player = make_player()
    exported = read(az.export(player, tmp_path / FILE, num_simulations=2))
    actions = []
    for seed in (7, 8):
        action, weights, value = exported.call(name_leaves(states), seed)
        result = player.search(jax.random.key(seed), states, num_simulations=2)
        np.testing.assert_array_equal(action, result.action)
        assert_close((weights, value), (result.action_weights, result.value))
        actions.append(weights.tolist())
    assert actions[0] != actions[1]


@pytest.mark.compiles(2)  # The player's agent, and the file.
def test_a_file_plays_the_overrides(states, tmp_path):
    player = make_player()
    center = jax.device_get(from_board([0, 0, 0, 0, 1, 0, 0, 0, 0]))
    last = jax.tree.map(lambda leaf: leaf[None], center)
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), states, last)
    overrides = oriented_overrides(player.game, "relative", last, np.array([2]))
    player = dataclasses.replace(player, alone=True, overrides=overrides)
    exported = read(az.export(player, tmp_path / FILE, num_simulations=0))
    action, weights, value = exported.call(name_leaves(states), 0)
    decision = jax.jit(player.agent.act)(player.params, jax.random.key(0), states)
    np.testing.assert_array_equal(action, decision.action)
    assert_close((weights, value), (decision.weights, decision.value))
    assert weights[-1].max() == 1 > weights[:-1].max()


def test_refusals(tmp_path, monkeypatch):
    """Before a player is loaded."""
    check, hlo = exports.check_export, tmp_path / FILE
    assert_refused(
        (lambda: check(tmp_path / "player.pt"), "use a name that ends in .stablehlo"),
        (lambda: check(hlo, batch_size=0), "batch_size is 0: use 1 or more"),
        (lambda: check(hlo, num_simulations="8"), "num_simulations is '8', which is not of"),
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_refused((lambda: check(hlo), "needs the package flatbuffers: ... install flatbuffers"))
