"""The arrays of the solver against known counts and against a plain recursion."""

import itertools

import numpy as np
import pytest

import guard
import misere_pile
from azjax import games
from azjax.games import solver
from nim import NIM
from reference import Position, minimax
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as tic_tac_toe_rules
from refusals import assert_refused

CORNER, EDGE, CENTRE = (14652, 5184, 7896), (14232, 5184, 10176), (15648, 4608, 5616)


@pytest.fixture(scope="module")
def pile_solution():
    return solver.solve(misere_pile.make())


@pytest.fixture(params=["tic_tac_toe", "misere_pile"])
def solved(request, solution, pile_solution):
    if request.param == "tic_tac_toe":
        return solution, tic_tac_toe_rules
    return pile_solution, misere_pile_rules


def positions(solution):
    """The states as positions of the reference implementation."""
    boards, players, overs = (np.asarray(leaf).tolist() for leaf in solution.states)
    return [Position(tuple(b), p, o) for b, p, o in zip(boards, players, overs, strict=True)]


def test_tic_tac_toe_counts(tic_tac_toe, solution):
    assert solution.num_states == 5478
    assert solution.over.sum() == 958
    assert len(solution.decisions) == 4520
    assert np.diff(solution.layers).tolist() == [1, 9, 72, 252, 756, 1260, 1520, 1140, 390, 78]
    assert solution.values[0] == 0


def test_solution_equals_the_reference(solved):
    solution, rules = solved
    listed = positions(solution)
    plies = [listed[start:end] for start, end in itertools.pairwise(solution.layers)]
    assert [len(ply) for ply in plies] == [len(set(ply)) for ply in plies]
    assert [set(ply) for ply in plies] == minimax.reachable(rules)
    assert listed[0] == rules.start()
    for s in range(0, len(listed), 3 if len(listed) > 1000 else 1):
        position = listed[s]
        outcomes = minimax.action_values(rules, position)
        best = max(outcomes.values(), default=None)
        assert solution.player[s] == position.player
        assert solution.over[s] == position.over
        assert solution.values[s] == minimax.value(rules, position)
        assert np.flatnonzero(solution.legal[s]).tolist() == list(outcomes)
        assert np.flatnonzero(solution.optimal[s]).tolist() == [
            action for action in outcomes if outcomes[action] == best
        ]
        for action in range(solution.legal.shape[1]):
            after, reward = rules.play(position, action)
            legal = action in outcomes
            assert listed[solution.children[s, action]] == (after if legal else rules.start())
            assert solution.rewards[s, action] == reward
            assert solution.action_values[s, action] == outcomes.get(action, -np.inf)


def test_count_games_of_tic_tac_toe(solution):
    counts = solver.count_games(solution)
    assert counts[0].tolist() == [131184, 46080, 77904]
    assert counts[0].sum() == 255168
    by_first_move = [tuple(counts[child].tolist()) for child in solution.children[0]]
    assert by_first_move == [CORNER, EDGE, CORNER, EDGE, CENTRE, EDGE, CORNER, EDGE, CORNER]


def test_symmetry_classes_are_the_orbits(tic_tac_toe, solution):
    """Two positions share a number if and only if a symmetry maps one to the other."""
    numbers = solver.symmetry_classes(tic_tac_toe, solution)
    boards = np.asarray(solution.states.board)
    turned = boards[:, tic_tac_toe.symmetries.cells].tolist()
    orbits = [min(map(tuple, boards)) for boards in turned]
    assert len(set(orbits)) == len(set(numbers.tolist())) == 765
    assert len(set(zip(orbits, numbers.tolist(), strict=True))) == 765
    assert set(numbers.tolist()) == set(range(765))


def solve(**changes):
    """Solves Nim with some fields changed."""
    with guard.sharing():
        return solver.solve(NIM._replace(**changes))


def test_a_game_that_exceeds_its_limits_is_not_enumerated():
    """The limits are one less than the true numbers, and the least possible."""
    long, many = "nim lasts longer than its max_plies, ", "nim has more positions than its most_po"
    assert_refused(
        (lambda: solver.solve(games.make("connect_four")), "connect_four has too many positions"),
        (lambda: solve(max_plies=6), f"{long}6: set max_plies to the length"),
        (lambda: solve(max_plies=1), f"{long}1"),
        (lambda: solve(most_positions=23), f"{many}sitions, 23, each counted"),
        (lambda: solve(most_positions=1), f"{many}sitions, 1, "),
    )
