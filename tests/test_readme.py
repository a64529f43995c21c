"""The README's example runs as it stands."""

import pathlib
import re

import numpy as np

README = pathlib.Path(__file__).parent.parent / "README.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_ten_lines_step_and_search_4096_games():
    block = blocks()[0]
    assert len(block.strip().splitlines()) <= 11
    found = {}
    exec(block, found)
    result, states, game = found["result"], found["states"], found["game"]
    assert result.action.shape == (4096,)
    assert result.action_weights.shape == (4096, game.num_actions)
    assert (abs(states.board).sum(axis=1) == 1).all()
    assert (np.asarray(states.board)[np.arange(4096), result.action] == 0).all()


def test_the_lines_on_traces_and_trees_go_on_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(blocks()[0], found)
    (block,) = [block for block in blocks() if "draw_tree" in block]
    exec(block, found)
    assert found["trace"](found["config"], found["result"].tree).simulations[7].path[0] == 0
    assert (tmp_path / "tree.svg").read_text().startswith("<svg")
