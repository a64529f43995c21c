# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false, reportIndexIssue=false, reportArgumentType=false, reportOperatorIssue=false
"""Gumbel AlphaZero (Danihelka et al. 2022, "Policy improvement by planning with Gumbel")."""

import functools
import math

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from azjax.search.plan import NEVER, Plan, make_result


def considered_visits(max_considered: int, num_simulations: int) -> np.ndarray:
    """The order of sequential halving (Karnin et al. 2013), as Gumbel AlphaZero uses it.

    Returns:
      `int32 [max_considered + 1, num_simulations]`: in row `m`, with `m` actions to consider,
      the number of visits that the action to visit next has had.
    """
    table = np.zeros((max_considered + 1, num_simulations), np.int32)
    for considered, row in enumerate(table):
        filled, visits, left = 0, 0, max(considered, 1)
        halvings = max(math.ceil(math.log2(left)), 1)
        while filled < num_simulations:
            more = max(1, num_simulations // (halvings * left))  # For each of those left.
            phase = np.repeat(np.arange(visits, visits + more), left)
            row[filled : filled + len(phase)] = phase[: num_simulations - filled]
            filled, visits = filled + len(phase), visits + more
            left = max(2, left // 2) if considered > 1 else 1
    return table


def plan_gumbel(config, root, invalid, keys, explore, schedule) -> Plan:
    """Gumbel AlphaZero: sequential halving at the root, the improved policy below it."""
    num_actions = invalid.shape[-1]
    max_considered = min(config.max_considered_actions, num_actions)
    gumbel = jnp.zeros(invalid.shape)
    if explore:
        draw = functools.partial(jax.random.gumbel, shape=(num_actions,))
        gumbel = config.gumbel_scale * jax.vmap(draw)(keys)
    if schedule is None:
        schedule = considered_visits(max_considered, config.num_simulations)
    considered = jnp.minimum(max_considered, jnp.sum(~invalid, axis=-1))
    # Q is already in [-1, 1]; halving it gives the paper's unit range without stretching.
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale / 2,
        maxvisit_init=config.maxvisit_init,
        rescale_values=False,
    )

    def select_below(tree, node):
        return mctx.gumbel_muzero_interior_action_selection(
            None, tree, node, None, qtransform=qtransform
        )

    def finish(tree):
        completed = jax.vmap(qtransform, in_axes=(0, None))(tree, tree.ROOT_INDEX)
        improved = jnp.where(invalid, NEVER, root.prior_logits + completed)
        visits = tree.children_visits[:, tree.ROOT_INDEX]
        finalist = visits == jnp.max(visits, axis=-1, keepdims=True)
        action = jnp.argmax(jnp.where(finalist, gumbel + improved, -jnp.inf), axis=-1)
        return make_result(tree, action.astype(jnp.int32), jax.nn.softmax(improved))

    extra = (gumbel, jnp.asarray(schedule)[considered])
    select_root = functools.partial(_halving_action, qtransform)
    return Plan(root, invalid, select_root, select_below, finish, extra)


def _halving_action(qtransform, tree: mctx.Tree, node: jax.Array) -> jax.Array:
    """Chooses at the root: the best of those that sequential halving has come to."""
    gumbel, visits_wanted = tree.extra_data
    visits = tree.children_visits[node]
    logits = tree.children_prior_logits[node]
    score = jnp.maximum(-1e9, gumbel + logits - jnp.max(logits) + qtransform(tree, node))
    eligible = (visits == visits_wanted[jnp.sum(visits)]) & ~tree.root_invalid_actions
    return jnp.argmax(jnp.where(eligible, score, -jnp.inf)).astype(jnp.int32)
