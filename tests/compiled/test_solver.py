"""Solutions against known counts, theories and a plain recursion; rows of bytes and hashes."""

import itertools

import jax
import numpy as np
import pytest

import guard
from azjax import games
from azjax.games import hashing, rows, solver
from misere_pile import NIM
from pairs import pair
from reference import minimax
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


@pytest.mark.parametrize(
    ("name", "states", "decisions"),
    [
        ("misere_pile", 20, 12),
        ("dice_pile", 90, 42),
        ("race", 486, 125),
        ("einstein:3", 145_597, 92_892),
    ],
)
def test_solution_equals_the_reference(name, states, decisions):
    game, rules = pair(name)[:2]
    with guard.sharing():
        solution = solver.solve(game)
    assert (solution.num_states, len(solution.decisions)) == (states, decisions)
    assert states <= game.most_positions and len(solution.layers) - 2 <= game.max_plies
    listed, decides = pair(name).positions(solution.states), {*solution.decisions.tolist()}
    plies = np.repeat(np.arange(len(solution.layers) - 1), np.diff(solution.layers))
    assert len({*zip(listed, plies, strict=True)}) == states and listed[0] == rules.start()
    for s in range(0, states, 1 + states // 3000):
        position, legal = listed[s], np.flatnonzero(solution.legal[s])
        outcomes = minimax.action_values(rules, position)
        best = [action for action in outcomes if outcomes[action] == max(outcomes.values())]
        assert (solution.player[s], solution.over[s]) == position[1:]
        assert legal.tolist() == [*outcomes]
        assert solution.values[s] == pytest.approx(float(minimax.value(rules, position)), abs=1e-6)
        assert (s in decides) == (not position.over and not rules.chance(position))
        assert s not in decides or np.flatnonzero(solution.optimal[s]).tolist() == best
        expected = [float(outcomes.get(action, -np.inf)) for action in range(game.num_actions)]
        np.testing.assert_allclose(solution.action_values[s], expected, atol=1e-6)
        assert (plies[solution.children[s, legal]] == plies[s] + 1).all()
        for action, child in enumerate(solution.children[s]):
            after, reward = rules.play(position, action)
            assert listed[child] == (after if action in outcomes else rules.start())
            assert solution.rewards[s, action] == reward


def test_a_game_that_exceeds_its_limits_is_not_enumerated():
    """The limits are one less than the true numbers."""

    def solve(**changes):
        with guard.sharing():
            return solver.solve(NIM._replace(**changes))

    assert_refused(
        (lambda: solver.solve(games.make("connect_four")), "connect_four has too many positions"),
        (lambda: solve(most_positions=None), "nim has no bound on its number of positions (most_"),
        (lambda: solve(max_plies=6), "nim lasts longer than its max_plies, 6: set max_plies to"),
        (lambda: solve(most_positions=23), "nim has more positions than its most_positions, 23,"),
        (lambda: games.make("breakthrough:4x1"), "use 4 to 32 rows and 2 to 32 columns"),
        (lambda: games.make("breakthrough:33x2"), "use 4 to 32 rows"),
    )


# Rows of bytes and hashes.


@pytest.mark.parametrize("collide", [False, True])
def test_equal_rows_are_neighbors_and_keep_their_order(collide, monkeypatch):
    if collide:
        monkeypatch.setattr(rows, "_hash", lambda words: words[0] % 2)
    given = np.random.default_rng(0).integers(0, 3, (500, 9)).astype(np.uint8) // 2
    order, first, hashes = rows.group_equal(given)
    groups, listed = np.split(order, first[1:]), [tuple(row) for row in given.tolist()]
    assert sorted(order) == list(range(500))
    assert all((np.diff(group) > 0).all() for group in groups)
    assert [len({listed[row] for row in group}) for group in groups] == [1] * len({*listed})
    assert (hashes == rows.hashes(given[order[first]])).all() and (np.diff(hashes) >= 0).all()
    leaders, which = rows.distinct(given)
    assert leaders.tolist() == sorted({listed.index(row) for row in listed})
    assert [listed[row] for row in leaders[which]] == listed


@pytest.mark.parametrize("count", [0, 3, 4, 5])
def test_any_number_of_rows_is_processed_in_batches(count):
    """The results of an empty batch have their shapes and types."""
    given, shapes = np.arange(2 * count, dtype=np.int8).reshape(count, 2), []

    def function(x, y):
        shapes.append(x.shape)
        return x.sum(axis=1), y[:, None]

    sums, columns = rows.in_batches(function, (given, np.arange(count)), 4)
    assert shapes == [(4, 2)] * max(-(-count // 4), 1)
    assert sums.tolist() == given.sum(axis=1).tolist()
    assert columns.tolist() == [[row] for row in range(count)]


@pytest.mark.parametrize("coarse", [False, True])
def test_a_state_that_is_listed_twice_is_found(coarse, monkeypatch, some_states):
    """Also if many positions share half a hash."""
    weigh, calls = hashing.weigh, itertools.count()

    def weigh_coarsely(numbers, weights):  # The first of every two calls has few hashes.
        return weigh(numbers, weights) >> np.uint32(28 * (next(calls) % 2 == 0))

    if coarse:
        monkeypatch.setattr(hashing, "weigh", weigh_coarsely)
    among = jax.tree.map(lambda leaf: np.concatenate([leaf[:3], leaf[2::-1], leaf]), some_states)
    found = hashing.make_index(among)(some_states)
    np.testing.assert_array_equal(among.board[found], some_states.board)
    floats = np.float32([[0.25], [0.75], [-0.25], [-0.75]])  # All are 0 as integers.
    assert hashing.make_index(floats)(floats[::-1]).tolist() == [3, 2, 1, 0]


def test_games_whose_values_would_fill_the_memory_are_not_solved(tic_tac_toe):
    many = tic_tac_toe._replace(most_positions=10_000_000)
    few, large = (many._replace(num_actions=number) for number in (20, 100))
    assert few.enumerable and not large.enumerable
