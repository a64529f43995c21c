"""Repair of players until they lose no game."""

import numpy as np
import pytest

from azjax.players import Decision
from azjax.proof.repair import Analysis, OverrideTable, empty_table, make_analyze, repair_games
from bad_players import replay, search_blindly, small_batches
from small import take


@pytest.fixture(autouse=True)
def _small_batches():
    with small_batches():
        yield


def blind_search(states):
    return search_blindly(states.board == 0)


def repair_once(game, decide, games, table=None):
    table = table or empty_table(game)
    return repair_games(game, table, games, 0, make_analyze(game, decide, table), False)


CORRECTIONS = [  # Moves tried, values of 8 and of the others by stones, stones at the repair, move.
    ("all", {}, {}, 4, 8),  # The last move that matters: the refuted one lost.
    ("all", {4: -0.4, 0: 0.9}, {4: -0.4}, 4, 8),  # An earlier mistake cost more.
    ("all", {4: -0.8}, {4: -0.8}, 2, 8),  # Its result lowers the value of the previous move,
    ("all", {4: -0.8, 2: -0.7}, {4: -0.8, 2: -0.7}, 0, 8),  # and of the first.
    ("all", {4: -0.8, 2: -0.9}, {4: -0.8}, 2, 2),  # Another move is expected to be better.
    ("all", {4: -0.9, 2: -0.7, 0: -0.8}, {4: -0.9, 2: -0.7, 0: -0.8}, 2, 8),  # The largest gain.
    ("eight", {4: -0.8, 2: -0.3}, {}, 2, 8),  # Moves that were not searched count as lost.
    ("all", {4: -0.75, 2: -0.5, 0: -0.25}, {4: -0.75, 2: -0.5, 0: -0.25}, 4, 8),  # Equal gains.
]


@pytest.mark.parametrize(("tried", "eight", "rest", "start", "action"), CORRECTIONS)
def test_lost_games_correct_expected_values(tic_tac_toe, tried, eight, rest, start, action):
    """8 is chosen everywhere; the expected values of all moves depend on the number of stones."""

    def decide(states):
        q_values = np.zeros((len(states.board), 9))
        stones = np.abs(states.board).sum(axis=1).tolist()
        q_values[:] = np.array([rest.get(count, 0) for count in stones])[:, None]
        q_values[:, 8] = [eight.get(count, 0) for count in stones]
        visits = np.broadcast_to((np.arange(9) == 8) | (tried == "all"), q_values.shape)
        return Decision(np.full(len(stones), 8), None, q_values=q_values, visit_counts=visits)

    table, starts = repair_once(tic_tac_toe, decide, [(0, 4, 1, 2, 5, 6)])
    assert [*map(len, starts)] == [start]
    [row] = np.flatnonzero(np.abs(table.states.board).sum(axis=1) == start)
    assert table.actions[row] == action


def test_search_values_of_refuted_moves_are_ignored(tic_tac_toe):
    """Updates do not change the given table."""
    states = replay(tic_tac_toe, [(0, 4), (4, 0)])
    refuted = np.zeros((1, 9), bool)
    refuted[0, [1, 2]] = True
    table = OverrideTable(take(states, [0]), np.array([3], np.int32), refuted)

    def decide(states):
        return blind_search(states)._replace(q_values=np.full((len(states.board), 9), 0.75))

    analyze = make_analyze(tic_tac_toe, decide, table)
    old, new = analyze(states)
    assert old.refuted.tolist() == refuted[0].tolist() and not new.refuted.any()
    assert old.expected[old.legal].tolist() == [-1, -1] + [0.75] * 5
    assert new.expected[new.legal].tolist() == [0.75] * 7
    old.update(5, -1.0, True)
    assert np.flatnonzero(table.refuted[0]).tolist() == [1, 2] and analyze(states)[0].refuted[5]


def test_a_move_of_a_copy_that_is_refuted_turns_with_it(tic_tac_toe):
    table = empty_table(tic_tac_toe)
    analyze = make_analyze(tic_tac_toe, blind_search, table)
    made, _ = repair_games(tic_tac_toe, table, [(0, 4, 1, 2, 5, 6)], 0, analyze, True)
    assert len(made.actions) == 8
    for symmetry in tic_tac_toe.symmetries.actions:
        [board] = replay(tic_tac_toe, [tuple(symmetry[[0, 4, 1, 2]])]).board
        [row] = np.flatnonzero((made.states.board == board).all(axis=1))
        assert np.flatnonzero(made.refuted[row]).tolist() == [symmetry[5]]


