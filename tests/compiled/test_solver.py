"""The arrays of the solver against known counts and against a plain recursion."""

import itertools

import numpy as np

import guard
import misere_pile
from azjax import games
from azjax.games import solver
from nim import NIM
from reference import Position, minimax
from reference import misere_pile as rules
from refusals import assert_refused

CORNER, EDGE, CENTRE = (14652, 5184, 7896), (14232, 5184, 10176), (15648, 4608, 5616)


def test_tic_tac_toe_has_the_known_counts(tic_tac_toe, solution):
    """Of positions, of games by first move, and of classes of symmetric positions."""
    counts = solution.num_states, solution.over.sum(), len(solution.decisions)
    assert counts == (5478, 958, 4520) and solution.values[0] == 0
    assert np.diff(solution.layers).tolist() == [1, 9, 72, 252, 756, 1260, 1520, 1140, 390, 78]
    ends = solver.count_games(solution)
    assert ends[0].tolist() == [131184, 46080, 77904]
    by_first_move = [tuple(ends[child].tolist()) for child in solution.children[0]]
    assert by_first_move == [CORNER, EDGE, CORNER, EDGE, CENTRE, EDGE, CORNER, EDGE, CORNER]
    numbers = solver.symmetry_classes(tic_tac_toe, solution).tolist()
    turned = np.asarray(solution.states.board)[:, tic_tac_toe.symmetries.cells].tolist()
    orbits = [min(map(tuple, boards)) for boards in turned]
    assert {*numbers} == {*range(765)} and len({*orbits}) == 765
    assert len({*zip(orbits, numbers, strict=True)}) == 765


def test_solution_equals_the_reference():
    with guard.sharing():
        solution = solver.solve(misere_pile.make())
    boards, players, overs = (np.asarray(leaf).tolist() for leaf in solution.states)
    listed = [Position(tuple(b), p, o) for b, p, o in zip(boards, players, overs, strict=True)]
    plies = [listed[start:end] for start, end in itertools.pairwise(solution.layers)]
    assert [set(ply) for ply in plies] == minimax.reachable(rules)
    assert sum(map(len, map(set, plies))) == len(listed) and listed[0] == rules.start()
    for s, position in enumerate(listed):
        outcomes = minimax.action_values(rules, position)
        best = [action for action in outcomes if outcomes[action] == max(outcomes.values())]
        assert (solution.player[s], solution.over[s]) == position[1:]
        assert solution.values[s] == minimax.value(rules, position)
        assert np.flatnonzero(solution.legal[s]).tolist() == list(outcomes)
        assert np.flatnonzero(solution.optimal[s]).tolist() == best
        for action in range(solution.legal.shape[1]):
            after, reward = rules.play(position, action)
            after = after if action in outcomes else rules.start()
            assert listed[solution.children[s, action]] == after
            assert solution.rewards[s, action] == reward
            assert solution.action_values[s, action] == outcomes.get(action, -np.inf)


def test_a_game_that_exceeds_its_limits_is_not_enumerated():
    """The limits are one less than the true numbers."""

    def solve(**changes):
        with guard.sharing():
            return solver.solve(NIM._replace(**changes))

    def count():
        with guard.sharing():
            return solver.count_games(solver.solve(games.make("nim:65")))

    assert_refused(
        (count, "there are too many games to count them in 64 bits"),
        (lambda: solver.solve(games.make("connect_four")), "connect_four has too many positions"),
        (lambda: solve(most_positions=None), "nim has no bound on its number of positions (most_"),
        (lambda: solve(max_plies=6), "nim lasts longer than its max_plies, 6: set max_plies to"),
        (lambda: solve(most_positions=23), "nim has more positions than its most_positions, 23,"),
    )
