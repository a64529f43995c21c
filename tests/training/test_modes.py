"""Strict promotion and 64-bit mode of JAX: nothing fails, and results keep their types."""

import dataclasses
import functools
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax import games, players, runs, training
from azjax.games import check
from azjax.games.base import describe, init_batch, play
from azjax.networks import MLPConfig, ResNetConfig, make_network
from azjax.networks.rounding import quantize
from azjax.players import arena
from azjax.proof.verify import verify, verify_outputs
from azjax.runs import checkpoint, presets
from azjax.runs.config import Config, make_parts
from azjax.search import ALGORITHMS, PUCT, UCT, MctxGumbel, MctxMuZero, make_search
from azjax.search.evaluators import exact_evaluator, rollout_evaluator, uniform_evaluator
from azjax.viz import atlas
from experiments.lecture.persistent import PersistentConfig, make_persistent
from small import conv

GAMES = ["tic_tac_toe", "connect_four:4x4", "othello:4", "hex:3", "hex_swap:3", "breakthrough:5x3"]
SMOKE = {name: presets.smoke(preset) for name, preset in presets.PRESETS.items()}
TRAININGS = [
    *SMOKE.values(),
    *(dataclasses.replace(SMOKE["default"], game=game) for game in GAMES[1:]),
    dataclasses.replace(SMOKE["mlp"], network=MLPConfig(hidden=(8,), symmetric=True)),
    dataclasses.replace(SMOKE["mlp"], network=MLPConfig(hidden=(8,), learning_dtype="bfloat16")),
    dataclasses.replace(SMOKE["mlp"], network=ResNetConfig(width=8, learning_dtype="bfloat16")),
    dataclasses.replace(
        SMOKE["paper"],
        network=conv(width=4, blocks=1, evaluation_dtype="bfloat16"),
    ),
    dataclasses.replace(
        SMOKE["default"],
        game="connect_four:4x4",
        network=conv(width=4, blocks=1),
        search=UCT(num_simulations=2),
        targets=dataclasses.replace(Config().targets, outcome_weight=0.5, td_lambda=0.5),
        learner=dataclasses.replace(
            SMOKE["default"].learner, optimizer="sgd", l2=0.1, weight_decay=0.1, policy_surprise=0.5
        ),
    ),
]


@pytest.fixture(autouse=True)
def mode():
    """64-bit mode in a process started with it, and strict promotion in all others."""
    if jax.config.jax_enable_x64:
        yield
        return
    strict = {"jax_numpy_rank_promotion": "raise", "jax_numpy_dtype_promotion": "strict"}
    before = {name: getattr(jax.config, name) for name in strict}
    for changes in (strict, before):  # Not as contexts, which other threads do not have.
        for name, value in changes.items():
            jax.config.update(name, value)
        if changes is strict:
            yield


