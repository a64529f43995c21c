"""Illegal moves of a player, and positions without legal moves."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from azjax.exact import exhaustive, lines
from bad_players import equivariant, highest, lowest, make_act, pair
from nim import NIM


def explore_all(game, act, seat, folder, **settings):
    *_, last = exhaustive.explore(game, act, seat, folder, **settings)
    return last


BAD_MOVES = {"occupied": 4, "too high": 9, "too low": -1, "no number": np.nan, "half": 0.5}


@pytest.mark.parametrize("bad", BAD_MOVES)
def test_an_illegal_move_of_the_player_is_refused(tic_tac_toe, bad, tmp_path):
    act, moved = make_act(pair("tic_tac_toe"), highest), BAD_MOVES[bad]

    def cheat(states):
        return np.where((states.board != 0).sum(axis=1) == 3, moved, act(states) + 0.0)

    said = (
        rf"the player's action {moved:.1f} is illegal after the actions "
        r"\[4, 0, 8\]: \[1, 2, 3, 5, 6, 7\] are legal there"
    )
    with pytest.raises(ValueError, match=said):
        explore_all(tic_tac_toe, cheat, 1, tmp_path / "lines", starts=((4, 0, 8),))


def test_an_illegal_move_is_reported_with_its_own_position(tmp_path):
    """The other positions of the ply are those of the opponent."""
    act = make_act(pair("nim"), lowest)

    def cheat(states):
        return np.where(states[:, 0] == 3, 9, act(states))

    said = r"the player's action 9 is illegal after the actions \[2, 0\]: \[0, 1, 2\] are legal"
    with pytest.raises(ValueError, match=said):
        explore_all(NIM, cheat, 0, tmp_path, starts=((1,), (2,), (0, 0), (2, 0)))


@pytest.mark.parametrize(
    ("answer", "shape"), [(0, r"\(\)"), ([[0]], r"\(1, 1\)"), ([0, 0], r"\(2,\)")]
)
def test_a_player_must_return_one_action_for_each_position(answer, shape, tmp_path):
    said = (
        f"the player returns actions of shape {shape} for 1 positions: return one action for each"
    )
    with pytest.raises(ValueError, match=said):
        explore_all(NIM, lambda states: np.array(answer), 0, tmp_path)


def test_an_illegal_move_in_a_symmetric_copy_is_refused(tic_tac_toe, tmp_path):
    """The player is called on all copies if they are compared."""
    images, act = tic_tac_toe.symmetries.actions, make_act(pair("tic_tac_toe"), equivariant)
    line = (0, 4, 1)
    for image in images[1:]:
        copy = tuple(image[[*line]].tolist())
        [board] = lines.replay(tic_tac_toe, [copy]).board

        def cheat(states, board=board, taken=copy[1]):
            return np.where((states.board == board).all(axis=1), taken, act(states))

        said = rf"action {copy[1]} is illegal after the actions {re.escape(str([*copy]))}: "
        settings = {"symmetric": True, "compare": True, "starts": (line,)}
        with pytest.raises(ValueError, match=said):
            explore_all(tic_tac_toe, cheat, 1, tmp_path / str(copy), **settings)


def test_a_position_without_a_legal_move_that_is_not_over_is_refused(tmp_path):
    stuck = NIM._replace(legal_actions=lambda state: (jnp.arange(3) < state[0]) & (state[0] != 4))
    for seat in (0, 1):
        said = r"nim has no legal move after the actions \[2\], and is not over there: correct"
        with pytest.raises(ValueError, match=said):
            explore_all(stuck, make_act(pair("nim"), highest), seat, tmp_path / str(seat))
