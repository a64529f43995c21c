"""The arrays of the solver against known counts and against a plain recursion."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
import misere_pile
from azjax import games
from azjax.games import solver
from nim import NIM
from reference import Position, minimax
from reference import misere_pile as misere_pile_rules
from reference import nim as nim_rules
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


def test_decision_states_are_those_that_are_not_over(solution):
    np.testing.assert_array_equal(solution.decisions, np.flatnonzero(~solution.over))
    decisions = solution.decision_states
    np.testing.assert_array_equal(decisions.board, solution.states.board[~solution.over])
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(solution))


def test_count_games_of_tic_tac_toe(solution):
    counts = solver.count_games(solution)
    assert counts[0].tolist() == [131184, 46080, 77904]
    assert counts[0].sum() == 255168
    by_first_move = [tuple(counts[child].tolist()) for child in solution.children[0]]
    assert by_first_move == [CORNER, EDGE, CORNER, EDGE, CENTRE, EDGE, CORNER, EDGE, CORNER]


def test_count_games_equals_the_reference(solved):
    solution, rules = solved
    expected = [minimax.count_games(rules, position) for position in positions(solution)]
    np.testing.assert_array_equal(solver.count_games(solution), expected)


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


def test_an_endless_game_is_stopped_after_max_plies():
    steps = []

    def step(state, action):
        jax.debug.callback(lambda: steps.append(1))
        return jnp.stack([state[0], state[1] + 1]), jnp.float32(0)

    with pytest.raises(ValueError, match="nim lasts longer than its max_plies, 3"):
        solve(step=step, is_over=lambda state: state[0] < 0, max_plies=3)
    jax.effects_barrier()
    assert 0 < len(steps) <= 4 * solver._CHUNK * NIM.num_actions


def test_a_game_may_reach_its_limits():
    solution = solve(most_positions=24)
    assert solution.num_states == 24 and len(solution.layers) == NIM.max_plies + 2
    counts = solver.count_games(solution)
    for row, position in enumerate(map(tuple, solution.states.tolist())):
        at = Position(position[:1], position[1] % 2, not position[0])
        assert solution.values[row] == minimax.value(nim_rules, at)
        assert counts[row].tolist() == [*minimax.count_games(nim_rules, at)]
    classes = solver.symmetry_classes(NIM, solution)
    assert len(set(classes.tolist())) == solution.num_states


def test_the_memory_of_a_solution_is_estimated(tic_tac_toe, solution, pile_solution):
    """It is proportional to the bound on the positions, and exact per position."""
    for game, solved in ((tic_tac_toe, solution), (misere_pile.make(), pile_solution)):
        taken = sum(leaf.nbytes for leaf in jax.tree.leaves(solved)) - solved.layers.nbytes
        over = 4 * (solved.num_states - len(solved.decisions))  # Finished games have no decision.
        found, rest = divmod(taken + over, solved.num_states)
        assert game.most_positions >= solved.num_states
        assert (found * game.most_positions, rest) == (solver.most_bytes(game), 0)
