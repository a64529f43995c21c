# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false, reportIndexIssue=false, reportArgumentType=false
"""PUCT, AlphaZero's search (Silver et al. 2018, Methods, "Search")."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.search.plan import NEVER, Plan, SearchConfig, draw_by_visits, make_result


def plan_puct(config, root, invalid, keys, temperature, explore) -> Plan:
    """AlphaZero's search: `argmax Q + c P sqrt(N) / (1 + n)` at every node."""
    keys = jax.vmap(jax.random.split)(keys)
    key_noise, key_action = keys[:, 0], keys[:, 1]
    if explore:
        root = root.replace(prior_logits=_with_dirichlet(config, key_noise, root, invalid))

    def finish(tree):
        visits = tree.children_visits[:, tree.ROOT_INDEX]
        action = jax.vmap(draw_by_visits)(key_action, visits, temperature)
        return make_result(tree, action, visits / jnp.sum(visits, axis=-1, keepdims=True))

    select = functools.partial(puct_action, config)
    return Plan(root, invalid, select, select, finish)


class Terms(NamedTuple):
    """What PUCT sees of the actions of one node; every leaf is `[A]`.

    Attributes:
      q: the mean outcome for the player to move, or the first-play urgency where unvisited.
      prior: the prior's probabilities; 0 where illegal.
      bonus: `c_puct P sqrt(N) / (1 + n)`.
      score: `q + bonus`; -inf where illegal.
    """

    q: jax.Array
    prior: jax.Array
    bonus: jax.Array
    score: jax.Array


def puct_terms(config: SearchConfig, tree: mctx.Tree, node: jax.Array) -> Terms:
    """Scores the actions of one node of one tree.

    The score is `Q + c_puct P sqrt(N) / (1 + n)` (Silver et al. 2018), with Q in [-1, 1]
    for the player to move, `N` the node's visits and `n` the action's.
    """
    visits = tree.children_visits[node]
    logits = tree.children_prior_logits[node]
    unvisited = {"zero": 0.0, "parent": tree.node_values[node], "loss": -1.0}
    q = jnp.where(visits > 0, tree.qvalues(node), unvisited[config.first_play_urgency])
    prior = jax.nn.softmax(logits)
    exploration = prior * jnp.sqrt(tree.node_visits[node].astype(jnp.float32))
    bonus = config.c_puct * exploration / (1 + visits)
    return Terms(q, prior, bonus, jnp.where(logits > NEVER, q + bonus, -jnp.inf))


def puct_action(config: SearchConfig, tree: mctx.Tree, node: jax.Array) -> jax.Array:
    """Chooses the action of highest score in one node of one tree; ties go to the lowest."""
    return jnp.argmax(puct_terms(config, tree, node).score).astype(jnp.int32)


def _with_dirichlet(config: SearchConfig, keys, root, invalid):
    """Mixes Dirichlet noise over the *legal* actions into the root's prior.

    A Dirichlet draw restricted to a subset is Gamma draws, masked, then normalised.
    """
    alpha, fraction = config.dirichlet_alpha, config.dirichlet_fraction
    num_actions = invalid.shape[-1]
    gammas = jax.vmap(lambda key: jax.random.loggamma(key, alpha, (num_actions,)))(keys)
    noise = jax.nn.softmax(jnp.where(invalid, NEVER, gammas))
    prior = (1 - fraction) * jax.nn.softmax(root.prior_logits) + fraction * noise
    return jnp.where(invalid, NEVER, jnp.log(jnp.maximum(prior, 1e-30)))
