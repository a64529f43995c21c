# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false, reportIndexIssue=false, reportArgumentType=false
"""UCT, classic Monte Carlo tree search (Kocsis and Szepesvári 2006)."""

import functools

import jax
import jax.numpy as jnp
import mctx

from azjax.search.plan import NEVER, Plan, SearchConfig, draw_by_visits, make_result

_UNTRIED = 1e6  # The score of an untried action, above all others.


def plan_uct(config, root, invalid, keys, temperature) -> Plan:
    """Classic search: `argmax Q + C sqrt(ln(N + 1) / n)`, every action once before that."""

    def finish(tree):
        visits = tree.children_visits[:, tree.ROOT_INDEX]
        first = _earliest(visits, tree.children_index[:, tree.ROOT_INDEX])
        drawn = jax.vmap(draw_by_visits)(keys, visits, temperature)
        action = jnp.where(temperature > 0, drawn, first)
        result = make_result(tree, action, visits / jnp.sum(visits, axis=-1, keepdims=True))
        return result._replace(value=jnp.sum(result.action_weights * result.q_values, axis=-1))

    select = functools.partial(uct_action, config)
    return Plan(root, invalid, select, select, finish)


def uct_action(config: SearchConfig, tree: mctx.Tree, node: jax.Array) -> jax.Array:
    """Chooses the action to follow from one node of one tree by UCB1.

    The score is `V + C sqrt(ln(N + 1) / n)` (Kocsis and Szepesvári 2006), with the mean V
    in [-1, 1] for the player to move, `n` the action's visits and `N` those of the node,
    its own rollout among them; the root has none. Untried actions come first, in the random
    order that stands in the place of the priors; of equal scores the one tried first wins.
    """
    visits = tree.children_visits[node]
    order = tree.children_prior_logits[node]
    legal = order > NEVER
    total = (tree.node_visits[node] - (node == tree.ROOT_INDEX)).astype(jnp.float32)
    bound = config.exploration * jnp.sqrt(jnp.log1p(total) / jnp.maximum(visits, 1))
    score = jnp.where(visits > 0, tree.qvalues(node) + bound, _UNTRIED + order)
    return _earliest(jnp.where(legal, score, -jnp.inf), tree.children_index[node])


def _earliest(score, index):
    """Returns the action of highest score, and of several the one expanded first."""
    tied = score == jnp.max(score, axis=-1, keepdims=True)
    never = jnp.iinfo(index.dtype).max
    return jnp.argmin(jnp.where(tied, index, never), axis=-1).astype(jnp.int32)
