"""The conditions of a proof for one seat, its steps, and the digests of its folders."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax import runs
from azjax.networks import MLPConfig, make_network
from azjax.players import Agent, Decision
from azjax.players.overrides import Overrides, oriented_overrides
from azjax.proof import seat_proof
from azjax.proof.exhaustive import Ends, Exploration
from azjax.proof.repair import OverrideTable, empty_table, table_path
from azjax.runs import Config, Player, make_parts
from azjax.search import PUCT
from refusals import assert_refused
from tables import batch

TINY = MLPConfig(hidden=(4,), head_hidden=4)
PARTS = make_parts(Config(network=TINY))
PLAYER = Player(PARTS, {"kernel": np.ones(3, np.float32)}, 6)
START = Exploration(0, 1, 1, Ends(0, np.zeros(3, int), np.zeros(3)), None)
EMPTY = empty_table(PARTS.game)


def table_of(cell, action):
    states = batch(np.eye(9, dtype=int)[cell].tolist())
    return OverrideTable(states, np.array([action], np.int32), np.zeros((1, 9), bool))


STEPS = [  # Symmetric, exact, simulations, table, lost games; steps, still symmetric.
    (False, False, 0, EMPTY, 0, [""], False),
    (True, False, 0, EMPTY, 0, ["", "-copies"], False),
    (True, False, 0, EMPTY, 1, [""], True),
    (True, True, 0, EMPTY, 0, [""], True),
    (True, True, 4, EMPTY, 0, ["", "-copies"], False),
    (True, True, 0, table_of(4, 0), 0, ["", "-copies"], False),
]


def returned(steps):
    """Runs a generator; returns the value that it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def test_all_copies_are_explored_unless_the_moves_are_exact(tmp_path, monkeypatch):
    """A lost game of one copy is enough to know that there is no proof."""
    for name in ("make_agent", "make_act"):
        monkeypatch.setattr(seat_proof, name, lambda *given: types.SimpleNamespace(name="x"))
    for symmetric, exact, simulations, table, lost, steps, stays in STEPS:
        explored = []

        def explore(game, act, seat, folder, explored=explored, lost=lost, **settings):
            assert (game, seat) == (PARTS.game, 1)
            explored.append((folder, settings))
            ends = START.ends._replace(moves=np.array([5, 5, lost]))
            yield (last := START._replace(ply=len(explored), ends=ends))
            return last

        monkeypatch.setattr(seat_proof.exhaustive, "explore", explore)
        network = PARTS.network._replace(symmetric=symmetric, exact=exact)
        player = Player(PARTS._replace(network=network), PLAYER.params, 6)
        path = table_path(tmp_path, 6, 1, simulations)
        proof = returned(seat_proof._Games(player, 1, simulations, path).explore(table))
        begin = f"6-second-{simulations}-" + "overrides-" * len(table.actions)
        begin += seat_proof._digest(player, table)
        expected = [(begin + step, symmetric and not step) for step in steps]
        assert [(folder.name, given["symmetric"]) for folder, given in explored] == expected
        assert (proof.folder, proof.symmetric) == (explored[-1][0], stays)
        assert proof.exploration.ply == len(explored)
        assert proof.table is table and proof.lost == lost and proof.is_proof == (not lost)


def test_an_exploration_of_an_earlier_table_is_deleted_and_others_stay(tmp_path, monkeypatch):
    """Folders of other searches, seats and checkpoints belong to other players."""
    names = ["6-first-0-overrides-old", "6-first-0-old", "6-first-8-overrides-old"]
    names += ["6-second-0-overrides-old", "16-first-0-overrides-old"]
    for name in names:
        (tmp_path / "lines" / name).mkdir(parents=True)
    for name in ("make_agent", "make_act"):
        monkeypatch.setattr(seat_proof, name, lambda *given: types.SimpleNamespace(name="x"))
    monkeypatch.setattr(seat_proof.exhaustive, "explore", lambda *given, **settings: iter([START]))
    path = table_path(tmp_path, 6, 0, 0)
    assert [*seat_proof._Games(PLAYER, 0, 0, path).explore(table_of(4, 0))] == [START]
    assert sorted(path.name for path in (tmp_path / "lines").iterdir()) == sorted(names[1:])


