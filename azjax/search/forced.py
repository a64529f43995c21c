"""PUCT's root in self-play, beyond AlphaZero: forced playouts, and trees that continue.

With noise, every root action that was visited gets at least `sqrt(k P N)` visits. Those that its
value does not deserve are left out of the policy target (Wu 2019, section 3.2). Visits of an
earlier search count in neither, since they would suppress exploration.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from azjax.search.algorithm import (
    ROOT,
    Roots,
    Selection,
    Tree,
    draw_by_visits,
    make_result,
    visit_shares,
)


def with_forced(
    plain: Selection, roots: Roots, keys: jax.Array, k: float, score: Callable
) -> Selection:
    """Returns PUCT's selection with `k`; it is `plain` without `k` and without trees to continue.

    `score(tree, node, old)` is `puct_terms`, and `keys [B]` draw the actions.
    """
    forces = roots.add_noise is not False and (type(k) is not float or k > 0)
    if not forces and roots.tree is None:
        return plain
    noisy = jnp.broadcast_to(forces and roots.add_noise, roots.temperature.shape)
    old = jnp.zeros(roots.legal.shape, jnp.int32)
    if roots.add_noise is not False and roots.tree is not None:
        old = jnp.where(roots.add_noise[:, None], roots.tree.children_visits[:, ROOT], old)

    def at_root(tree, node):
        noisy, old = tree.extra_data
        _, prior, _, scores = score(tree, node, old)
        visits = tree.children_visits[node] - old
        forced = (visits > 0) & (visits < count_forced(k, prior, visits))
        return jnp.argmax(jnp.where(noisy & forced, jnp.inf, scores)).astype(jnp.int32)

    def finish(tree):
        visits = tree.children_visits[:, ROOT] - old
        action = jax.vmap(draw_by_visits)(keys, visits, roots.temperature)
        weights = visit_shares(tree, old)
        if forces:
            pruned = jax.vmap(functools.partial(prune_forced, k, score))(tree, visits)
            weights = jnp.where(noisy[:, None], pruned, weights)
        return make_result(tree, action, weights)

    return plain._replace(at_root=at_root, finish=finish, extra=(noisy, old))


def count_forced(k: float, prior: jax.Array, visits: jax.Array) -> jax.Array:
    """Returns `float32 [A]`, the visits that every root action gets."""
    return jnp.sqrt(k * prior * jnp.sum(visits).astype(jnp.float32))


def prune_forced(k: float, score: Callable, tree: Tree, visits: jax.Array) -> jax.Array:
    """Returns the policy target `float32 [A]` of one tree, without visits that were only forced.

    Up to the forced number of visits is taken from each action but the most visited one, as long as
    its score stays below that one's. An action that is left with a single visit loses it as well.
    """
    q, prior, bonus, scores = score(tree, jnp.int32(ROOT), tree.children_visits[ROOT] - visits)
    best = jnp.argmax(visits)
    counts = visits.astype(jnp.float32)
    lead = scores[best] - q
    deserved = jnp.ceil(bonus * (1 + counts) / jnp.maximum(lead, 1e-9)) - 1
    least = counts - jnp.floor(count_forced(k, prior, visits))
    kept = jnp.clip(jnp.maximum(deserved, least), 0, counts)
    kept = jnp.where((kept <= 1) & (kept < counts), 0.0, kept).at[best].set(counts[best])
    return kept / jnp.sum(kept)
