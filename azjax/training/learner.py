"""The learner: the loss of AlphaZero (Silver et al. 2017, Eq. 1), and the optimizer step.

`examples/alphazero.py` has both in 15 lines, without options.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from jax.core import Tracer
from jax.flatten_util import ravel_pytree

from azjax._settings import (
    Count,
    Fraction,
    NonNegative,
    Positive,
    Range,
    Settings,
    is_zero,
    mixes_types,
)
from azjax.networks.base import Network, Variables
from azjax.training.metrics import Record
from azjax.training.targets import Sample

Losses = dict[str, jax.Array]  # The terms by name, each `float32 []`.
Loss = Callable[[Any, Any, Sample, str | None], tuple[jax.Array, Losses]]
"""`(outputs, params, samples, axis_name) -> (total, terms)`; see `alphazero_loss`."""


@dataclasses.dataclass(frozen=True)
class LearnerConfig(Settings, section="learner"):
    """Settings of the learner."""

    batch_size: Positive = 512
    """Samples per optimizer step, over all devices. AlphaZero: 4,096."""
    steps: Positive = 128
    """Optimizer steps per iteration."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """`adam`: AdamW; `sgd`: with momentum 0.9. AlphaZero: sgd."""
    learning_rate: Annotated[float, Range(0, excludes="low")] = 2e-3
    """Peak learning rate. AlphaZero: 0.2 (sgd), dropped in steps."""
    warmup_steps: Count = 50
    """Steps of the linear warm-up from 0."""
    decay_steps: Count = 2000
    """Steps of the cosine decay to the final rate; 0: constant."""
    final_learning_rate: NonNegative = 2e-4
    """Learning rate after the decay. AlphaZero: 0.0002."""
    l2: NonNegative = 0.0
    """c of the loss term c * ||theta||^2, over all parameters. AlphaGo Zero: 1e-4."""
    weight_decay: NonNegative = 0.0
    """Decoupled weight decay, as in AdamW, except for parameters named `bias` or `scale`, as in
    Flax. The papers: 0."""
    clip_norm: NonNegative = 1.0
    """Maximum global norm of the gradient; 0: no clipping. The papers: none."""
    value_weight: NonNegative = 1.0
    """Weight of the value loss. AlphaZero: 1."""
    policy_surprise: Fraction = 0.0
    """Fraction of the policy loss that is weighted by the divergence of each sample's target from
    the network's policy; see `alphazero_loss`. AlphaZero: 0."""
    ema_decay: Annotated[float, Range(0, 1, excludes="high")] = 0.99
    """Decay of the running average of the parameters; the averaged network plays and is verified.
    The average covers at most about the last tenth of the steps. 0: no averaging. AlphaZero: 0."""

    def __post_init__(self):
        super().__post_init__()
        rates = self.learning_rate, self.final_learning_rate
        traced = any(isinstance(rate, Tracer) for rate in rates)
        if self.decay_steps and not traced and rates[0] < rates[1]:
            raise ValueError(
                f"learner.final_learning_rate is {rates[1]}, more than learner.learning_rate, "
                f"{rates[0]}: use less, or decay_steps 0"
            )


class LearnerState(NamedTuple):
    """State of the learner; self-play and verification use the running average."""

    variables: Variables  # Those of the network; the optimizer updates `params`.
    average: Variables  # Their running average; the newest value if it is not a float.
    opt_state: optax.OptState
    step: jax.Array  # int32 [], number of optimizer steps.


class Learner(NamedTuple):
    """The learner as pure functions."""

    init: Callable[[Variables], LearnerState]  # `variables -> LearnerState`.
    # `(LearnerState, Sample [B, ...], axis_name) -> (LearnerState, Losses)`, one step; gradients
    # and losses are averaged over the mesh axis of that name, unless it is None.
    update: Callable[[LearnerState, Sample, str | None], tuple[LearnerState, Losses]]
    steps: int  # Optimizer steps in each iteration.


def policy_loss(logits: jax.Array, policy: jax.Array, legal: jax.Array) -> jax.Array:
    """Cross-entropy `-sum pi log p` of rows `[B, A]`, `p` normalized over the legal actions."""
    log_p = jax.nn.log_softmax(jnp.where(legal, logits, jnp.finfo(logits.dtype).min))
    return -jnp.sum(jnp.where(legal, policy * log_p, 0.0), axis=-1)


def alphazero_loss(
    outputs: Any,
    params: Any,
    samples: Sample,
    axis_name: str | None = None,
    value_weight: float = 1.0,
    l2: float = 0.0,
    policy_surprise: float = 0.0,
) -> tuple[jax.Array, Losses]:
    """Squared error of the value plus cross-entropy of the policy (Silver et al. 2017, Eq. 1).

    A custom loss takes the first four arguments. It may read further outputs of the network, and
    `samples.extra`.

    With `policy_surprise` s, the cross-entropy of a sample has the weight `1 - s + s * KL / mean
    KL`, where KL is the divergence of the target from the network's policy. KataGo instead puts
    surprising samples into its buffer more often (Wu 2020).

    Returns the total to minimize, and its terms by name, means over the batch: `value_loss`,
    `(z - v)^2`; `policy_loss`, the cross-entropy; `policy_kl`, the same minus the entropy of the
    target; `l2`, which is `l2 ||theta||^2`.
    """
    logits, value = (output.astype(jnp.float32) for output in outputs[:2])
    chex.assert_equal_shape([logits, samples.policy, samples.legal])
    chex.assert_equal_shape([value, samples.value])  # Other shapes would broadcast.
    cross_entropy = policy_loss(logits, samples.policy, samples.legal)
    entropy = jnp.sum(jax.scipy.special.entr(samples.policy), axis=-1)
    policy = minimized = jnp.mean(cross_entropy)
    if not is_zero(policy_surprise):
        weights = _weigh_surprise(policy_surprise, cross_entropy - entropy, axis_name)
        minimized = jnp.mean(weights * cross_entropy)
    squared = jnp.mean(jnp.square(samples.value - value))
    penalty = jnp.zeros((), jnp.float32)
    if not is_zero(l2):
        penalty = l2 * jnp.sum(jnp.square(ravel_pytree(params)[0]))
    losses = {"value_loss": squared, "policy_loss": policy, "policy_kl": policy - jnp.mean(entropy)}
    return minimized + value_weight * squared + penalty, losses | {"l2": penalty}


