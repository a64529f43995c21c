"""The conditions of a proof for one seat, and the digests that keep explorations apart."""

import itertools
import pathlib

import jax
import numpy as np
import pytest

import azjax
from azjax.exact import seat as seats
from azjax.exact.deciding import make_act, make_agent
from azjax.exact.exhaustive import Exploration, explore
from azjax.exact.moves import replay
from azjax.exact.overrides import OverrideTable, empty_table, table_path
from azjax.exact.sampling import NO_ENDS
from azjax.players.overrides import Overrides
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from azjax.search import PUCT

PARTS = make_parts(presets.smoke(presets.get("default")))
ROW = np.zeros((1, 3), np.uint8)
PLAYER = Player(PARTS, {"kernel": np.ones(3, np.float32)}, 6)


@pytest.mark.parametrize("faults", [*itertools.product([False, True], repeat=3)])
def test_a_proof_needs_all_games_in_all_copies_without_a_loss(faults):
    sampled, breaks_symmetry, is_lost = faults
    ends = NO_ENDS._replace(moves=np.array([5, 5, int(is_lost)]))
    last = Exploration(8, 1, 1, ends, None, sampled, breaks_symmetry)
    proof = seats.SeatProof(last, pathlib.Path(), False, 0, 0.0, empty_table(PARTS.game))
    assert proof.lost == is_lost
    assert proof.is_proof == (not any(faults))


def table_of(lines, actions):
    states = replay(PARTS.game, lines)
    return OverrideTable(states, np.array(actions, np.int32), np.zeros((len(lines), 9), bool))


def test_everything_that_determines_the_moves_is_in_the_digest():
    network = PARTS.network
    players = [
        PLAYER,
        Player(PARTS, {"kernel": np.zeros(3, np.float32)}, 6),
        Player(PARTS, {"kernel": np.ones((3, 1), np.float32)}, 6),
        Player(PARTS, PLAYER.params, 6, overrides=Overrides(ROW, np.array([1], np.uint8))),
        Player(PARTS, PLAYER.params, 6, overrides=Overrides(ROW, np.array([2], np.uint8))),
        Player(PARTS._replace(game=PARTS.game._replace(name="other")), PLAYER.params, 6),
        Player(PARTS._replace(search=PUCT(num_simulations=7)), PLAYER.params, 6),
        Player(PARTS._replace(network=network._replace(encoding="other")), PLAYER.params, 6),
        Player(
            PARTS._replace(network=network._replace(symmetric=not network.symmetric)),
            PLAYER.params,
            6,
        ),
    ]
    tables = [
        empty_table(PARTS.game),
        table_of([(4,)], [0]),
        table_of([(4,)], [1]),
        table_of([(3,)], [0]),  # The same move in another position.
    ]
    digests = [seats._digest(player, table) for player in players for table in tables]
    assert len({*digests}) == len(players) * len(tables)
    same = Player(PARTS, jax.tree.map(np.copy, PLAYER.params), 7)
    assert seats._digest(same, tables[1]) == digests[1]


def test_an_exploration_of_an_earlier_table_is_deleted_and_others_stay(tmp_path, monkeypatch):
    """Folders of other searches, seats and checkpoints belong to other players."""
    names = ["6-first-0-overrides-old", "6-first-0-old", "6-first-8-overrides-old"]
    names += ["6-second-0-overrides-old", "16-first-0-overrides-old"]
    for name in names:
        (tmp_path / "lines" / name).mkdir(parents=True)
    monkeypatch.setattr(seats, "make_agent", lambda player, simulations: None)
    monkeypatch.setattr(seats, "override_agent", lambda *given: None)
    monkeypatch.setattr(seats, "make_act", lambda agent: None)
    last = Exploration(0, 1, 1, NO_ENDS, None, False, False)
    explored = []
    monkeypatch.setattr(
        seats.exhaustive, "explore", lambda *given, **settings: explored.append(given[3]) or [last]
    )
    table = table_of([(4,)], [0])
    path = table_path(tmp_path, 6, 0, 0)
    found = seats._Games(PLAYER, 0, 0, path, seats.finish).explore(table, None, True)
    assert found.folder == explored[-1]
    assert found.folder.name.startswith(f"6-first-0-overrides-{seats._digest(PLAYER, table)}")
    assert sorted(path.name for path in (tmp_path / "lines").iterdir()) == sorted(names[1:])


@pytest.mark.parametrize("seat", ["first", "second"])
def test_moves_of_exact_networks_need_no_comparison_and_pass_it(seat, tmp_path):
    player = azjax.load("connect_four:5x4")
    proof = seats.prove_seat(player, seat, tmp_path / "proof")
    ends = proof.exploration.ends
    assert proof.is_proof and proof.symmetric and proof.decided == ends.decisions
    act, folder = make_act(make_agent(player, 0)), tmp_path / "compared"
    settings = {"symmetric": True, "compare": True}
    *_, last = explore(player.game, act, seats.SEATS[seat], folder, **settings)
    assert not last.breaks_symmetry
    assert (last.ends.decisions, [*last.ends.moves]) == (ends.decisions, [*ends.moves])


def test_wrong_arguments_are_one_sentence(tmp_path):
    prove, verify = azjax.prove_seat, azjax.verify
    cases = [
        (prove, (PLAYER, "frist"), {}, "seat is 'frist': use 'first' or 'second'; did you mean"),
        (prove, (PLAYER, 0), {}, "seat is 0: use 'first' or 'second'"),
        (prove, ("tic_tac_toe", "first"), {}, "player is 'tic_tac_toe', which is not of type Play"),
        (prove, (PLAYER, "first"), {"simulations": "8"}, "simulations is '8', which is not of ty"),
        (prove, (PLAYER, "first"), {"simulations": -1}, "simulations is -1: use 0 to 1000000"),
        (prove, (PLAYER, "first"), {"most": 100.5}, "most is 100.5, which is not of type int"),
        (prove, (PLAYER, "first"), {"rounds": -1}, "rounds is -1: use 0 or more"),
        (azjax.repair, (PLAYER, "first", 1.5), {}, "rounds is 1.5, which is not of type int"),
        (verify, (PLAYER.agent,), {}, "player is Agent.*, which is not of type Player"),
        (verify, (PLAYER, 32), {}, "simulations is 32, which is not of type tuple"),
        (verify, (PLAYER, (-1,)), {}, "simulations is -1: use 0 or more"),
        (azjax.export, (PLAYER.agent, "player.onnx"), {}, "player is Agent.*, which is not of typ"),
        (azjax.make, (None,), {}, "name is None, which is not of type str"),
    ]
    for function, given, settings, message in cases:
        if function is prove:
            settings = {"run_dir": tmp_path, **settings}
        with pytest.raises(ValueError, match=message):
            function(*given, **settings)
    assert not [*tmp_path.iterdir()]