def test_refuted_moves_of_earlier_rounds_stay(tic_tac_toe):
    """In a position of the games, here (0, 4), and in another one."""
    lines = [(0, 4), (8, 4), (0, 4, 3, 2)]
    states, refuted = replay(tic_tac_toe, lines[:2]), np.zeros((2, 9), bool)
    refuted[:, [1, 2]] = True
    table = OverrideTable(states, np.array([3, 3], np.int32), refuted)
    made, _ = repair_once(tic_tac_toe, blind_search, [(0, 4, 3, 2, 5, 6)], table)
    for board, moves in zip(replay(tic_tac_toe, lines).board, [[1, 2], [1, 2], [5]], strict=True):
        [row] = np.flatnonzero((made.states.board == board).all(axis=1))
        assert np.flatnonzero(made.refuted[row]).tolist() == moves


def test_one_position_of_a_game_is_repaired_at_a_time(tic_tac_toe):
    """Both games have (0, 4), where the first one is repaired; the second would be later."""

    def decide(states):
        is_lost = (states.board[:, 1] == 1) & (np.abs(states.board).sum(axis=1) == 4)
        q_values = np.where(is_lost, -0.8, 0.0)[:, None] * np.ones(9)
        chosen, visits = np.full(len(q_values), 8), q_values <= 0
        return Decision(chosen, None, q_values=q_values, visit_counts=visits)

    first, second = (0, 4, 1, 2, 5, 6), (0, 4, 3, 2, 1, 6)
    for games, expected in (([first], [(0, 4)]), ([second], [(0, 4, 3, 2)])):
        assert repair_once(tic_tac_toe, decide, games)[1] == expected
    assert repair_once(tic_tac_toe, decide, [first, second])[1] == [(0, 4)]


def test_a_position_that_is_lost_after_all_is_not_explored_again(tic_tac_toe):
    """The first game leaves a move in (0, 4, 1, 2), which the second one refutes."""
    refuted = np.isin(np.arange(9), [3, 6, 7])[None]
    table = OverrideTable(replay(tic_tac_toe, [(0, 4, 1, 2)]), np.array([5], np.int32), refuted)
    games = [(0, 4, 1, 2, 5, 6), (0, 4, 1, 2, 8, 6)]
    for count, expected in ((1, [(0, 4, 1, 2)]), (2, [(0, 4)])):
        assert repair_once(tic_tac_toe, blind_search, games[:count], table)[1] == expected


# What is concluded about the moves of one position.


def random_analyses():
    """Yields positions with five moves, at least one of them legal."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        legal = rng.random(5) < 0.8
        legal[rng.integers(5)] = True
        refuted = legal & (rng.random(5) < 0.5)
        expected = rng.choice([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0], 5)
        expected[refuted] = rng.choice([-1.0, 1.0])  # Values of refuted moves must have no effect.
        yield Analysis(legal, expected, refuted, rng.choice(np.flatnonzero(legal)).item())


def test_the_best_move_is_not_a_refuted_one():
    """It is the chosen one, unless that is refuted or another one is clearly better."""
    others = 0
    for analysis in random_analyses():
        left = [move for move in range(5) if analysis.legal[move] and not analysis.refuted[move]]
        best = max(left, key=lambda move: analysis.expected[move], default=analysis.chosen)
        gain = analysis.expected[best] - analysis.expected[analysis.chosen]
        if analysis.chosen in left and gain <= 0.5:
            best = analysis.chosen
        assert (analysis.best, analysis.is_lost) == (best, not left)
        others += best != analysis.chosen
    assert others > 100


def test_updates_of_moves_accumulate():
    """The value of a move is the least of its results, and a refuted move stays refuted."""
    rng = np.random.default_rng(1)
    for analysis in random_analyses():
        expected, refuted = analysis.expected.copy(), analysis.refuted.copy()
        for _ in range(8):
            action, value, is_lost = rng.integers(5), rng.uniform(-1, 1), rng.random() < 0.2
            analysis.update(action, value, is_lost)
            expected[action] = value if value < expected[action] else expected[action]
            if is_lost:
                refuted[action] = True
            assert analysis.expected.tolist() == expected.tolist()
            assert analysis.refuted.tolist() == refuted.tolist()
