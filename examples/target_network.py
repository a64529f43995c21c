"""A custom learner: the value n plies later, by a target network, replaces the game's outcome.

A loss sees neither the average nor another copy of the network, so `update` computes the targets.
The target network is part of the optimizer's state; checkpoints and devices then need no more code.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

import azjax
from azjax.networks import Network
from azjax.training import (
    Learner,
    LearnerState,
    Parts,
    Sample,
    Targets,
    Transition,
)


def look_ahead(usual: Targets, plies: int) -> Targets:
    """Returns targets whose `extra` is `(reward, discount, planes)` of the next plies.

    The value of a position is then `reward + discount * v(planes)`. Where fewer plies were played,
    `reward` ends with the usual target of the last one, and `discount` is 0.
    """

    def make(transitions: Transition) -> Sample:
        samples, moved = usual.make(transitions), transitions.discount
        reward, discount = jnp.zeros_like(samples.value), jnp.ones_like(samples.value)
        for _ in range(plies):  # `reward[t] + discount[t] * (what follows at t + 1)`
            reward = transitions.reward + moved * jnp.roll(reward, -1, axis=0)
            reward = reward.at[-1].set(samples.value[-1])
            discount = (moved * jnp.roll(discount, -1, axis=0)).at[-1].set(0.0)
        later = jnp.roll(samples.planes, -plies, axis=0)
        return samples._replace(extra=(reward, discount, later))

    def augment(key: jax.Array, samples: Sample) -> Sample:
        turned = usual.augment(key, samples._replace(extra=()))  # Values do not change.
        return turned._replace(extra=samples.extra)

    return usual._replace(make=make, augment=augment)


def with_target_network(usual: Learner, network: Network, every: int) -> Learner:
    """Returns a learner whose target network is a copy, renewed after `every` steps."""

    def init(variables) -> LearnerState:
        state = usual.init(variables)
        return state._replace(opt_state=(state.opt_state, jax.tree.map(jnp.copy, variables)))

    def update(state: LearnerState, samples: Sample, axis_name: str | None = None):
        both: Any = state.opt_state
        opt_state, target = both
        reward, discount, later = samples.extra
        value = network.infer(network.fold(target), later)[1]
        samples = samples._replace(value=reward + discount * value)
        state, losses = usual.update(state._replace(opt_state=opt_state), samples, axis_name)
        is_due = state.step % every == 0
        target = jax.tree.map(functools.partial(jnp.where, is_due), state.variables, target)
        return state._replace(opt_state=(state.opt_state, target)), losses

    return Learner(init, update, usual.steps)


def make_parts(plies: int = 3, every: int = 128) -> Parts:
    """Returns the parts; also usable as `azjax train --parts FILE.py:make_parts`."""
    parts = azjax.make_parts(azjax.presets.get("default"))
    learner = with_target_network(parts.learner, parts.network, every)
    return parts._replace(targets=look_ahead(parts.targets, plies), learner=learner)


if __name__ == "__main__":
    run = azjax.train(make_parts(), max_iterations=5, report=False, display=False)
    for record in run.metrics:
        print(f"iteration {record['iteration']}: value loss {record['value_loss']:.3f}")
