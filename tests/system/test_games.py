"""Games against published numbers and those of pgx."""

import itertools

import jax
import numpy as np
import pytest

from azjax import games
from azjax.games import solver
from azjax.games.check import check_game
from azjax.games.rows import in_batches
from azjax.games.tic_tac_toe import from_board
from reference import Position, minimax
from reference import tic_tac_toe as tic_tac_toe_rules
from side_by_side import assert_same_rules


def test_from_board_accepts_exactly_the_reachable_boards():
    reachable = {p.board: p for p in set().union(*minimax.reachable(tic_tac_toe_rules))}
    assert len(reachable) == 5478
    for board in itertools.product((-1, 0, 1), repeat=9):
        if board in reachable:
            state = jax.device_get(from_board(board))
            found = Position(tuple(state.board.tolist()), int(state.player), bool(state.over))
            assert found == reachable[board]
        else:
            with pytest.raises(ValueError):
                from_board(board)


def test_othello_has_the_published_numbers_of_games():
    """Perft numbers, passes included."""
    game = games.make("othello")
    legal_actions = jax.jit(jax.vmap(game.legal_actions))
    step = jax.jit(jax.vmap(lambda state, action: game.step(state, action)[0]))
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init())
    for expected in (4, 12, 56, 244, 1396, 8200):
        parents, actions = np.nonzero(in_batches(legal_actions, (states,), 1024))
        assert len(actions) == expected
        before = jax.tree.map(lambda leaf, parents=parents: leaf[parents], states)
        states = in_batches(step, (before, actions), 1024)


@pytest.mark.parametrize(("name", "value"), [("hex:3", 1), ("othello:4", -1)])
def test_games_have_the_published_values(name, value):
    game = games.make(name)
    solution = solver.solve(game)
    assert solution.num_states <= game.most_positions
    assert solution.values[0] == value  # Of the start, for the first player.
    assert (solution.values[solution.decisions] != 0).all() == (name != "othello:4")


def test_games_satisfy_the_contract():
    ours = "connect_four:3x5", "hex:3", "breakthrough:5x3", "mnk:1x4x2", "othello:4"
    for name in (*ours, "pgx:go_3x3"):
        check_game(games.make(name), num_games=16)


# Games of pgx have the rules and pictures of ours.

SAME = {"connect_four": "connect_four", "othello": "othello", "hex": "hex_swap"}


@pytest.mark.parametrize("name", SAME)
def test_games_of_both_libraries_have_the_same_rules(name):
    assert_same_rules(name, SAME[name])
