"""PUCT's root in self-play, beyond AlphaZero: forced playouts, and trees that continue.

With noise, every root action that was visited gets at least `sqrt(k P N)` visits. Those that its
value does not deserve are left out of the policy target (Wu 2019, section 3.2). Visits of an
earlier search count in neither, since they would suppress exploration.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.core import Tracer

from azjax.search.algorithm import (
    ROOT,
    Roots,
    Selection,
    Tree,
    draw_by_visits,
    legal_actions,
    make_result,
    visit_shares,
)


def explore_root(
    plain: Selection, roots: Roots, keys: jax.Array, k: float, terms: Callable
) -> Selection:
    """Returns PUCT's selection with forced playouts, at roots that may have visits already.

    `k` is 0 or `PUCT.forced_playouts`, `terms` is `puct_terms`, and `keys [B]` draw the actions.
    """
    forces = roots.add_noise is not False and not is_off(k)
    noisy = jnp.broadcast_to(forces and roots.add_noise, roots.temperature.shape)
    old = jnp.zeros(roots.legal.shape, jnp.int32)
    if roots.add_noise is not False and roots.tree is not None:
        old = jnp.where(roots.add_noise[:, None], roots.tree.children_visits[:, ROOT], old)

    def at_root(tree, node):
        noisy, old = tree.extra_data
        visits = tree.children_visits[node] - old
        q, prior, bonus = terms(tree, node, 1 + jnp.sum(visits), visits)
        score = jnp.where(legal_actions(tree, node), q + bonus, -jnp.inf)
        forced = (visits > 0) & (visits < count_forced(k, prior, visits))
        return jnp.argmax(jnp.where(noisy & forced, jnp.inf, score)).astype(jnp.int32)

    def finish(tree):
        visits = tree.children_visits[:, ROOT] - old
        action = jax.vmap(draw_by_visits)(keys, visits, roots.temperature)
        weights = visit_shares(tree, old)
        if forces:
            pruned = jax.vmap(functools.partial(prune_forced, k, terms))(tree, visits)
            weights = jnp.where(noisy[:, None], pruned, weights)
        return make_result(tree, action, weights)

    return plain._replace(at_root=at_root, finish=finish, extra=(noisy, old))


def is_off(k: float) -> bool:
    """Returns whether there are no forced playouts; a traced number may be any."""
    return not isinstance(k, Tracer) and k == 0


def count_forced(k: float, prior: jax.Array, visits: jax.Array) -> jax.Array:
    """Returns `float32 [A]`, the visits that every root action gets."""
    return jnp.sqrt(k * prior * jnp.sum(visits).astype(jnp.float32))


def prune_forced(k: float, terms: Callable, tree: Tree, visits: jax.Array) -> jax.Array:
    """Returns the policy target `float32 [A]` of one tree, without visits that were only forced.

    Up to the forced number of visits is taken from each action but the most visited one, as long as
    its score stays below that one's. An action that is left with a single visit loses it as well.
    """
    q, prior, bonus = terms(tree, jnp.int32(ROOT), 1 + jnp.sum(visits), visits)
    best = jnp.argmax(visits)
    counts = visits.astype(jnp.float32)
    lead = q[best] + bonus[best] - q
    deserved = jnp.ceil(bonus * (1 + counts) / jnp.maximum(lead, 1e-9)) - 1
    least = counts - jnp.floor(count_forced(k, prior, visits))
    kept = jnp.clip(jnp.maximum(deserved, least), 0, counts)
    kept = jnp.where((kept <= 1) & (kept < counts), 0.0, kept).at[best].set(counts[best])
    return kept / jnp.sum(kept)