def test_everything_that_determines_the_moves_is_in_the_digest():
    def player(params=PLAYER.params, overrides=None, **parts):
        return Player(PARTS._replace(**parts), params, 6, overrides=overrides)

    row, network = np.zeros((1, 3), np.uint8), PARTS.network
    players = [
        PLAYER,
        player({"kernel": np.zeros(3, np.float32)}),
        player({"kernel": np.ones((3, 1), np.float32)}),
        player(overrides=Overrides(row, np.array([1], np.uint8))),
        player(overrides=Overrides(row, np.array([2], np.uint8))),
        player(overrides=Overrides(row + 1, np.array([2], np.uint8))),
        player(game=PARTS.game._replace(name="other")),
        player(search=PUCT(num_simulations=7)),
        player(network=make_network(dataclasses.replace(TINY, encoding="absolute"), PARTS.game)),
        player(network=network._replace(infer=lambda *given: network.infer(*given)[::-1])),
        player(game=PARTS.game._replace(is_over=lambda state: ~state.over)),
        player(network=network._replace(symmetric=not network.symmetric)),
    ]
    tables = [EMPTY, table_of(4, 0), table_of(4, 1), table_of(3, 0)]
    digests = [seat_proof._digest(player, table) for player in players for table in tables]
    assert len({*digests}) == len(players) * len(tables)
    same = Player(PARTS, jax.tree.map(np.copy, PLAYER.params), 7)
    assert seat_proof._digest(same, tables[1]) == digests[1]


def test_the_overrides_of_a_player_hold_with_and_without_search(monkeypatch):
    """Moves of the network are 0 here, and those of the search are the number of simulations."""
    states, encoding = batch([1, -1] + [0] * 7), PARTS.network.encoding
    overrides = oriented_overrides(PARTS.game, encoding, states, np.array([7]))
    player = Player(PARTS, {}, 6, overrides=overrides)

    def make_agent(game, search, *given):
        move = getattr(search, "num_simulations", 0)
        return Agent("one", lambda *given: Decision(jnp.full(2, move), jnp.zeros((2, 9))))

    for name in ("network_agent", "search_agent"):
        monkeypatch.setattr(runs.player, name, make_agent)
    boards = batch([1, -1] + [0] * 7, [0, 1] + [0] * 7)
    for simulations in (0, 5):
        act = seat_proof.make_agent(player, simulations).act
        assert act(None, None, boards).action.tolist() == [7, simulations]


def test_wrong_arguments_are_one_sentence(tmp_path, monkeypatch):
    def prove(*given, **settings):
        return lambda: azjax.prove_seat(*given, **{"run_dir": tmp_path} | settings)

    first, random = (PLAYER, "first"), Player(PARTS._replace(search=PUCT()), {}, 6)
    monkeypatch.setattr(PUCT, "is_deterministic", False)
    assert_refused(
        (prove(PLAYER, "frist"), "seat is 'frist': use 'first' or 'second'; did you mean"),
        (prove("tic_tac_toe", "first"), "player is 'tic_tac_toe', which is not of type Player"),
        (prove(*first, simulations=-1), "simulations is -1: use 0 to 1000000"),
        (prove(*first, rounds=-1), "rounds is -1: use 0 or more"),
        (prove(random, "first", simulations=4), "puct is a random search, so nothing can be"),
        (prove(random, "first", rounds=2), "network alone, and no repair"),
        (lambda: azjax.verify(PLAYER.agent), "player is Agent...which is not of type Player"),
        (lambda: azjax.verify(PLAYER, 32), "simulations is 32, which is not of type tuple"),
        (lambda: azjax.export(PLAYER.agent, "x.stablehlo"), "player is Agent...which is not of"),
    )
