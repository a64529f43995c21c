"""Pruning keeps the overrides that a player needs, and its games."""

import jax
import numpy as np
import pytest

import azjax
from azjax.exact import exhaustive
from azjax.exact.deciding import make_act
from azjax.exact.overrides import prune
from azjax.networks import MLPConfig, make_network, quantize
from azjax.players import network_agent
from azjax.players.overrides import oriented_agent, oriented_overrides
from azjax.search.evaluators import network_evaluator
from azjax.training.selfplay import SelfPlayConfig
from azjax.training.starts import start_games


@pytest.fixture(scope="module")
def player():
    game = azjax.make("connect_four:4x4")
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8, symmetric=True), game)
    config = SelfPlayConfig(opening_share=1.0, opening_plies=8)
    states = start_games(config, game, jax.random.split(jax.random.key(1), 400)).states
    made = quantize(game, network, network.init(jax.random.key(0)), states)
    evaluate = network_evaluator(game, made.network)
    agent = network_agent(game, evaluate, made.network.fold(made.variables))
    legal = np.asarray(jax.vmap(game.legal_actions)(states))
    boards = np.asarray(states.board).reshape(-1, 4, 4)
    least = [min(board.tobytes(), board[:, ::-1].tobytes()) for board in boards]
    rows = np.unique(least, return_index=True)[1]
    some = jax.tree.map(lambda leaf: leaf[rows], states)
    return game, agent, oriented_overrides(game, "relative", some, legal[rows].argmax(axis=1))


@pytest.mark.parametrize("seat", [0, 1])
def test_the_games_stay_the_same_and_every_override_is_needed(player, seat, tmp_path):
    game, agent, overrides = player
    kept, last = prune(game, "relative", agent, overrides, seat, tmp_path / "all")
    assert 0 < len(kept.actions) < len(overrides.actions)

    def explore(some, name):
        act = make_act(oriented_agent(game, "relative", agent, some))
        *_, end = exhaustive.explore(game, act, seat, tmp_path / name, symmetric=True)
        return end.ends.decisions, end.ends.moves.tolist()

    games = explore(kept, "kept")
    assert games == (last.ends.decisions, last.ends.moves.tolist())
    again, _ = prune(game, "relative", agent, kept, seat, tmp_path / "again")
    np.testing.assert_array_equal(again.planes, kept.planes)
