"""UCT, classic Monte Carlo tree search (Kocsis and Szepesvári 2006)."""

import dataclasses
import functools
import math
from typing import Literal

import jax
import jax.numpy as jnp

from azjax._settings import NonNegative, Settings, Simulations
from azjax.search.algorithm import (
    ROOT,
    Roots,
    Selection,
    Tree,
    draw_by_visits,
    legal_actions,
    make_result,
    split_each,
    visit_shares,
)


@dataclasses.dataclass(frozen=True)
class UCT(Settings, section="search"):
    """Classic search: every action once, then `argmax Q + C sqrt(ln(N + 1) / n)`.

    It ignores priors and is usually combined with random rollouts.
    """

    algorithm: Literal["uct"] = dataclasses.field(default="uct", kw_only=True)
    """Classic search, without priors."""
    num_simulations: Simulations = 32
    """Positions evaluated per move, without the root."""
    exploration: NonNegative = math.sqrt(2)
    """Weight C of the confidence bound. UCB1 (Auer et al. 2002): sqrt(2), for rewards in
    [0, 1]."""

    is_deterministic = False  # It tries new actions in random order.

    def select(self, roots: Roots) -> Selection:
        """Selects by `uct_action`; random numbers in place of priors order the untried actions."""
        keys_order, keys_action = split_each(roots.keys)

        def finish(tree):
            visits = tree.children_visits[:, ROOT]
            first = _earliest(visits, tree.children_index[:, ROOT])
            drawn = jax.vmap(draw_by_visits)(keys_action, visits, roots.temperature)
            action = jnp.where(roots.temperature > 0, drawn, first)
            result = make_result(tree, action, visit_shares(tree))
            value = jnp.sum(result.action_weights * result.q_values, axis=-1)
            return result._replace(value=value, prior=None)

        select = functools.partial(uct_action, self)
        logits = random_order(keys_order, roots.logits)
        return Selection(logits, select, select, finish, prior=random_order)


def random_order(keys: jax.Array, logits: jax.Array) -> jax.Array:
    """Replaces logits `[B, A]` with uniform random numbers, drawn with one key `[B]` per row."""
    shape = logits.shape[1:]
    return jax.vmap(lambda key: jax.random.uniform(key, shape, jnp.float32))(keys)


def uct_action(settings: UCT, tree: Tree, node: jax.Array) -> jax.Array:
    """Chooses an action in one node of one tree by UCB1.

    The score is `Q + C sqrt(ln(N + 1) / n)` (Kocsis and Szepesvári 2006), with Q in [-1, 1] for
    the player to move, `n` the action's visits and `N` the node's. `N` counts the node's own
    rollout, except at the root. Untried actions come first, in the random order stored as prior
    logits. Ties go to the action tried first.
    """
    visits = tree.children_visits[node]
    order = tree.children_prior_logits[node]
    untried = legal_actions(tree, node) & (visits == 0)
    total = (tree.node_visits[node] - (node == ROOT).astype(jnp.int32)).astype(jnp.float32)
    bound = settings.exploration * jnp.sqrt(
        jnp.log1p(total) / jnp.maximum(visits, 1).astype(jnp.float32)
    )
    score = jnp.where(visits > 0, tree.qvalues(node) + bound, -jnp.inf)
    score = jnp.where(jnp.isnan(score), jnp.inf, score)
    tried = _earliest(score, tree.children_index[node])
    first = jnp.argmax(jnp.where(untried, order, -jnp.inf))
    return jnp.where(jnp.any(untried), first, tried).astype(jnp.int32)


def _earliest(score: jax.Array, index: jax.Array) -> jax.Array:
    """Returns the action with the highest score; ties go to the one expanded first."""
    tied = score == jnp.max(score, axis=-1, keepdims=True)
    never = jnp.iinfo(index.dtype).max
    return jnp.argmin(jnp.where(tied, index, never), axis=-1).astype(jnp.int32)
