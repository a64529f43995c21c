"""Functions of other packages, for users who have JAX check types and shapes strictly.

With `jax_numpy_dtype_promotion` at `strict` or `jax_numpy_rank_promotion` at `raise`, JAX refuses
to mix types or ranks in one operation. This package mixes neither; mctx, flashbax and optax do.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax


def mixing(function: Callable) -> Any:
    """Wraps a function that mixes types and ranks, so that both settings leave it alone."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return function(*args, **kwargs)

    return call
