"""The labelled positions of Connect Four are correct, and errors on them are counted."""

import jax
import numpy as np
import pytest

from azjax.games import connect_four
from azjax.games.base import ILLEGAL, Positions
from azjax.players.statistics import mean_proportion, proportion
from azjax.proof.verify import MEAN, ErrorCounts, count_errors, rates
from reference import Position
from reference import connect_four as rules

ENDGAMES, LEFT = 24, 7  # Empty cells of an endgame, at most.


@pytest.fixture(scope="module")
def positions():
    return connect_four.positions()


@pytest.fixture(scope="module")
def plies():
    """`int8 [S, 7]`, plies to the end of the game after each move."""
    with np.load(connect_four.POSITIONS) as file:
        return file["plies"]


def stones(positions):
    return np.count_nonzero(positions.states.board, axis=1)


def best(positions):
    return positions.outcomes.max(axis=1, keepdims=True)


def test_positions_differ_and_labels_agree(positions, plies):
    """The player to move wins after an odd number of plies; a draw fills the board."""
    boards = positions.states.board.reshape(-1, 6, 7)
    distinct = {min(board.tobytes(), board[:, ::-1].tobytes()) for board in boards}
    assert len(distinct) == len(boards)
    np.testing.assert_array_equal(positions.states.player, stones(positions) % 2)
    left = 42 - stones(positions)[:, None]
    for outcome, right in {
        1: (plies % 2 == 1) & (plies <= left),
        0: plies == left,
        -1: (plies % 2 == 0) & (plies <= left) & (plies > 0),
        ILLEGAL: plies == 0,
    }.items():
        assert right[positions.outcomes == outcome].all()


def solve(position):
    """Returns `{action: (outcome, plies)}` for the player to move, by plain recursion."""
    found = {}
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        found[action] = (reward, 1)
        if not after.over:
            outcome, plies = max(solve(after).values(), key=lambda x: (x[0], -x[0] * x[1]))
            found[action] = (-outcome, plies + 1)
    return found


def test_recursion_finds_the_labels_of_endgames(positions, plies):
    able = np.flatnonzero(stones(positions) >= 42 - LEFT)
    for row in np.random.default_rng(0).choice(able, ENDGAMES, replace=False):
        board, player = positions.states.board[row], positions.states.player[row]
        found = solve(Position(tuple(board.tolist()), int(player), False))
        outcomes = positions.outcomes[row].tolist()
        assert [found.get(a, (ILLEGAL, 0))[0] for a in range(7)] == outcomes
        assert [found.get(a, (0, 0))[1] for a in range(7)] == plies[row].tolist()


# Errors.


def count(positions, scores, values):
    return jax.device_get(count_errors(positions, scores, values))


def test_errors_are_counted_by_class(positions):
    """Against loops over the positions of each class."""
    rng = np.random.default_rng(1)
    some = np.random.default_rng(0).choice(len(positions.outcomes), 700, replace=False)
    outcomes, class_of = positions.outcomes[some], positions.class_of[some]
    few = Positions((), outcomes, positions.classes, class_of, positions.apart)
    scores = rng.normal(size=outcomes.shape).astype(np.float32)
    values = rng.normal(size=len(some)).astype(np.float32)
    values[:60:2], values[1:60:2] = np.nan, 0
    expected = np.zeros((6, len(positions.classes)), int)
    for row, (labels, score, value) in enumerate(zip(outcomes, scores, values, strict=True)):
        legal = [action for action in range(7) if labels[action] != ILLEGAL]
        best = max(labels[legal])
        chosen = labels[max(legal, key=lambda action, score=score: score[action])]
        one = [*labels[legal]].count(best) == 1
        flags = [True, chosen < best, one, one and chosen < best, best != 0]
        expected[:, class_of[row]] += [*flags, best != 0 and not value * best > 0]
    found = count(few, scores, values)
    np.testing.assert_array_equal(np.stack(found), expected)
    assert expected.any(axis=1).all() and len({*map(tuple, expected.tolist())}) == 6


def test_rates_are_shares_with_intervals():
    positions = Positions((), np.zeros((1, 1)), ("a", "b", "c"), np.zeros(1), apart=("c",))
    numbers = [9, 4, 5], [3, 1, 5], [0, 2, 1], [0, 1, 0], [0, 0, 1], [0, 0, 0]
    found = rates(positions, ErrorCounts(*map(np.array, numbers)))
    expected = {"a": (3, 9), "b": (1, 4), "c": (5, 5)}
    mean = mean_proportion([3, 1], [9, 4])
    assert found.errors == {n: proportion(*x) for n, x in expected.items()} | {MEAN: mean}
    assert found.decisive_errors == {
        "b": proportion(1, 2),
        "c": proportion(0, 1),
        MEAN: mean_proportion([1], [2]),
    }
    assert found.sign_errors == {"c": proportion(0, 1)}  # No mean without positions.
