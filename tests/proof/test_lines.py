"""Lines are replayed according to the rules."""

import re

import jax
import numpy as np
import pytest

from azjax.games.base import init_batch
from azjax.proof import lines


@pytest.mark.parametrize("line", [(4, 4), (0, 3, 1, 4, 2, 5), (4, 9), (4, -1)])
def test_only_legal_moves_are_replayed(tic_tac_toe, line):
    said = rf"the action {line[-1]} is illegal in tic_tac_toe after the actions {[*line[:-1]]}: use"
    with pytest.raises(ValueError, match=re.escape(said)):
        lines.replay(tic_tac_toe, [(), (4,), line])
    with pytest.raises(ValueError, match="a line of tic_tac_toe has 10 moves: use 9 at most"):
        lines.replay(tic_tac_toe, [tuple(range(10))])
    assert lines.replay(tic_tac_toe, []).board.shape == (0, 9)


def test_lines_lead_to_their_positions(tic_tac_toe):
    found = lines.replay(tic_tac_toe, [(), (4,), (4, 0, 8)])
    start = jax.device_get(init_batch(tic_tac_toe, 3))
    assert jax.tree.map(np.shape, found) == jax.tree.map(np.shape, start)
    assert found.board.tolist() == [[0] * 9, [0] * 4 + [1] + [0] * 4, [-1, 0, 0, 0, 1, 0, 0, 0, 1]]
    assert found.player.tolist() == [0, 1, 1]
