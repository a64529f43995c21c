"""The README's example runs as it stands."""

import pathlib
import re

import numpy as np

README = pathlib.Path(__file__).parent.parent / "README.md"


def test_the_ten_lines_step_and_search_4096_games():
    block = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert len(block.strip().splitlines()) <= 11
    found = {}
    exec(block, found)
    result, states, game = found["result"], found["states"], found["game"]
    assert result.action.shape == (4096,)
    assert result.action_weights.shape == (4096, game.num_actions)
    assert (abs(states.board).sum(axis=1) == 1).all()
    assert (np.asarray(states.board)[np.arange(4096), result.action] == 0).all()