@pytest.mark.slow
def test_everything_works_in_64_bits():
    """In a separate process, since JAX caches index types of the first mode."""
    if jax.config.jax_enable_x64:
        return
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", __file__]
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environment |= {"JAX_ENABLE_X64": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def trace(function, *args):
    """Traces a function, and checks that its results do not have 64 bits."""
    shapes = jax.eval_shape(function, *args)
    assert "64[" not in describe(shapes)
    return shapes


PGX = ["pgx:tic_tac_toe", "pgx:go_5x5"]


@pytest.mark.parametrize("name", GAMES + PGX)
def test_rules(name):
    if jax.config.jax_enable_x64 and name in PGX:
        with pytest.raises(ValueError, match="in JAX's 64-bit mode, .*: turn jax_enable_x64 off"):
            games.make(name)
        return
    game = games.make(name)

    def everything(actions):
        states = init_batch(game, 2)
        planes = [jax.vmap(lambda s, e=e: game.observe(s, e))(states) for e in game.encodings]
        step = jax.vmap(functools.partial(play, game))(states, actions)
        return (
            planes,
            jax.vmap(game.step)(states, actions),
            jax.vmap(game.legal_actions)(states),
            step,
        )

    trace(everything, jnp.zeros(2, jnp.int32))


@pytest.mark.parametrize(
    "name", ["tic_tac_toe", *(pytest.param(x, marks=pytest.mark.slow) for x in GAMES[1:])]
)
def test_the_contract_of_games(name):
    check.check_game(games.make(name), num_games=2)


@pytest.mark.parametrize("make", [uniform_evaluator, rollout_evaluator])
@pytest.mark.parametrize("algorithm", [*ALGORITHMS.values(), MctxMuZero, MctxGumbel])
@pytest.mark.parametrize("engine", ["azjax", "mctx"])
def test_searches(engine, algorithm, make, tic_tac_toe):
    search = make_search(algorithm(num_simulations=3), tic_tac_toe, make(tic_tac_toe), engine)
    states, key = init_batch(tic_tac_toe, 2), jax.random.key(0)
    for asked in ({}, {"temperature": 1.0, "add_noise": True}):
        trace(functools.partial(search, None, **asked), key, states)


@pytest.mark.slow_after(8)
@pytest.mark.parametrize(
    "config", TRAININGS, ids=lambda config: f"{config.game}-{config.search.algorithm}"
)
def test_iterations(config):
    parts, mesh = make_parts(config), training.make_mesh(jax.devices()[:1])
    assert "64[" not in describe(training.abstract_state(parts, mesh))
    trace(functools.partial(training.iteration, parts), training.abstract_state(parts, mesh))


def test_players_and_proofs(tic_tac_toe, solution):
    states = init_batch(tic_tac_toe, 2)
    agents = [
        players.random_agent(tic_tac_toe),
        players.perfect_agent(tic_tac_toe, solution),
        players.sampled(
            players.network_agent(tic_tac_toe, exact_evaluator(tic_tac_toe, solution), None)
        ),
        players.search_agent(tic_tac_toe, PUCT(num_simulations=2), uniform_evaluator(tic_tac_toe)),
        players.minimax_agent(tic_tac_toe, 2),
        players.alpha_beta_agent(tic_tac_toe, 2),
    ]
    for player in agents:
        act = functools.partial(player.act, player.params)
        trace(act, jax.random.key(0), states)
    player = make_persistent(tic_tac_toe, PersistentConfig(num_simulations=2))
    trace(player.learn, jax.random.key(0), states, player.init_memory(2))
    policy = functools.partial(uniform_evaluator(tic_tac_toe), None, None)
    trace(lambda: verify(solution, policy))
    match = arena.play_match(tic_tac_toe, *agents[:2], 4, jax.random.key(0))
    assert not match.deterministic


def test_training_is_saved_and_resumed(tmp_path):
    config = SMOKE["default"]
    parts, mesh = make_parts(config), training.make_mesh(jax.devices()[:1])
    runs.create_run(tmp_path / "run", config)
    state = training.make_state(parts, jax.random.key(0), mesh)
    state, _ = training.make_iteration(parts, mesh)(state)
    checkpoint.save(tmp_path / "run", state, 0.0)
    restored = checkpoint.restore(tmp_path / "run", parts, mesh).state
    for ours, theirs in zip(*map(jax.tree.leaves, (restored.learner, state.learner)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def use_networks(player, states, folder):
    trace(player.parts.evaluate, player.params, None, states)
    network = make_network(MLPConfig(hidden=(8,), head_hidden=4, symmetric=True), player.game)
    quantize(player.game, network, network.init(jax.random.key(0)), states)


def use_search(player, states, folder):
    trace(lambda: player.search(jax.random.key(0), states, num_simulations=3))


def use_players(player, states, folder):
    oriented = azjax.load("tic_tac_toe")
    for one, given in ((player, states), (oriented, init_batch(oriented.game, 2))):
        trace(functools.partial(one.agent.act, one.params), jax.random.key(0), given)


def use_training(player, states, folder):
    config = dataclasses.replace(
        SMOKE["default"],
        selfplay=dataclasses.replace(SMOKE["default"].selfplay, archive=8),
    )
    parts = make_parts(config)
    trace(functools.partial(training.init, parts), jax.random.key(0))


def use_runs(player, states, folder):
    azjax.export(player, folder / "player.onnx")
    azjax.export(player, folder / "player.stablehlo", num_simulations=2, batch_size=1)


def use_proof(player, states, folder):
    small = azjax.load("tic_tac_toe")
    assert azjax.prove_seat(small, "second", folder, rounds=1).exploration.ply == 8
    assert azjax.verify(small, (2,)).decision_states == 4520


def use_viz(player, states, folder):
    game = games.make("tic_tac_toe")
    solution = azjax.solve(game)
    made, decided = atlas.make_atlas(game, solution), len(solution.decisions)
    verdict = verify_outputs(solution, np.zeros((decided, 9), np.float32), np.zeros(decided, "f4"))
    outputs = jnp.zeros((decided, 9), jnp.float32), jnp.zeros(decided, jnp.float32)
    trace(lambda: atlas.make_snapshot(made, solution, verdict, *outputs))


USES = {
    "games": lambda player, states, folder: check.check_game(player.game, num_games=2),
    "networks": use_networks,
    "search": use_search,
    "players": use_players,
    "training": use_training,
    "runs": use_runs,
    "proof": use_proof,
    "viz": use_viz,
}


@pytest.mark.parametrize("package", USES)
def test_every_package_works(package, tmp_path):
    """What the other tests of this file do not call; a new package needs a function here."""
    folders = {path.parent.name for path in pathlib.Path(azjax.__file__).parent.glob("*/*.py")}
    assert {*USES} == folders - {"programs", "cli"}  # They call the others.
    player = azjax.load("hex:4")
    USES[package](player, init_batch(player.game, 2), tmp_path)
