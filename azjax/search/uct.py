"""UCT, classic Monte Carlo tree search (Kocsis and Szepesvári 2006)."""

import dataclasses
import functools
import math
from typing import Literal

import jax
import jax.numpy as jnp

from azjax._settings import NonNegative, Simulations, check
from azjax.search.algorithm import (
    Engine,
    Roots,
    Selection,
    draw_by_visits,
    make_result,
    visit_shares,
)
from azjax.search.expand import split_each
from azjax.search.tree import ROOT, Tree, legal_actions


@dataclasses.dataclass(frozen=True)
class UCT:
    """Classic search: `argmax Q + C sqrt(ln(N + 1) / n)`, every action once before that.

    It knows no priors and is at its best with random rollouts.
    """

    algorithm: Literal["uct"] = "uct"
    """Classic search, without priors."""
    num_simulations: Simulations = 32
    """Positions evaluated per move, without the root."""
    exploration: NonNegative = math.sqrt(2)
    """Weight C of the confidence bound. UCB1 (Auer et al. 2002): sqrt(2), for rewards in
    [0, 1]."""
    engine: Engine = "azjax"
    """Which loop grows the trees: azjax's own, or that of mctx.search, with the same results."""

    is_deterministic = False  # It tries actions in random order.

    def __post_init__(self):
        check("search", self)

    def select(self, roots: Roots) -> Selection:
        """Puts a random order of the actions in the place of the priors."""
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
    """Replaces logits `[B, A]` by uniform numbers; each position draws with its own key `[B]`."""
    shape = logits.shape[1:]
    return jax.vmap(lambda key: jax.random.uniform(key, shape, jnp.float32))(keys)


def uct_action(settings: UCT, tree: Tree, node: jax.Array) -> jax.Array:
    """Chooses the action to follow from one node of one tree by UCB1.

    The score is `V + C sqrt(ln(N + 1) / n)` (Kocsis and Szepesvári 2006), with the mean V
    in [-1, 1] for the player to move, `n` the action's visits and `N` those of the node,
    its own rollout among them; the root has none. Untried actions come first, in the random
    order that stands in the place of the priors; of equal scores the one tried first wins.
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
    """Returns the action of highest score, and of several the one expanded first."""
    tied = score == jnp.max(score, axis=-1, keepdims=True)
    never = jnp.iinfo(index.dtype).max
    return jnp.argmin(jnp.where(tied, index, never), axis=-1).astype(jnp.int32)
