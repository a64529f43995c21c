"""A training with an NNX module: a checkpoint resumes bit for bit on two devices."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax import runs, training
from azjax.networks import from_nnx
from azjax.runs import checkpoint
from azjax.runs.config import Config, CustomNetworkConfig, make_parts
from azjax.search import Gumbel
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from modules import Model

SMALL = Config(
    network=CustomNetworkConfig(),
    search=Gumbel(num_simulations=2),
    selfplay=SelfPlayConfig(games=4, unroll_length=2),
    replay=ReplayConfig(capacity=32, shards=2),
    learner=LearnerConfig(batch_size=8, steps=2, weight_decay=0.1),
)


def test_a_saved_training_resumes_bit_for_bit(tic_tac_toe, tmp_path):
    network = from_nnx(tic_tac_toe, Model)
    parts, mesh = make_parts(SMALL, tic_tac_toe, network), training.make_mesh(jax.devices()[:2])
    iterate = training.make_iteration(parts, mesh)
    runs.create_run(tmp_path / "run", SMALL)
    state, _ = iterate(training.make_state(parts, jax.random.key(0), mesh))
    checkpoint.save(tmp_path / "run", state, 0.0)
    restored = checkpoint.restore(tmp_path / "run", parts, mesh).state
    for saved, found in zip(*map(jax.tree.leaves, (state.learner, restored.learner)), strict=True):
        np.testing.assert_array_equal(saved, found)
    first = network.init(jax.random.key(9))["state"]
    variables = jax.device_get((state.learner.variables, state.learner.average))
    ahead, again = iterate(state)[0].learner, iterate(restored)[0].learner
    for one, other in zip(*map(jax.tree.leaves, (ahead, again)), strict=True):
        np.testing.assert_array_equal(one, other)
    for found in variables:
        np.testing.assert_array_equal(found["state"]["order"], first["order"])
        assert found["state"]["order"].dtype == jnp.int32
        assert (found["state"]["norm"]["mean"] != first["norm"]["mean"]).any()
