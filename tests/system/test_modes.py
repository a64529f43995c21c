"""JAX's 64-bit mode: nothing fails, and results keep their types.

The test runs this file as a program, because JAX caches index types of the first mode.
"""

import dataclasses
import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import jax
import numpy as np
import pytest

import azjax
from azjax import games, players, runs, training
from azjax.games.base import init_batch, write_types
from azjax.games.check import check_game
from azjax.networks import MLPConfig, ResNetConfig, make_network
from azjax.proof import verify_outputs
from azjax.runs import checkpoint, presets
from azjax.runs.config import make_parts
from azjax.search import ALGORITHMS, PUCT, UCT, make_search, paths, simulate
from azjax.search.evaluators import rollout_evaluator, uniform_evaluator
from experiments.lecture.persistent import PersistentConfig, make_persistent
from experiments.quantize import quantize
from small import conv
from trained import process_environment

HALF = "bfloat16"
MLP, PAPER = (presets.smoke(presets.get(name)) for name in ("mlp", "paper"))
TRAININGS = [
    dataclasses.replace(MLP, network=ResNetConfig(width=8, learning_dtype=HALF), game="hex_swap:3"),
    dataclasses.replace(
        PAPER,
        network=conv(width=4, blocks=1, evaluation_dtype=HALF),
        search=UCT(num_simulations=2),
    ),
]


def test_everything_works_in_64_bits():
    environment = os.environ | process_environment() | {"JAX_ENABLE_X64": "1"}
    command = [sys.executable, __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def trace(function, *args):
    """Traces a function, and checks that its results do not have 64 bits."""
    assert "64[" not in write_types(jax.eval_shape(function, *args))


def use_everything(folder):
    with pytest.raises(ValueError, match="in JAX's 64-bit mode, .*: turn jax_enable_x64 off"):
        games.make("pgx:tic_tac_toe")
    game, shipped, key = games.make("tic_tac_toe"), azjax.load("hex:4"), jax.random.key(0)
    check_game(shipped.game, num_games=2)
    trace(shipped.parts.evaluate, shipped.params, None, init_batch(shipped.game, 2))
    states, evaluate = init_batch(game, 2), uniform_evaluator(game)
    network = make_network(MLPConfig(hidden=(8,), head_hidden=8, symmetric=True), game)
    quantize(game, network, network.init(key), states)
    for algorithm in ALGORITHMS.values():
        for grow in (simulate.grow, paths.grow):
            search = make_search(algorithm(3), game, rollout_evaluator(game), grow)
            trace(functools.partial(search, None, temperature=1.0, add_noise=True), key, states)
    use_players(game, evaluate, key, states)
    mesh = training.make_mesh(jax.devices()[:1])
    for config in TRAININGS:
        parts = make_parts(config)
        state = training.abstract_state(parts, mesh)
        assert "64[" not in write_types(state)
        trace(functools.partial(training.iteration, parts), state)
    azjax.export(shipped, folder / "player.stablehlo", num_simulations=2, batch_size=1)
    parts = make_parts(MLP)
    runs.create_run(folder / "run", MLP)
    state, _ = training.make_iteration(parts, mesh)(training.make_state(parts, key, mesh))
    checkpoint.save(folder / "run", state, 0.0)
    restored = checkpoint.restore(folder / "run", parts, mesh)[0]
    jax.tree.map(np.testing.assert_array_equal, restored.learner, state.learner)
    small = azjax.load("tic_tac_toe")
    assert azjax.prove_seat(small, "second", folder, rounds=1).exploration.ply == 8
    assert azjax.verify(small, ()).decision_states == 4520


def use_players(game, evaluate, key, states):
    solution = azjax.solve(game)
    agents = [
        players.random_agent(game),
        players.perfect_agent(game, solution),
        players.network_agent(game, evaluate, None),
        players.search_agent(game, PUCT(num_simulations=2), evaluate),
        players.minimax_agent(game, 2),
        azjax.load("tic_tac_toe").agent,
    ]
    for agent in agents:
        trace(functools.partial(agent.act, agent.params), key, states)
    assert not azjax.play_match(game, *agents[:2], 4, key).deterministic
    learner = make_persistent(game, PersistentConfig(num_simulations=2))
    trace(learner.learn, key, states, learner.init_memory(2))
    outputs = evaluate(None, None, solution.decision_states)
    trace(lambda: verify_outputs(solution, *outputs))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        use_everything(pathlib.Path(temporary))