def _weigh_surprise(surprise: Any, kl: jax.Array, axis_name: str | None) -> jax.Array:
    """Returns the weights of samples, whose mean over all devices is 1."""
    kl = jax.lax.stop_gradient(jnp.maximum(kl, 0.0))
    mean = jnp.mean(kl) if axis_name is None else jax.lax.pmean(jnp.mean(kl), axis_name)
    return 1 - surprise + surprise * kl / jnp.maximum(mean, 1e-9)


def learning_rate(config: LearnerConfig) -> optax.Schedule:
    """Returns the schedule: a linear warm-up, then a cosine decay."""
    rate = optax.schedules.constant_schedule(config.learning_rate)
    if config.decay_steps:
        floor = config.final_learning_rate / config.learning_rate
        rate = optax.schedules.cosine_decay_schedule(
            config.learning_rate, config.decay_steps, floor
        )
    warmup = optax.schedules.linear_schedule(0.0, config.learning_rate, config.warmup_steps)
    return optax.schedules.join_schedules([warmup, rate], [config.warmup_steps])


def make_optimizer(config: LearnerConfig) -> optax.GradientTransformation:
    """Builds the optimizer: clipping, AdamW or SGD with momentum 0.9, and the schedule."""
    direction = optax.scale_by_adam() if config.optimizer == "adam" else optax.trace(0.9)
    limit = config.clip_norm
    if isinstance(limit, Tracer):
        limit = jnp.where(limit > 0, limit, jnp.inf)
    if not is_zero(limit):
        direction = optax.chain(optax.clip_by_global_norm(limit), direction)
    # Flattened to one vector, so that fewer operations are compiled.
    return optax.chain(
        optax.flatten(direction),
        optax.add_decayed_weights(config.weight_decay, _decays),
        optax.scale_by_learning_rate(learning_rate(config)),
    )


def _decays(params: Any) -> Any:
    def decays(path, _):
        return jax.tree_util.keystr(path[-1:], simple=True) not in ("bias", "scale")

    return jax.tree_util.tree_map_with_path(decays, params)


def _keep_type(mean: jax.Array, new: jax.Array) -> jax.Array:
    return mean.astype(new.dtype) if jnp.issubdtype(new.dtype, jnp.inexact) else new


def make_learner(
    network: Network,
    optimizer: optax.GradientTransformation,
    loss: Loss = alphazero_loss,
    steps: int = 128,
    ema_decay: float = 0.99,
) -> Learner:
    """Builds the learner of a network, with any optax optimizer.

    The terms of the loss, see `alphazero_loss`, become metrics under their names; the learner
    averages them over devices. `steps` are optimizer steps per iteration.
    """

    def objective(params, statistics, samples: Sample, axis_name):
        variables = {"params": params, **statistics}
        outputs, statistics = network.train(variables, samples.planes, axis_name)
        total, terms = loss(outputs, params, samples, axis_name)
        if taken := sorted(terms.keys() & {"loss", "grad_norm", *Record.__dataclass_fields__}):
            raise ValueError(
                f"the loss has a term {taken[0]}, as the records do: choose another name"
            )
        return total, ({**terms, "loss": total}, statistics)

    def init(variables):
        copy = jax.tree.map(jnp.copy, variables)
        opt_state = optimizer.init(variables["params"])
        return LearnerState(variables, copy, opt_state, jnp.zeros((), jnp.int32))

    def update(state: LearnerState, samples: Sample, axis_name: str | None = None):
        statistics = dict(state.variables)
        params = statistics.pop("params")
        grads, (losses, statistics) = jax.grad(objective, has_aux=True)(
            params, statistics, samples, axis_name
        )
        vector, unravel = ravel_pytree(grads)  # One reduction for all leaves.
        if axis_name is not None:
            vector, losses = jax.lax.pmean((vector, losses), axis_name)
        change = mixes_types(optimizer.update)
        updates, opt_state = change(unravel(vector), state.opt_state, params)
        variables = {"params": optax.apply_updates(params, updates), **statistics}
        # As in TensorFlow's moving average: at first it covers few steps, to forget random weights.
        decay = jnp.minimum(ema_decay, (1 + state.step) / (10 + state.step))
        average = optax.incremental_update(variables, state.average, 1 - decay)
        average = jax.tree.map(_keep_type, average, variables)
        losses = losses | {"grad_norm": jnp.linalg.norm(vector)}
        return LearnerState(variables, average, opt_state, state.step + 1), losses

    return Learner(init, update, steps)


def configured_learner(config: LearnerConfig, network: Network) -> Learner:
    """Builds the learner from its settings."""
    loss: Any = functools.partial(
        alphazero_loss,
        value_weight=config.value_weight,
        l2=config.l2,
        policy_surprise=config.policy_surprise,
    )
    return make_learner(network, make_optimizer(config), loss, config.steps, config.ema_decay)
