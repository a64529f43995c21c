"""Repair of players until they lose no game."""

import jax
import numpy as np
import pytest

from azjax.exact import exhaustive
from azjax.exact.repair import (
    OverrideTable,
    empty_table,
    make_analyze,
    make_symmetric,
    repair_games,
)
from azjax.games.solver import symmetry_classes
from azjax.players import Decision
from bad_players import explore_all, replay, small_batches


@pytest.fixture(autouse=True)
def _small_batches():
    with small_batches():
        yield


def rows_of(states, rows):
    return jax.tree.map(lambda leaf: leaf[rows], states)


@pytest.fixture(scope="module")
def place(solution):
    """`states -> rows` of the solution."""
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    return lambda states: np.array([rows[board.tobytes()] for board in states.board], int)


@pytest.fixture(scope="module")
def blind_search(solution, place):
    """A search that values every move at 0 and chooses the first."""

    def search(states):
        legal = solution.legal[place(states)]
        nothing = np.zeros(legal.shape)
        return Decision(legal.argmax(axis=1), legal, q_values=nothing, visit_counts=legal)

    return search


def repair_once(game, decide, games, table=None):
    table = table or empty_table(game)
    return repair_games(game, table, games, 0, make_analyze(game, decide, table), False)


def overrides(table, place):
    """The moves of a table, by the rows of their positions in the solution."""
    rows = place(table.states)
    assert len({*rows.tolist()}) == len(rows)
    return dict(zip(rows.tolist(), table.actions.tolist(), strict=True))


def test_a_player_is_repaired_until_no_game_is_lost(
    tic_tac_toe, solution, place, blind_search, tmp_path
):
    """The table also holds in the symmetric copies that were not explored."""
    table, lost, seat = empty_table(tic_tac_toe), [], 1
    analyze = make_analyze(tic_tac_toe, blind_search, table)
    scores = np.random.default_rng(1).random(solution.num_states)
    scores = scores[symmetry_classes(tic_tac_toe, solution)]
    actions = np.where(solution.legal, scores[solution.children], -1).argmax(axis=1)
    while not lost or lost[-1]:
        moves = overrides(table, place)

        def act(states, moves=moves):
            return np.array([moves.get(row, actions[row]) for row in place(states).tolist()])

        folder = tmp_path / str(len(lost))
        found = explore_all(tic_tac_toe, act, seat, folder, symmetric=True)
        games = list(exhaustive.lost_games(folder))
        lost.append(found.ends.moves[2])
        if games:
            table, starts = repair_games(tic_tac_toe, table, games, seat, analyze, True)
            rows = place(replay(tic_tac_toe, starts)).tolist()
            assert len({*rows}) == len(rows) and {*rows} <= {*overrides(table, place)}
            assert 0 < len(starts) <= len(games) and len(lost) < 60
    rows = place(table.states)
    assert lost[0] > 20 and all(solution.player[row] == seat for row in rows)
    assert table.refuted.any() and not (table.refuted & ~solution.legal[rows]).any()
    assert (solution.action_values[rows][table.refuted] == -1).all()
    every = explore_all(tic_tac_toe, act, seat, tmp_path / "every")
    assert every.ends.moves[2] == 0 and every.ends.decisions > found.ends.decisions


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


def test_search_values_of_refuted_moves_are_ignored(tic_tac_toe, blind_search):
    """Updates do not change the given table."""
    states = replay(tic_tac_toe, [(0, 4), (4, 0)])
    refuted = np.zeros((1, 9), bool)
    refuted[0, [1, 2]] = True
    table = OverrideTable(rows_of(states, [0]), np.array([3], np.int32), refuted)

    def decide(states):
        return blind_search(states)._replace(q_values=np.full((len(states.board), 9), 0.75))

    analyze = make_analyze(tic_tac_toe, decide, table)
    old, new = analyze(states)
    assert old.refuted.tolist() == refuted[0].tolist() and not new.refuted.any()
    assert old.expected[old.legal].tolist() == [-1, -1] + [0.75] * 5
    assert new.expected[new.legal].tolist() == [0.75] * 7
    old.update(5, -1.0, True)
    assert np.flatnonzero(table.refuted[0]).tolist() == [1, 2] and analyze(states)[0].refuted[5]


def test_a_move_of_a_copy_that_is_refuted_turns_with_it(tic_tac_toe, blind_search):
    """And symmetry violations are repaired in all copies."""
    table = empty_table(tic_tac_toe)
    analyze = make_analyze(tic_tac_toe, blind_search, table)
    made, _ = repair_games(tic_tac_toe, table, [(0, 4, 1, 2, 5, 6)], 0, analyze, True)
    assert len(made.actions) == 8
    same, starts = make_symmetric(tic_tac_toe, table, [(0, 4, 1, 2, 5)])
    assert starts == [(0, 4, 1, 2)] and not same.refuted.any()
    for symmetry in tic_tac_toe.symmetries.actions:
        [board] = replay(tic_tac_toe, [tuple(symmetry[[0, 4, 1, 2]])]).board
        for each, move in ((made, None), (same, symmetry[5])):
            [row] = np.flatnonzero((each.states.board == board).all(axis=1))
            assert move in (None, each.actions[row])
            assert move is not None or np.flatnonzero(each.refuted[row]).tolist() == [symmetry[5]]
