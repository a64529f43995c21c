"""The loss (Silver et al. 2017, Eq. 1)."""

from collections.abc import Callable
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from azjax.games.base import describe
from azjax.training.targets import Sample

Losses = dict[str, jax.Array]  # By name; each `float32 []`.
Loss = Callable[[Any, Any, Sample, str | None], tuple[jax.Array, Losses]]


def policy_loss(logits: jax.Array, policy: jax.Array, legal: jax.Array) -> jax.Array:
    """Cross-entropy `-sum pi log p` of each row, with `p` normalized over its legal actions.

    Args:
      logits: `float32 [B, A]`.
      policy: `float32 [B, A]`, the target.
      legal: `bool [B, A]`.
    """
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

    With a `policy_surprise` of s, the cross-entropy of a sample counts `1 - s + s * KL / mean KL`
    times, where KL is the divergence of the network's policy from its target: what is known
    already teaches less. KataGo has samples in its buffer as often (Wu 2020, policy surprise
    weighting).

    Args:
      outputs: the network's; logits `[B, A]` and value `[B]` come first.
      params: the network's.
      samples: `[B, ...]`.
      axis_name: the mesh axis over which the batch is spread; None if it is here as a whole.
      value_weight: of the value loss.
      l2: c of the term `c * ||theta||^2`.
      policy_surprise: s, in [0, 1].

    Returns:
      What is minimized, and its terms, means over the batch: `value_loss`, `(z - v)^2`;
      `policy_loss`, over legal actions; `policy_kl`, the same less the target's own entropy, 0
      when the policy is the target; `l2`.
    """
    logits, value, *_ = outputs
    chex.assert_equal_shape([logits, samples.policy, samples.legal])
    chex.assert_equal_shape([value, samples.value])  # Others would be broadcast.
    cross_entropy = policy_loss(logits, samples.policy, samples.legal)
    entropy = jnp.sum(jax.scipy.special.entr(samples.policy), axis=-1)
    policy = minimized = jnp.mean(cross_entropy)
    if policy_surprise:
        kl = jax.lax.stop_gradient(jnp.maximum(cross_entropy - entropy, 0.0))
        mean = jnp.mean(kl) if axis_name is None else jax.lax.pmean(jnp.mean(kl), axis_name)
        weights = 1 - policy_surprise + policy_surprise * kl / jnp.maximum(mean, 1e-9)
        minimized = jnp.mean(weights * cross_entropy)
    squared = jnp.mean(jnp.square(samples.value - value))
    penalty = (
        l2 * jnp.sum(jnp.square(ravel_pytree(params)[0])) if l2 else jnp.zeros((), jnp.float32)
    )
    losses = {"value_loss": squared, "policy_loss": policy, "policy_kl": policy - jnp.mean(entropy)}
    return minimized + value_weight * squared + penalty, losses | {"l2": penalty}


def check_losses(returned: Any) -> tuple[jax.Array, Losses]:
    """Refuses what a loss may not return."""
    total, terms = returned, None
    if isinstance(returned, tuple | list) and len(returned) == 2:
        total, terms = cast(Any, returned)
    if not (isinstance(terms, dict) and all(isinstance(name, str) for name in terms)):
        raise ValueError(
            f"the loss returns {describe(returned)}: return a pair, the total, float32 [], and a "
            "dictionary of its terms by name, which may be empty"
        )
    for name, value in {"total": total, **terms}.items():
        is_number = isinstance(value, jax.Array | np.ndarray | np.generic | float | int)
        fits = is_number and not jnp.shape(value)
        if name == "total":  # The gradient of a whole number is not defined.
            fits = fits and jnp.issubdtype(jnp.result_type(value), jnp.floating)
        if not fits:
            raise ValueError(
                f"the {name} of the loss is {describe(value)}: make it float32 [], such as a mean "
                "over the batch"
            )
    return total, terms
