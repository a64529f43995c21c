"""Repair of players until they lose no game."""

import jax
import numpy as np
import pytest

from azjax.exact import exhaustive, lines
from azjax.exact.overrides import OverrideTable, empty_table
from azjax.exact.repair import Analysis, make_analyze, make_symmetric, repair_games
from azjax.games.base import init_batch
from azjax.games.solver import symmetry_classes
from azjax.players import Decision


def rows_of(states, rows):
    return jax.tree.map(lambda leaf: leaf[rows], states)


@pytest.fixture(scope="module")
def place(solution):
    """`states -> rows` of the solution."""
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    return lambda states: np.array([rows[board.tobytes()] for board in states.board], int)


@pytest.fixture(scope="module")
def exact_search(solution, place):
    """A search that finds the exact value of every move."""

    def search(states):
        rows = place(states)
        values, legal = solution.action_values[rows], solution.legal[rows]
        q_values = np.where(legal, values, 0.0)
        return Decision(values.argmax(axis=1), legal, q_values=q_values, visit_counts=legal)

    return search


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


@pytest.mark.parametrize(
    ("seat", "searcher", "symmetric"),
    [
        (0, "exact_search", True),
        (1, "exact_search", False),
        (1, "blind_search", False),
        (1, "blind_search", True),
    ],
)
def test_a_player_is_repaired_until_no_game_is_lost(
    tic_tac_toe, solution, place, request, seat, searcher, symmetric, tmp_path
):
    analyze = make_analyze(tic_tac_toe, request.getfixturevalue(searcher), empty_table(tic_tac_toe))
    scores = np.random.default_rng(1).random(solution.num_states)
    if symmetric:
        scores = scores[symmetry_classes(tic_tac_toe, solution)]
    actions = np.where(solution.legal, scores[solution.children], -1).argmax(axis=1)
    table, lost = empty_table(tic_tac_toe), []
    for number in range(60):
        moves = overrides(table, place)

        def act(states, moves=moves):
            return np.array([moves.get(row, actions[row]) for row in place(states).tolist()])

        folder = tmp_path / str(number)
        *_, found = exhaustive.explore(tic_tac_toe, act, seat, folder, symmetric=symmetric)
        games = list(exhaustive.lost_games(folder))
        lost.append(found.ends.moves[2])
        if not games:
            break
        repaired = repair_games(tic_tac_toe, table, games, seat, analyze, symmetric)
        assert 0 < len(repaired.starts) <= len(games)
        rows = place(lines.replay(tic_tac_toe, repaired.starts)).tolist()
        table, moves = repaired.table, overrides(repaired.table, place)
        assert len({*rows}) == len(rows) and {*rows} <= {*moves}
    assert lost[0] > 20 and lost[-1] == 0
    rows = place(table.states)
    assert len(rows) and all(solution.player[row] == seat for row in rows)
    assert table.refuted.any() and not (table.refuted & ~solution.legal[rows]).any()
    assert (solution.action_values[rows][table.refuted] == -1).all()
    assert searcher == "blind_search" or solution.optimal[rows, table.actions].all()
    if symmetric:  # The table also holds in the symmetric copies that were not explored.
        *_, every = exhaustive.explore(tic_tac_toe, act, seat, tmp_path / "every")
        assert every.ends.moves[2] == 0 and every.ends.decisions > found.ends.decisions


def test_the_last_mistake_is_repaired(tic_tac_toe, solution, place, exact_search):
    """X plays 0 and 1, which still draw, and 5, which loses; O plays 4, 2 and 6."""
    table, starts = repair_once(tic_tac_toe, exact_search, [(0, 4, 1, 2, 5, 6)])
    assert table.actions.tolist() == [6] and starts == [(0, 4, 1, 2)]
    assert np.flatnonzero(table.states.board[0]).tolist() == [0, 1, 2, 4]
    assert np.flatnonzero(table.refuted[0]).tolist() == [5]
    [row] = place(table.states)
    assert solution.values[row] == 0 > solution.action_values[row, 5]


def test_if_every_move_is_refuted_the_previous_one_is(tic_tac_toe, blind_search):
    """X has to block O at 8; then O takes 6 and wins at 2 or at 3."""
    forced, lost = (1, 0, 7, 4), (1, 0, 7, 4, 8, 6)
    games = [(*lost, 2, 3), (*lost, 3, 2), (*lost, 5, 2)]
    refuted = {}
    for count, starts in ((2, [lost]), (3, [forced])):
        made = repair_once(tic_tac_toe, blind_search, games[:count])
        assert made.starts == starts
        stones = np.abs(made.table.states.board).sum(axis=1)
        refuted[count] = {
            int(stone): np.flatnonzero(row).tolist()
            for stone, row in zip(stones, made.table.refuted, strict=True)
        }
    assert refuted == {2: {6: [2, 3]}, 3: {4: [8], 6: [2, 3, 5]}}
    # Refuted moves of a position hold for other games that reach it.
    again = repair_once(tic_tac_toe, blind_search, [(7, 0, 1, 4, 8, 6, 2, 3)], made.table)
    assert again.starts == [(7, 0, 1, 4)]


