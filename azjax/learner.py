"""The loss and the optimiser step (Silver et al. 2017, Eq. 1)."""

import dataclasses
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from azjax.network import Network, Variables
from azjax.settings import check_range, check_types
from azjax.targets import Sample


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """How the network learns."""

    batch_size: int = 1024
    """Samples per optimiser step, over all devices. AlphaZero: 4,096."""
    steps: int = 32
    """Optimiser steps per iteration."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """`adam`: AdamW; `sgd`: with momentum 0.9. AlphaZero: sgd."""
    learning_rate: float = 2e-3
    """Peak learning rate. AlphaZero: 0.2 (sgd), dropped in steps."""
    warmup_steps: int = 50
    """Steps over which the rate rises from 0."""
    decay_steps: int = 2000
    """Steps over which the rate falls, by a cosine, to its final value; 0: constant."""
    final_learning_rate: float = 2e-4
    """The rate from then on. AlphaZero: 0.0002."""
    l2: float = 0.0
    """c of the loss term c * ||theta||^2. AlphaGo Zero: 1e-4."""
    weight_decay: float = 0.0
    """Decoupled weight decay (AdamW). The papers: 0."""
    clip_norm: float = 1.0
    """Largest global norm of the gradient; 0: no clipping. The papers: none."""
    value_weight: float = 1.0
    """Weight of the value loss against the policy loss. AlphaZero: 1."""
    average_decay: float = 0.99
    """Decay of the running average of the parameters, which plays and is verified; 0: the
    parameters themselves. AlphaZero: 0."""

    def __post_init__(self):
        check_types("learner", self)
        check_range("learner", self, "batch_size steps", 1)
        check_range("learner", self, "warmup_steps decay_steps final_learning_rate", 0)
        check_range("learner", self, "l2 weight_decay clip_norm value_weight", 0)
        check_range("learner", self, "learning_rate", 0, above=True)
        if not 0 <= self.average_decay < 1:
            given = self.average_decay
            raise ValueError(f"learner.average_decay is {given}: use 0 up to, not including, 1")


class LearnerState(NamedTuple):
    """What learning carries from step to step.

    Attributes:
      variables: the network's Flax variables.
      average: their running average, which plays and is verified.
      opt_state: the optimiser's, over all parameters as one vector.
      step: `int32 []`, optimiser steps made.
    """

    variables: Variables
    average: Variables
    opt_state: optax.OptState
    step: jax.Array


class Losses(NamedTuple):
    """Means over a batch; all `float32 []`.

    Attributes:
      total: what is minimised.
      value: `(z - v)^2`.
      policy: cross-entropy of the policy to its target, over legal actions.
      policy_kl: the same less the target's own entropy: 0 when the policy is the target.
      l2: `c * ||theta||^2`.
      grad_norm: global norm of the gradient, before clipping.
    """

    total: jax.Array
    value: jax.Array
    policy: jax.Array
    policy_kl: jax.Array
    l2: jax.Array
    grad_norm: jax.Array


class Learner(NamedTuple):
    """Learning as pure functions.

    Attributes:
      init: `variables -> LearnerState`.
      update: `(LearnerState, Sample [B, ...]) -> (LearnerState, Losses)`, one step.
    """

    init: Callable[[Variables], LearnerState]
    update: Callable[[LearnerState, Sample], tuple[LearnerState, Losses]]


def policy_loss(logits: jax.Array, policy: jax.Array, legal: jax.Array) -> jax.Array:
    """Cross-entropy `-sum pi log p`, with `p` normalised over the legal actions only.

    Args:
      logits: `float32 [B, A]`.
      policy: `float32 [B, A]`, the target.
      legal: `bool [B, A]`.

    Returns:
      `float32 [B]`.
    """
    log_p = jax.nn.log_softmax(jnp.where(legal, logits, jnp.finfo(logits.dtype).min))
    return -jnp.sum(jnp.where(legal, policy * log_p, 0.0), axis=-1)


def make_loss(config: LearnerConfig, network: Network):
    """Builds `loss(params, batch_stats, Sample) -> (total, (Losses, batch_stats))`."""

    def loss(params, batch_stats, samples: Sample):
        variables = {"params": params, "batch_stats": batch_stats}
        logits, value, batch_stats = network.apply(variables, samples.planes, True)
        policy = jnp.mean(policy_loss(logits, samples.policy, samples.legal))
        entropy = jnp.mean(jnp.sum(jax.scipy.special.entr(samples.policy), axis=-1))
        squared = jnp.mean(jnp.square(samples.value - value))
        l2 = config.l2 * _squared_norm(params) if config.l2 else jnp.zeros(())
        total = policy + config.value_weight * squared + l2
        losses = Losses(total, squared, policy, policy - entropy, l2, jnp.zeros(()))
        return total, (losses, batch_stats)

    return loss


def _squared_norm(tree) -> jax.Array:
    """`||theta||^2`, as one operation on one vector."""
    return jnp.sum(jnp.square(ravel_pytree(tree)[0]))


def make_optimizer(config: LearnerConfig) -> optax.GradientTransformation:
    """Builds the optimiser: clipping, then AdamW or SGD on the schedule."""
    rate = optax.schedules.join_schedules(
        [
            optax.schedules.linear_schedule(0.0, config.learning_rate, config.warmup_steps),
            _decay(config),
        ],
        [config.warmup_steps],
    )
    if config.optimizer == "adam":
        optimizer = optax.adamw(rate, weight_decay=config.weight_decay)
    else:
        decay = optax.add_decayed_weights(config.weight_decay)
        optimizer = optax.chain(decay, optax.sgd(rate, momentum=0.9))
    if config.clip_norm:
        optimizer = optax.chain(optax.clip_by_global_norm(config.clip_norm), optimizer)
    return optimizer


def _decay(config: LearnerConfig) -> optax.Schedule:
    if not config.decay_steps:
        return optax.schedules.constant_schedule(config.learning_rate)
    floor = config.final_learning_rate / config.learning_rate
    return optax.schedules.cosine_decay_schedule(config.learning_rate, config.decay_steps, floor)


def make_learner(config: LearnerConfig, network: Network, axis_name: str | None = None) -> Learner:
    """Builds the learner.

    Gradients are averaged, measured and clipped as one vector, so that all parameters cost one
    reduction over the devices, and no operation for each of them.

    Args:
      config: the settings.
      network: what is trained.
      axis_name: the mesh axis over which gradients and losses are averaged.
    """
    optimizer = make_optimizer(config)
    gradient = jax.grad(make_loss(config, network), has_aux=True)

    def mean(tree):
        return tree if axis_name is None else jax.lax.pmean(tree, axis_name)

    def init(variables):
        opt_state = optimizer.init(ravel_pytree(variables["params"])[0])
        copy = jax.tree.map(jnp.copy, variables)
        return LearnerState(variables, copy, opt_state, jnp.zeros((), jnp.int32))

    def update(state: LearnerState, samples: Sample):
        params, stats = state.variables["params"], state.variables.get("batch_stats", {})
        grads, (losses, stats) = gradient(params, stats, samples)
        grads, losses = mean((ravel_pytree(grads)[0], losses))
        vector, unravel = ravel_pytree(params)
        updates, opt_state = optimizer.update(grads, state.opt_state, vector)
        vector = optax.apply_updates(vector, updates)
        variables = dict(state.variables, params=unravel(jnp.asarray(vector)))
        if "batch_stats" in variables:
            variables["batch_stats"] = stats
        decay = jnp.minimum(config.average_decay, (1 + state.step) / (10 + state.step))
        decay = jnp.where(config.average_decay > 0, decay, 0.0)
        average = optax.incremental_update(variables, state.average, 1 - decay)
        losses = losses._replace(grad_norm=optax.tree.norm(grads))
        return LearnerState(variables, average, opt_state, state.step + 1), losses

    return Learner(init, update)
