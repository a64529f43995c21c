"""Calls to other packages under JAX's strict promotion settings.

With `jax_numpy_dtype_promotion="strict"` or `jax_numpy_rank_promotion="raise"`, JAX raises an error
where an operation mixes types or ranks. azjax never mixes them; mctx and optax do.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax


def mixing(function: Callable) -> Any:
    """Wraps a function that mixes types and ranks so that it works with these settings."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return function(*args, **kwargs)

    return call
