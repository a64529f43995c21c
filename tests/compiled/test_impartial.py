"""Nim and Chomp against their theories, in plain Python."""

import functools

import numpy as np
import pytest

from azjax import games
from azjax.games import nim, solver
from azjax.games.base import ILLEGAL
from azjax.games.check import check_game
from refusals import assert_refused


@functools.cache
def wins(heights):
    """Whether the player to move wins Chomp; a column has as many squares as its height."""
    rows = [row for column, height in enumerate(heights) for row in [(column, height)]]
    moves = [(column, left) for column, height in rows for left in range(height)]
    after = [
        heights[:column] + tuple(min(height, left) for height in heights[column:])
        for column, left in moves
        if (column, left) != (0, 0)  # The poisoned square.
    ]
    return any(not wins(left) for left in after)


@pytest.mark.compiles(1)
def test_nim_has_the_values_of_its_theory():
    game = games.make("nim:1x3x5")
    solution = solver.solve(game)
    assert solution.num_states == game.most_positions
    heaps = solution.states.heaps
    balance = np.bitwise_xor.reduce(heaps, axis=1)
    rows = solution.decisions
    assert (solution.values[rows] == np.where(balance[rows] == 0, -1, 1)).all()
    winning = solution.optimal & (solution.values == 1)[:, None]
    assert (balance[solution.children[winning]] == 0).all()
    sizes = (heaps[:, None] != heaps[solution.children]).sum(axis=2)
    assert (sizes[solution.legal] == 1).all()  # A move changes one heap.
    assert solution.legal.sum(axis=1).tolist() == heaps.sum(axis=1).tolist()
    labels = nim.label((1, 3, 5))
    row_of = {tuple(each): row for row, each in enumerate(heaps.tolist())}
    found = [row_of[tuple(each)] for each in labels.states.heaps.tolist()]
    assert len(found) == 2 * 4 * 6 - 4  # All but four, which have fewer than two moves.
    values = np.where(solution.legal, solution.action_values, ILLEGAL)[found]
    np.testing.assert_array_equal(labels.outcomes, values)


def test_games_whose_values_would_fill_the_memory_are_neither_solved_nor_labeled():
    many = games.make("nim:3x3x3x3x3x3x3x3x3x3x3x3x3x3x3x3x3x3x3x3")
    assert many.positions is None and not many.enumerable
    assert games.make("nim:1x3x5x7x9").enumerable
    assert games.make("nim:1x3x5x7x9x11x13").positions is not None
    large, small = games.make("chomp:10x10"), games.make("chomp:8x8")
    assert large.most_positions < 20_000_000 and not large.enumerable and small.enumerable


@pytest.mark.compiles(1)
@pytest.mark.parametrize("name", ["chomp:3x3", "chomp:2x5"])
def test_chomp_has_the_values_of_its_theory(name):
    game = games.make(name)
    solution = solver.solve(game)
    boards = np.reshape(solution.states.board, (-1, *game.board_shape))
    heights = boards.sum(axis=1)
    for row in solution.decisions:
        assert (solution.values[row] == 1) == wins(tuple(heights[row].tolist()))
    assert solution.num_states <= game.most_positions
    if game.num_symmetries == 2:
        assert game.symmetries.cells[1].tolist() == [0, 3, 6, 1, 4, 7, 2, 5, 8]


@pytest.mark.compiles(6)
def test_small_games_satisfy_the_contract():
    """With Breakthrough, whose symmetries are not those of cells."""
    for name in ("nim", "chomp:2x3", "breakthrough:4x2"):
        check_game(games.make(name), num_games=4)


def test_planes_are_the_heaps():
    game = games.make("nim:1x3x5")
    state = game.step(game.init(), 1 + 3)[0]  # One stone of the third heap.
    assert game.observe(state, "relative").sum(axis=(0, 2)).tolist() == [1, 3, 4]
    digits = np.asarray(game.observe(state, "binary")[0])
    assert (digits @ [1, 2, 4]).tolist() == [1, 3, 4]
    assert game.display.name_actions(state)[4] == "c1"
    assert games.make("nim") is games.make("nim:3x4x5")


def test_sizes_that_make_no_game_are_refused():
    assert_refused(
        (lambda: games.make("nim:0x2"), "1 or more stones a heap"),
        (lambda: games.make("nim:100x100"), "127 in all"),
        (lambda: games.make("chomp:1x1"), "use 1 to 32 rows and 2 to 32 columns"),
        (lambda: games.make("chomp:33x2"), "use 1 to 32 rows"),
    )
