"""The baseline plays the same game with the same network, and the measurements measure."""

import importlib.util
import shutil

import jax
import numpy as np
import pytest
from flax.traverse_util import flatten_dict, unflatten_dict

from azjax.network import NetworkConfig, make_network
from experiments.benchmark import __main__ as benchmark
from experiments.benchmark import speed, textbook
from experiments.benchmark.options import Options

SMALL = Options(speed=True, games=8, simulations=4, channels=4, blocks=1, repeats=1)
NAMES = {  # Of the baseline's layers, in the order of their making, and ours.
    **{f"Conv_{i}": name for i, name in enumerate(["stem", "block0_a", "block0_b"])},
    **{f"BatchNorm_{i}": f"{name}_norm" for i, name in enumerate(["stem", "block0_a", "block0_b"])},
    **{"Conv_3": "policy_conv", "BatchNorm_3": "policy_conv_norm"},
    **{"Conv_4": "value_conv", "BatchNorm_4": "value_conv_norm"},
}


def test_both_networks_compute_the_same(tic_tac_toe):
    """With the same weights: so neither side has less to do."""
    config = NetworkConfig(channels=4, blocks=1)
    network = make_network(config, tic_tac_toe)
    variables = network.init(jax.random.key(0))
    init, evaluate = textbook.make_network(4, 1)
    theirs = flatten_dict(init(jax.random.key(1)))
    ours = flatten_dict(variables)
    dense = {}
    for path in theirs:
        name = NAMES.get(path[1])
        if name is None:  # Dense layers are told apart by their shapes.
            shape = theirs[path].shape
            (match,) = [p for p in ours if p[1] in ("policy", "value_hidden", "value")
                        and p[-1] == path[-1] and ours[p].shape == shape]  # fmt: skip
            dense[path] = ours[match]
        else:
            dense[path] = ours[(path[0], name, *path[2:])]
    planes = jax.random.bernoulli(jax.random.key(2), 0.4, (16, 3, 3, 2))
    logits, values = evaluate(unflatten_dict(dense), planes)
    expected_logits, expected_values = network.infer(network.fold(variables), planes)
    np.testing.assert_allclose(logits, expected_logits, atol=1e-5)
    np.testing.assert_allclose(values, expected_values, atol=1e-5)
    assert len(jax.tree.leaves(variables["params"])) == len(
        [path for path in theirs if path[0] == "params"]
    )


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
def test_the_baseline_plays_whole_games(algorithm):
    init, evaluate = textbook.make_network(4, 1)
    search = textbook.make_search(algorithm, evaluate, 4)
    play = jax.jit(textbook.make_selfplay(search, 12))
    variables = init(jax.random.key(0))
    _, moves = play(variables, jax.random.key(1), textbook.init_games(jax.random.key(2), 8))
    ends = np.asarray(moves.terminated)
    assert ends.sum() >= 8 and set(np.unique(moves.reward)) <= {0.0, 1.0}
    assert (np.asarray(moves.reward)[~ends] == 0).all()
    np.testing.assert_allclose(moves.weights.sum(axis=-1), 1, atol=1e-5)
    taken = moves.observation.any(axis=-1).reshape(12, 8, 9)
    assert not np.asarray(moves.weights)[np.asarray(taken)].any()


def test_the_table_has_every_line(capsys):
    rows = speed.time_speed(SMALL)
    shown = capsys.readouterr().out
    for name in ("matrix product", "network", "search, puct", "self-play", "learner", "iteration"):
        assert any(name in row["name"] for row in rows)
    assert "textbook" in shown and all(row["ours"] > 0 for row in rows)
    compared = [row for row in rows if row["textbook"]]
    assert all(row["ratio"] == row["ours"] / row["textbook"] for row in compared)
    assert len(compared) >= 10


def test_useful_operations_are_those_of_the_taps_on_the_board():
    """Counted one by one, for one channel in and out of each convolution."""
    taps = sum(
        0 <= row + down < 3 and 0 <= column + right < 3
        for row in range(3) for column in range(3)
        for down in (-1, 0, 1) for right in (-1, 0, 1)
    )  # fmt: skip
    assert taps == 49
    layers = Options(speed=True, channels=1, blocks=2), Options(speed=True, channels=1, blocks=1)
    more, less = map(speed._useful_operations, layers)
    assert more - less == 2 * 2 * taps


def test_the_tree_is_as_large_as_said(tic_tac_toe):
    setup = speed._set_up(SMALL)
    assert 500 < speed._tree_bytes(setup) < 2000


def test_nothing_to_measure_is_refused(capsys):
    assert benchmark.main([]) == 2
    assert "nothing to measure: add --speed" in capsys.readouterr().err


@pytest.mark.parametrize(("flag", "package"), [("--speed", "pgx"), ("--explorer", "playwright")])
def test_what_is_missing_is_named_before_the_work(flag, package, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert benchmark.main([flag]) == 2
    assert f"pip install {package}" in capsys.readouterr().err.replace("'azjax[benchmark]'", "pgx")


def test_a_result_without_a_folder_is_refused_before_the_work(tmp_path, capsys):
    assert benchmark.main(["--arena", "--out", str(tmp_path / "nowhere" / "x.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err
