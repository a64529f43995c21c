"""A custom value target, computed from the search: the value of the best action.

In A0C (Moerland et al. 2018, "A0C: Alpha Zero in Continuous Action Space"), exploratory moves of
the game do not enter the target. `Targets.note` computes what self-play stores for each search, and
`Targets.make` computes the training target from that.
"""

import functools

import jax
import jax.numpy as jnp
import optax

import azjax
from azjax.networks import MLPConfig, make_network
from azjax.search import Gumbel, SearchResult
from azjax.training import (
    Parts,
    ReplayConfig,
    Sample,
    SelfPlayConfig,
    TargetConfig,
    Targets,
    Transition,
    init,
    iteration,
    make_learner,
    make_replay,
    make_targets,
)


def best_value(result: SearchResult) -> jax.Array:
    """Returns `float32 [B]`, the values of the best visited actions, for the players to move."""
    return jnp.max(jnp.where(result.visit_counts > 0, result.q_values, -1.0), axis=-1)


def make(game) -> Targets:
    """Returns AlphaZero's targets with another value target."""
    standard = make_targets(TargetConfig(), game)

    def samples(transitions: Transition) -> Sample:
        return standard.make(transitions)._replace(value=transitions.extra)

    return standard._replace(make=samples, note=best_value)


def make_parts(game) -> Parts:
    """Returns the parts of a small training run with these targets."""
    network = make_network(MLPConfig(hidden=(64, 64)), game)
    return Parts(
        game=game,
        network=network,
        search=Gumbel(num_simulations=16),
        selfplay=SelfPlayConfig(games=128),
        targets=make(game),
        replay=make_replay(ReplayConfig(capacity=8192), batch_size=256),
        learner=make_learner(network, optax.adam(2e-3), steps=32),
    )


if __name__ == "__main__":
    parts = make_parts(azjax.make("tic_tac_toe"))
    state, step = init(parts, jax.random.key(0)), jax.jit(functools.partial(iteration, parts))
    for _ in range(5):
        state, metrics = step(state)
        print(f"iteration {state.iteration}: value loss {metrics.losses['value_loss']:.3f}")
