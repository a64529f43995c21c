"""JAX's 64-bit mode: nothing fails, and results keep their types."""

import dataclasses
import functools
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import azjax
from azjax import games, players, runs, training
from azjax.games import check
from azjax.games.base import describe, init_batch
from azjax.networks import MLPConfig, ResNetConfig
from azjax.players import arena
from azjax.proof.verify import verify
from azjax.runs import checkpoint, presets
from azjax.runs.config import make_parts
from azjax.search import ALGORITHMS, PUCT, UCT, MctxGumbel, MctxMuZero, make_search
from azjax.search.evaluators import rollout_evaluator, uniform_evaluator
from experiments.lecture.persistent import PersistentConfig, make_persistent
from small import conv

SMOKE = {name: presets.smoke(preset) for name, preset in presets.PRESETS.items()}
HALF = "bfloat16"
TRAININGS = [
    *SMOKE.values(),
    dataclasses.replace(
        SMOKE["mlp"], network=MLPConfig(hidden=(8,), learning_dtype=HALF), game="othello:4"
    ),
    dataclasses.replace(
        SMOKE["mlp"], network=ResNetConfig(width=8, learning_dtype=HALF), game="hex_swap:3"
    ),
    dataclasses.replace(
        SMOKE["paper"],
        network=conv(width=4, blocks=1, evaluation_dtype=HALF),
        search=UCT(num_simulations=2),
    ),
]


@pytest.fixture(autouse=True)
def only_in_64_bits(request):
    if request.function is not test_everything_works_in_64_bits and not jax.config.jax_enable_x64:
        pytest.skip("for the process that the first test starts")


def test_everything_works_in_64_bits():
    """In a separate process, since JAX caches index types of the first mode."""
    if jax.config.jax_enable_x64:
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


@pytest.mark.parametrize("engine", ["azjax", "mctx"])
def test_searches(engine, tic_tac_toe):
    states, key = init_batch(tic_tac_toe, 2), jax.random.key(0)
    for algorithm in [*ALGORITHMS.values(), MctxMuZero, MctxGumbel]:
        evaluate = rollout_evaluator(tic_tac_toe)
        search = make_search(algorithm(num_simulations=3), tic_tac_toe, evaluate, engine)
        trace(functools.partial(search, None, temperature=1.0, add_noise=True), key, states)


@pytest.mark.parametrize("config", TRAININGS, ids=lambda config: f"{config.game}")
def test_iterations(config):
    parts, mesh = make_parts(config), training.make_mesh(jax.devices()[:1])
    state = training.abstract_state(parts, mesh)
    assert "64[" not in describe(state)
    trace(functools.partial(training.iteration, parts), state)


def test_players_and_proofs(tic_tac_toe, solution):
    states, evaluate = init_batch(tic_tac_toe, 2), uniform_evaluator(tic_tac_toe)
    agents = [
        players.random_agent(tic_tac_toe),
        players.perfect_agent(tic_tac_toe, solution),
        players.network_agent(tic_tac_toe, evaluate, None),
        players.search_agent(tic_tac_toe, PUCT(num_simulations=2), evaluate),
        players.minimax_agent(tic_tac_toe, 2),
        players.alpha_beta_agent(tic_tac_toe, 2),
    ]
    for player in agents:
        trace(functools.partial(player.act, player.params), jax.random.key(0), states)
    player = make_persistent(tic_tac_toe, PersistentConfig(num_simulations=2))
    trace(player.learn, jax.random.key(0), states, player.init_memory(2))
    trace(lambda: verify(solution, functools.partial(evaluate, None, None)))
    match = arena.play_match(tic_tac_toe, *agents[:2], 4, jax.random.key(0))
    assert not match.deterministic


def test_training_is_saved_and_resumed(tmp_path):
    config = SMOKE["mlp"]
    parts, mesh = make_parts(config), training.make_mesh(jax.devices()[:1])
    runs.create_run(tmp_path / "run", config)
    state = training.make_state(parts, jax.random.key(0), mesh)
    state, _ = training.make_iteration(parts, mesh)(state)
    checkpoint.save(tmp_path / "run", state, 0.0)
    restored = checkpoint.restore(tmp_path / "run", parts, mesh)[0]
    for ours, theirs in zip(*map(jax.tree.leaves, (restored.learner, state.learner)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_shipped_players(tmp_path):
    player, small = azjax.load("hex:4"), azjax.load("tic_tac_toe")
    for one in (player, small):
        states = init_batch(one.game, 2)
        trace(functools.partial(one.agent.act, one.params), jax.random.key(0), states)
    trace(lambda: player.search(jax.random.key(0), init_batch(player.game, 2), num_simulations=3))
    check.check_game(player.game, num_games=2)
    azjax.export(player, tmp_path / "player.onnx")
    azjax.export(player, tmp_path / "player.stablehlo", num_simulations=2, batch_size=1)
    assert azjax.prove_seat(small, "second", tmp_path, rounds=1).exploration.ply == 8
    assert azjax.verify(small, (2,)).decision_states == 4520
