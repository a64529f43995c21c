"""The search of each move in self-play: how long it is, and what it keeps of the previous one.

AlphaZero searches equally long in every move, from an empty tree. With playout caps (Wu 2019,
section 3.1), only a share of the moves have a full search; with `selfplay.reuse`, a search
continues the tree of the game's previous move.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import State
from azjax.search import Tree, make_search, reroot
from azjax.training.parts import Parts, SelfPlayConfig
from azjax.training.targets import Sample


class Found(NamedTuple):
    """The results of a search that self-play uses; see `targets.Transition`."""

    action: jax.Array
    action_weights: jax.Array
    root_value: jax.Array
    extra: Any
    tree: Tree | None  # What the next search continues; None without `selfplay.reuse`.


def make_searches(parts: Parts, params: Any) -> Callable[..., Found]:
    """Builds `(is_full [], keys [B], states, temperature [B], tree) -> Found`."""
    config = parts.selfplay

    def find(
        algorithm: Any, noise: bool, keys: jax.Array, states: State, temperature: jax.Array, tree
    ) -> Found:
        search = make_search(algorithm, parts.game, parts.evaluate, config.engine)
        result = search(params, keys, states, temperature, add_noise=noise, tree=tree)
        return Found(
            action=result.action,
            action_weights=result.action_weights,
            root_value=parts.targets.root_value(result),
            extra=parts.targets.note(result),
            tree=reroot(result.tree, result.action, config.reuse) if config.reuse else None,
        )

    full = functools.partial(find, parts.search, True)
    if config.full_moves == config.unroll_length:
        return lambda is_full, *given: full(*given)
    shorter: Any = parts.search
    shorter = dataclasses.replace(shorter, num_simulations=config.fast_simulations)
    fast = functools.partial(find, shorter, False)
    return lambda is_full, *given: jax.lax.cond(is_full, full, fast, *given)


def first_tree(config: SelfPlayConfig, search: Callable[..., Found], *given: Any) -> Tree | None:
    """Returns empty trees of the shapes that `search(*given, tree)` returns, or None."""
    if not config.reuse:
        return None
    shapes = jax.eval_shape(lambda: search(*given, None).tree)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


def first_moves(config: SelfPlayConfig) -> jax.Array:
    """Returns the schedule whose first moves have a full search, `bool [T]`."""
    return jnp.arange(config.unroll_length) < config.full_moves


def draw_moves(config: SelfPlayConfig, key: jax.Array) -> jax.Array:
    """Draws which moves of an iteration have a full search, `bool [T]`, the same for all games."""
    moves = first_moves(config)
    return moves if config.full_moves == len(moves) else jax.random.permutation(key, moves)


def keep_full(config: SelfPlayConfig, schedule: jax.Array, samples: Sample) -> Sample:
    """Returns the samples `[F, B, ...]` of moves with a full search, of those of all moves."""
    if config.full_moves == config.unroll_length:
        return samples
    rows = jnp.argsort(~schedule)[: config.full_moves]
    return jax.tree.map(lambda leaf: leaf[rows], samples)


def count_evaluations(parts: Parts) -> int:
    """Returns the network evaluations of one iteration of self-play, over all devices."""
    config, full = parts.selfplay, parts.selfplay.full_moves
    fast = (config.unroll_length - full) * (config.fast_simulations + 1)
    return config.games * (full * (parts.search.num_simulations + 1) + fast)
