"""Exhaustive play counts the same games as the reference, and refuses what it cannot explore."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.proof import exhaustive, ply_files, replies
from bad_players import equivariant, explore_all, highest, lowest, make_act, replay, small_batches
from misere_pile import NIM
from pairs import pair
from reference import exhaustive_play
from refusals import assert_refused

TIC_TAC_TOE = pair("tic_tac_toe")
EQUIVARIANT = make_act(TIC_TAC_TOE, equivariant)


@pytest.fixture(autouse=True)
def _small_batches():
    with small_batches():
        yield


def assert_equal(steps, folder, expected):
    """The results equal those of the reference; each lost game is one of its lost games."""
    found, lost = steps[-1], list(exhaustive.lost_games(folder))
    assert found.ends.decisions == expected.decisions
    assert found.ends.moves.tolist() == expected.moves
    assert found.ends.games.tolist() == expected.games
    assert len(lost) == len({*lost}) == expected.moves[2]
    assert {*lost} <= expected.lost and found.lost == next(iter(lost), None)
    assert [len(line) for line in lost] == sorted(len(line) for line in lost)


CASES = [
    ("nim", lowest, ((),)),
    ("nim", highest, ((0,), (2, 1), (1, 0, 0))),  # Different games reach one position.
    ("misere_pile", lowest, ((),)),  # A player may move twice in a row.
    ("misere_pile", highest, ((1,), (0, 0))),
    ("tic_tac_toe", highest, ((4, 0, 8), (4, 2, 0, 8), (0, 4, 8))),
    ("tic_tac_toe", lowest, ((),)),
]


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize(("name", "policy", "starts"), CASES)
def test_exhaustive_play_equals_the_reference(name, policy, starts, seat, tmp_path):
    one = pair(name)
    choose, act = functools.partial(policy, one.rules), make_act(one, policy)
    expected = exhaustive_play.explore(one.rules, choose, seat, starts)
    for part_size in (1, 3, 2**18) if sum(expected.positions) < 99 else (50,):
        folder = tmp_path / str(part_size)
        settings = {"starts": starts, "part_size": part_size}
        steps = list(exhaustive.explore(one.game, act, seat, folder, **settings))
        assert_equal(steps, folder, expected)
        plies = {step.ply: step for step in steps}
        assert [plies[ply].positions for ply in plies] == expected.positions
        assert [*plies] == [*range(len(expected.positions))]
        assert all(step.total == expected.positions[step.ply] for step in steps)
        assert len([step for step in steps if step.ply == 0]) == -(-len(starts) // part_size)


@pytest.mark.parametrize(("seat", "starts"), [(0, ((),)), (1, ((2,), (7,)))])
def test_symmetric_copies_are_explored_as_the_reference_does(seat, starts, tmp_path):
    """Starts that are not copies of each other are transformed as well."""
    one = TIC_TAC_TOE
    policy = functools.partial(equivariant, one.rules)
    same = one.rules.least_image
    expected = exhaustive_play.explore(one.rules, policy, seat, starts, same)
    settings = {"starts": starts, "part_size": 50, "symmetric": True}
    steps = [*exhaustive.explore(one.game, EQUIVARIANT, seat, tmp_path, **settings)]
    assert_equal(steps, tmp_path, expected)


def test_each_part_keeps_as_many_lost_games_as_it_may(tmp_path, monkeypatch):
    """Games are also lost in later parts, and after more ends that are not lost."""
    act = make_act(TIC_TAC_TOE, highest)

    def lost_of_parts(folder):
        explore_all(TIC_TAC_TOE.game, act, 1, folder, part_size=40, starts=((4,),))
        return [len(ply_files.read(path)["lost"]) for path in sorted(folder.glob("*/ends-*.json"))]

    every = lost_of_parts(tmp_path / "every")
    monkeypatch.setattr(replies, "_LOST", 2)
    capped = lost_of_parts(tmp_path / "capped")
    assert capped == [min(lost, 2) for lost in every] and max(every) > 2
    games = list(exhaustive.lost_games(tmp_path / "capped"))
    assert len(games) == sum(capped) and {*games} <= {*exhaustive.lost_games(tmp_path / "every")}


def test_a_ply_that_was_explored_takes_little_space(tmp_path):
    """It keeps a parent of eight bytes and an action of four."""
    explore_all(NIM, make_act(pair("nim"), lowest), 0, tmp_path)
    parts = sorted(tmp_path.glob("*/*.npy"))
    assert [np.load(path).itemsize for path in parts] == [12] * len(parts) and len(parts) > 5
    assert {path.name for path in parts} == {"moves-000000.npy"}


def test_what_cannot_be_explored_is_refused(tmp_path):
    act, low = make_act(pair("nim"), highest), make_act(pair("nim"), lowest)
    folders = (tmp_path / str(number) for number in itertools.count())

    def explore(act=act, starts=((),), seat=0, game=NIM):
        return lambda: explore_all(game, act, seat, next(folders), starts=starts)

    stuck = NIM._replace(legal_actions=lambda state: (jnp.arange(3) < state[0]) & (state[0] != 4))
    no_move = "nim has no legal move after the actions [2]...otherwise correct its legal_actions"
    limits = (6, ((),)), (3, ((2,), (0, 0, 0)))
    long = "nim lasts longer than its max_plies, {}: set max_plies to the length of its longest"
    two = "the player returns actions of shape (2,) for 1 positions: return one action for"
    assert_refused(
        *((explore(seat=seat, game=stuck), no_move) for seat in (0, 1)),
        *(
            (explore(low, starts, game=NIM._replace(max_plies=most)), long.format(most))
            for most, starts in limits
        ),
        (explore(lambda states: np.zeros(2, int)), two),
        (explore(seat=2), "seat is 2: use 0 for the first player or 1 for the second"),
        (explore(starts=((2, 2, 1),)), "action 1 is illegal in nim after the actions [2, 2]: use"),
        (explore(starts=((0,) * 8,)), "a line of nim has 8 moves: use 7 at most"),
        (explore(starts=((2, 2, 0),)), "no legal move after the actions [2, 2, 0]...leave this"),
    )
    assert explore(low)().ply + 1 == NIM.max_plies


def test_illegal_moves_are_refused_with_their_own_position(tmp_path):
    """The other positions of the ply are those of the opponent."""
    one, best, nim = TIC_TAC_TOE, make_act(TIC_TAC_TOE, highest), make_act(pair("nim"), lowest)

    def play(moved):
        def cheat(states):
            return np.where((states.board != 0).sum(axis=1) == 3, moved, best(states) + 0.0)

        return lambda: explore_all(one.game, cheat, 1, tmp_path / str(moved), starts=((4, 0, 8),))

    said = "is illegal after the actions [4, 0, 8]: [1, 2, 3, 5, 6, 7] are legal there"
    bad = ((4, "4.0"), (-1, "-1.0"), (np.nan, "nan"))
    assert_refused(*((play(moved), f"action {name} {said}") for moved, name in bad))

    def late(states):
        return np.where(states[:, 0] == 3, 9, nim(states))

    starts = ((1,), (2,), (0, 0), (2, 0))
    said = "the player's action 9 is illegal after the actions [2, 0]: [0, 1, 2] are legal"
    assert_refused((lambda: explore_all(NIM, late, 0, tmp_path / "nim", starts=starts), said))


def test_a_folder_with_other_settings_is_refused(tmp_path):
    """Otherwise it would continue with wrong positions."""
    act, settings = make_act(pair("nim"), lowest), {"seat": 0, "starts": ((0,), (1,))}

    def explore(**others):
        return explore_all(NIM, act, folder=tmp_path, **{**settings, **others})

    assert jax.tree.all(jax.tree.map(np.array_equal, explore(), explore(part_size=2)))
    others = [{"starts": ((),)}, {"seat": 1}, {"symmetric": True}]
    said = "json has the settings of another exploration, ...: delete ...or use another folder"
    assert_refused(*((lambda other=other: explore(**other), said) for other in others))


def test_lines_lead_to_their_positions_and_only_legal_ones_are_replayed():
    game = TIC_TAC_TOE.game
    found = replay(game, [(), (4,), (4, 0, 8)])
    assert found.board.tolist() == [[0] * 9, [0] * 4 + [1] + [0] * 4, [-1, 0, 0, 0, 1, 0, 0, 0, 1]]
    assert found.player.tolist() == [0, 1, 1]
    assert replay(game, []).board.shape == (0, 9)
    said = "the action {} is illegal in tic_tac_toe after the actions {}: use"
    lines = [(4, 4), (0, 3, 1, 4, 2, 5), (4, 9), (4, -1)]
    rows = [
        (lambda line=line: replay(game, [(), (4,), line]), said.format(line[-1], [*line[:-1]]))
        for line in lines
    ]
    assert_refused(*rows)
