"""The examples run unchanged, and do what their pages say."""

import itertools
import runpy
import sys
import types

import jax
import numpy as np
import pytest

import azjax
import dots
from azjax import training
from azjax.games import solver
from azjax.games.check import check_game
from azjax.proof import verify
from azjax.training import step
from source import EXAMPLES, ROOT, only_trace


def names(name):
    """The names defined by an example, without running it as a program."""
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name=name)


def only_train(parts, **settings):
    """A training whose iteration is only traced."""
    _, metrics = only_trace(parts, training.init(parts, jax.random.key(0)))
    losses = {name: float(loss) for name, loss in metrics.losses.items()}
    return types.SimpleNamespace(metrics=[{"iteration": 1} | losses])


# `strength.py` trains with a callback that has its own tests.
@pytest.mark.parametrize("name", [path.stem for path in EXAMPLES if path.stem != "strength"])
def test_an_example_runs(name, tmp_path, monkeypatch, capsys):
    """Iterations of training are traced, which is a sixth of their time."""
    if name == "equinox_network":
        pytest.importorskip("equinox")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])  # Without the options of pytest.
    blunders = itertools.cycle([1, 0])  # No training takes more than two iterations.
    verdict = types.SimpleNamespace
    monkeypatch.setattr(verify, "verify_outputs", lambda *_: verdict(blunders=next(blunders)))
    monkeypatch.setattr(step, "iteration", only_trace)
    monkeypatch.setattr(azjax, "train", only_train, raising=False)
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out


def test_games_satisfy_the_contract_and_play_as_those_of_the_tests():
    """Every position of every game of dots and boxes, as one traversal of both games."""
    check_game(names("domineering")["make"](), num_games=4)
    ours, other = names("dots_and_boxes")["make"](), dots.make()
    check_game(ours, num_games=4)
    found, expected = solver.solve(ours), solver.solve(other)
    assert found.num_states == expected.num_states == ours.most_positions
    np.testing.assert_array_equal(found.values, expected.values)
    for left, right in zip(*map(jax.tree.leaves, (found.states, expected.states)), strict=True):
        np.testing.assert_array_equal(left, right)
    state = jax.device_get(ours.step(ours.init(), 3)[0])
    picture = ours.display.draw(state, values=np.linspace(0, 1, 12), last=3)
    lines = picture.element.findall("line")
    heat = [line for line in lines if line.get("class") == "az-heat"]
    assert (len(lines), len(heat)) == (12 + 11, 11)
    assert [line.get("stroke") for line in lines].count("#d55e00") == 1
