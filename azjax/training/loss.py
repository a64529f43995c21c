"""The loss of AlphaZero (Silver et al. 2017, Eq. 1)."""

from collections.abc import Callable
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from azjax.games.base import describe
from azjax.training.targets import Sample

Losses = dict[str, jax.Array]  # The terms by name, each `float32 []`.
Loss = Callable[[Any, Any, Sample, str | None], tuple[jax.Array, Losses]]
"""`(outputs, params, samples, axis_name) -> (total, terms)`; see `alphazero_loss`."""


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

    A custom loss takes the first four arguments, and returns a total and its terms, as this one
    does. It may read further outputs of the network, and `samples.extra`. `axis_name` is the mesh
    axis that the batch is split over.

    With `policy_surprise` s, the cross-entropy of a sample has the weight `1 - s + s * KL / mean
    KL`, where KL is the divergence of the target from the network's policy. KataGo instead puts
    surprising samples into its buffer more often (Wu 2020, policy surprise weighting).

    Returns:
      The total to minimize, and its terms by name, each a mean over the batch: `value_loss`,
      `(z - v)^2`; `policy_loss`, the cross-entropy over legal actions; `policy_kl`, the same minus
      the entropy of the target; `l2`, which is `l2 ||theta||^2`.
    """
    logits, value, *_ = outputs
    chex.assert_equal_shape([logits, samples.policy, samples.legal])
    chex.assert_equal_shape([value, samples.value])  # Other shapes would broadcast.
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
    """Checks that a loss returned a scalar total and a dictionary of scalar terms."""
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
        if name == "total":  # Integers have no gradient.
            fits = fits and jnp.issubdtype(jnp.result_type(value), jnp.floating)
        if not fits:
            raise ValueError(
                f"the {name} of the loss is {describe(value)}: make it float32 [], such as a mean "
                "over the batch"
            )
    return total, terms
