"""Whole trainings: learning, many at once, their memory, and games of pgx."""

import dataclasses
import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import training
from azjax.networks import MLPConfig
from azjax.proof.verify import verify
from azjax.runs import presets
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel
from azjax.training.learner import LearnerConfig
from azjax.training.memory import estimate
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from small import conv
from trainings import assert_equal


def test_a_few_iterations_improve_the_player(solution):
    config = Config(
        network=MLPConfig(hidden=(64,), head_hidden=32),
        search=Gumbel(num_simulations=16),
        selfplay=SelfPlayConfig(games=128, unroll_length=8),
        replay=ReplayConfig(capacity=8192, shards=1),
        learner=LearnerConfig(batch_size=256, steps=32, learning_rate=5e-3, warmup_steps=0),
    )
    mesh, parts = training.make_mesh(jax.devices()[:1]), make_parts(config)

    @jax.jit
    def judge(state):
        folded = parts.network.fold(state.learner.average)
        return verify(solution, lambda states: parts.evaluate(folded, None, states))

    state = training.make_state(parts, jax.random.key(0), mesh)
    iterate = training.make_iteration(parts, mesh)
    untrained, losses = judge(state), []
    for _ in range(8):
        state, metrics = iterate(state)
        losses.append(metrics.losses)
        assert metrics.games > 0 and metrics.moves == 128 * 8
    trained = judge(state)
    assert all(np.isfinite(leaf) for leaf in jax.tree.leaves(losses))
    assert losses[-1]["policy_kl"] < losses[0]["policy_kl"] / 2
    assert trained.blunders < untrained.blunders / 2
    assert trained.value_error < untrained.value_error
    assert (trained.losing_lines < untrained.losing_lines / 2).all()


def test_four_trainings_in_one_program_equal_separate_ones():
    """Batched products may round differently, so only the games are equal bit for bit."""
    parts = make_parts(presets.smoke(presets.get("mlp")))
    step = functools.partial(training.iteration, parts)

    def run(key):
        return jax.lax.scan(lambda state, _: step(state), training.init(parts, key), length=2)

    keys = jax.vmap(jax.random.key)(jnp.arange(4))
    together, alone = jax.jit(jax.vmap(run))(keys), jax.jit(run)
    assert len({leaf.tobytes() for leaf in np.asarray(together[0].games.states.board)}) == 4
    for row, key in enumerate(keys):
        (state, metrics), expected = jax.tree.map(lambda leaf, r=row: leaf[r], together), alone(key)
        assert_equal(state.games, expected[0].games)
        assert_equal(metrics.games, expected[1].games)
        for ours, theirs in ((state.learner, expected[0].learner), (metrics, expected[1])):
            jax.tree.map(
                lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), ours, theirs
            )


SMALL = Config(
    network=MLPConfig(hidden=(512, 512), head_hidden=8),
    search=Gumbel(num_simulations=4),
    selfplay=SelfPlayConfig(games=64, unroll_length=1),
    replay=ReplayConfig(capacity=512, shards=2),
    learner=LearnerConfig(batch_size=8, steps=1),
)
MANY = LearnerConfig(batch_size=512, steps=1)
LARGEST = {
    "optimizer": SMALL,
    "work": dataclasses.replace(SMALL, network=conv(width=16, blocks=1), learner=MANY),
}


@pytest.mark.parametrize("largest", LARGEST)
def test_the_estimate_matches_the_memory_analysis_of_xla(largest):
    mesh, parts = training.make_mesh(jax.devices()[:2]), make_parts(LARGEST[largest])
    iterate = training.make_iteration(parts, mesh)
    compiled = iterate.lower(training.abstract_state(parts, mesh)).compile()
    needs, before = estimate(parts, mesh, compiled), estimate(parts, mesh)
    used = compiled.memory_analysis()
    total = used.argument_size_in_bytes + used.output_size_in_bytes - used.alias_size_in_bytes
    total += used.temp_size_in_bytes
    assert needs.total == sum(needs[:5]) == max(total, before.total)
    assert needs.total < 1.01 * total  # Not all lasting parts are in memory during initialization.
    assert max(needs[:5]) == getattr(needs, largest)
    assert before == needs._replace(work=0)


def test_games_of_pgx_are_played_in_groups_and_stored():
    """Their states have a leaf without elements."""
    pytest.importorskip("pgx")
    selfplay = SelfPlayConfig(games=16, games_at_once=8, unroll_length=4, archive=20_000)
    network, learner = MLPConfig(hidden=(4,), head_hidden=4), LearnerConfig(batch_size=8, steps=1)
    sections = {"selfplay": selfplay, "network": network, "learner": learner}
    replay = ReplayConfig(capacity=512, shards=2)
    parts = make_parts(Config(game="pgx:tic_tac_toe", replay=replay, **sections))
    state = training.init(parts, jax.random.key(0))
    assert any(leaf.size == 0 for leaf in jax.tree.leaves(state.games.states))
    after, _ = jax.jit(functools.partial(training.iteration, parts))(state)
    assert 16 < after.archive.used <= 2 * 16 * 4


# In a separate process, since it starts others and waits for their end.
OFFLINE = """
import sys, types
from azjax.callbacks import WeightsAndBiases
from azjax.training.loop import Loop
from small import record
import wandb
callback = WeightsAndBiases(
    mode="offline", dir=sys.argv[1], name="mine", config={"seed": 3},
    settings=wandb.Settings(silent=True),
)
loop = Loop(None, types.SimpleNamespace(iteration=0), None, 2, 0.0)
callback.on_start(loop)
assert wandb.run.config["seed"] == 3 and wandb.run.name == "mine"
for number in (1, 2):
    loop.state = types.SimpleNamespace(iteration=number)
    loop.record = record(number, extra={"elo": 7.0})
    callback.on_iteration(loop)
    assert wandb.run.step == number
assert dict(wandb.run.summary)["elo"] == 7.0 and dict(wandb.run.summary)["loss"] == 2.0
callback.close()
assert wandb.run is None
"""


def test_weights_and_biases_runs_offline(tmp_path):
    pytest.importorskip("wandb")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", OFFLINE, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