def test_a_game_lost_from_the_start_is_not_repaired(tic_tac_toe, blind_search):
    start = jax.device_get(init_batch(tic_tac_toe, 1))
    table = OverrideTable(start, np.zeros(1, np.int32), np.ones((1, 9), bool))
    assert repair_once(tic_tac_toe, blind_search, [(0, 4, 1, 2, 5, 6)], table).starts == []


def test_a_position_is_searched_once(tic_tac_toe, blind_search):
    searched = []

    def decide(states):
        searched.append(states.board.tolist())
        return blind_search(states)

    analyze = make_analyze(tic_tac_toe, decide, empty_table(tic_tac_toe))
    states = lines.replay(tic_tac_toe, [(), (4,), (4, 0), (4, 0), (4, 1)])
    found = analyze(states)
    assert [found.index(analysis) for analysis in found] == [0, 1, 2, 2, 4]
    assert analyze(rows_of(states, np.array([4, 2]))) == [found[4], found[2]]
    assert searched == [states.board[[0, 1, 3, 4]].tolist()]


@pytest.mark.parametrize(
    ("tried", "eight", "rest", "start", "action"),
    [
        ("all", {}, {}, 4, 8),  # The last move that matters: the refuted one lost.
        ("all", {4: -0.4, 0: 0.9}, {4: -0.4}, 4, 8),  # An earlier mistake cost more.
        ("all", {4: -0.8}, {4: -0.8}, 2, 8),  # Its result lowers the value of the previous move,
        ("all", {4: -0.8, 2: -0.7}, {4: -0.8, 2: -0.7}, 0, 8),  # and of the first.
        ("all", {4: -0.8, 2: -0.9}, {4: -0.8}, 2, 2),  # Another move is expected to be better.
        (
            "all",
            {4: -0.9, 2: -0.7, 0: -0.8},
            {4: -0.9, 2: -0.7, 0: -0.8},
            2,
            8,
        ),  # The largest gain.
        ("eight", {4: -0.8, 2: -0.3}, {}, 2, 8),  # Moves that were not searched count as lost.
        (
            "all",
            {4: -0.75, 2: -0.5, 0: -0.25},
            {4: -0.75, 2: -0.5, 0: -0.25},
            4,
            8,
        ),  # All gains are equal.
    ],
)
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
        assert analysis.value == max(analysis.expected[analysis.legal])
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


def test_search_values_of_refuted_moves_are_ignored(tic_tac_toe, blind_search):
    """Updates do not change the given table."""
    states = lines.replay(tic_tac_toe, [(0, 4), (4, 0)])
    refuted = np.zeros((1, 9), bool)
    refuted[0, [1, 2]] = True
    table = OverrideTable(rows_of(states, [0]), np.array([3], np.int32), refuted)

    def decide(states):
        q_values = np.full((len(states.board), 9), 0.75)
        return blind_search(states)._replace(q_values=q_values)

    analyze = make_analyze(tic_tac_toe, decide, table)
    old, new = analyze(states)
    assert old.refuted.tolist() == refuted[0].tolist() and not new.refuted.any()
    assert old.expected[old.legal].tolist() == [-1, -1] + [0.75] * 5
    assert new.expected[new.legal].tolist() == [0.75] * 7
    old.update(5, -1.0, True)
    assert np.flatnonzero(table.refuted[0]).tolist() == [1, 2]
    assert analyze(states)[0].refuted[5]


def test_new_moves_replace_old_ones(tic_tac_toe, exact_search):
    old, _ = repair_once(tic_tac_toe, exact_search, [(0, 4, 1, 2, 5, 6)])
    other = old._replace(actions=np.array([3], np.int32))
    new, _ = repair_once(tic_tac_toe, exact_search, [(0, 4, 1, 2, 3, 6)], other)
    assert new.actions.tolist() == old.actions.tolist() == [6]
    assert np.flatnonzero(new.refuted[0]).tolist() == [3, 5]


def test_a_symmetry_violation_is_repaired_in_all_copies(tic_tac_toe, solution, place, tmp_path):
    actions = np.where(solution.legal, np.random.default_rng(1).random((9,)), -1).argmax(axis=1)
    table, counts = empty_table(tic_tac_toe), []
    for number in range(9):
        moves = overrides(table, place)

        def act(states, moves=moves):
            return np.array([moves.get(row, actions[row]) for row in place(states).tolist()])

        folder, settings = tmp_path / str(number), {"symmetric": True, "compare": True}
        *_, found = exhaustive.explore(tic_tac_toe, act, 0, folder, **settings)
        violations = list(exhaustive.symmetry_violations(folder))
        if not violations:
            break
        counts.append(len(violations))
        table, starts = make_symmetric(tic_tac_toe, table, violations)
        assert starts == [game[:-1] for game in violations] and not table.refuted.any()
    assert counts and max(counts) > 5
    *_, every = exhaustive.explore(tic_tac_toe, act, 0, tmp_path / "every")
    assert every.ends.games.tolist() == found.ends.games.tolist()
    assert every.ends.decisions > found.ends.decisions
