"""JAX's 64-bit mode: nothing fails, and results keep their types."""

import dataclasses
import functools
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

import azjax
from azjax import games, players, runs, training
from azjax.games import check
from azjax.games.base import describe, init_batch
from azjax.networks import MLPConfig, ResNetConfig, make_network
from azjax.players import arena
from azjax.proof.verify import verify
from azjax.runs import checkpoint, presets
from azjax.runs.config import make_parts
from azjax.search import ALGORITHMS, PUCT, UCT, make_search
from azjax.search.evaluators import rollout_evaluator, uniform_evaluator
from experiments.lecture.persistent import PersistentConfig, make_persistent
from experiments.quantize import quantize
from small import conv

X64 = jax.config.jax_enable_x64  # In a process that was started with it.
HALF = "bfloat16"
MLP, PAPER = (presets.smoke(presets.get(name)) for name in ("mlp", "paper"))
GAME = games.make("tic_tac_toe")
TRAININGS = [
    presets.smoke(presets.get("enumerable")),
    dataclasses.replace(MLP, network=MLPConfig(hidden=(8,), learning_dtype=HALF), game="othello:4"),
    dataclasses.replace(MLP, network=ResNetConfig(width=8, learning_dtype=HALF), game="hex_swap:3"),
    dataclasses.replace(
        PAPER,
        network=conv(width=4, blocks=1, evaluation_dtype=HALF),
        search=UCT(num_simulations=2),
    ),
]


@pytest.fixture(autouse=True)
def only_in_64_bits(request):
    if request.function is not test_everything_works_in_64_bits and not X64:
        pytest.skip("for the process that the first test starts")


def test_everything_works_in_64_bits():
    """In a separate process, since JAX caches index types of the first mode."""
    if X64:
        return
    command = [sys.executable, "-m", "pytest", "-q", __file__]
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environment |= {"JAX_ENABLE_X64": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def trace(function, *args):
    """Traces a function, and checks that its results do not have 64 bits."""
    shapes = jax.eval_shape(function, *args)
    assert "64[" not in describe(shapes)
    return shapes


def test_games_of_pgx():
    pytest.importorskip("pgx")
    with pytest.raises(ValueError, match="in JAX's 64-bit mode, .*: turn jax_enable_x64 off"):
        games.make("pgx:tic_tac_toe")


def use_games(player, folder):
    check.check_game(player.game, num_games=2)


def use_networks(player, folder):
    states = init_batch(player.game, 2)
    trace(player.parts.evaluate, player.params, None, states)
    network = make_network(MLPConfig(hidden=(8,), head_hidden=4, symmetric=True), player.game)
    quantize(player.game, network, network.init(jax.random.key(0)), states)


def use_search(player, folder):
    states, key, evaluate = init_batch(GAME, 2), jax.random.key(0), rollout_evaluator(GAME)
    for algorithm in ALGORITHMS.values():
        search = make_search(algorithm(num_simulations=3), GAME, evaluate, "mctx")
        trace(functools.partial(search, None, temperature=1.0, add_noise=True), key, states)


def use_players(player, folder):
    solution, evaluate = azjax.solve(GAME), uniform_evaluator(GAME)
    agents = [
        players.random_agent(GAME),
        players.perfect_agent(GAME, solution),
        players.network_agent(GAME, evaluate, None),
        players.search_agent(GAME, PUCT(num_simulations=2), evaluate),
        players.minimax_agent(GAME, 2),
        players.minimax_agent(GAME, 2, prune=True),
        azjax.load("tic_tac_toe").agent,
    ]
    states, key = init_batch(GAME, 2), jax.random.key(0)
    for agent in agents:
        trace(functools.partial(agent.act, agent.params), key, states)
    learner = make_persistent(GAME, PersistentConfig(num_simulations=2))
    trace(learner.learn, key, states, learner.init_memory(2))
    trace(lambda: verify(solution, functools.partial(evaluate, None, None)))
    assert not arena.play_match(GAME, *agents[:2], 4, key).deterministic


def use_training(player, folder):
    mesh = training.make_mesh(jax.devices()[:1])
    for config in TRAININGS[2:]:
        parts = make_parts(config)
        state = training.abstract_state(parts, mesh)
        assert "64[" not in describe(state)
        trace(functools.partial(training.iteration, parts), state)


def use_runs(player, folder):
    azjax.export(player, folder / "player.stablehlo", num_simulations=2, batch_size=1)
    parts, mesh = make_parts(MLP), training.make_mesh(jax.devices()[:1])
    runs.create_run(folder / "run", MLP)
    state = training.make_state(parts, jax.random.key(0), mesh)
    state, _ = training.make_iteration(parts, mesh)(state)
    checkpoint.save(folder / "run", state, 0.0)
    restored = checkpoint.restore(folder / "run", parts, mesh)[0]
    jax.tree.map(np.testing.assert_array_equal, restored.learner, state.learner)


def use_exact(player, folder):
    small = azjax.load("tic_tac_toe")
    assert azjax.prove_seat(small, "second", folder, rounds=1).exploration.ply == 8


def use_proof(player, folder):
    assert azjax.verify(azjax.load("tic_tac_toe"), ()).decision_states == 4520


USES = {"games": use_games, "networks": use_networks, "search": use_search}
USES |= {"players": use_players, "training": use_training, "runs": use_runs}
USES |= {"exact": use_exact, "proof": use_proof}


@pytest.mark.parametrize("package", USES)
def test_a_package_works(package, tmp_path):
    """A new package needs a function of its own."""
    folders = {path.parent.name for path in pathlib.Path(azjax.__file__).parent.glob("*/*.py")}
    assert {*USES} == folders - {"cli", "viz"}  # They call the others.
    USES[package](azjax.load("hex:4"), tmp_path)
