"""Run directories of untrained networks."""

import jax

from azjax import runs, training
from azjax.runs import checkpoint
from azjax.runs.config import make_parts


def make_run(run_dir, config, iterations=(0,), game=None, network=None):
    """Creates a run with a checkpoint for each iteration; returns its folder."""
    mesh, parts = training.make_mesh(), make_parts(config, game, network)
    state = training.make_state(parts, jax.random.key(config.seed), mesh)
    runs.create_run(run_dir, config)
    for iteration in iterations:
        at = state.replace(iteration=state.iteration + iteration)
        checkpoint.save(run_dir, at, 0.0, keep=len(iterations))
    return run_dir
