"""Gumbel AlphaZero (Danihelka et al. 2022, "Policy improvement by planning with Gumbel")."""

import dataclasses
import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from azjax._settings import NonNegative, Positive, Settings, Simulations, mixes_types
from azjax.search.algorithm import (
    ROOT,
    Roots,
    Selection,
    Tree,
    legal_actions,
    make_result,
    mask_logits,
)

_sigma: Any = mixes_types(mctx.qtransform_completed_by_mix_value)
_select: Any = mixes_types(mctx.gumbel_muzero_interior_action_selection)


@dataclasses.dataclass(frozen=True)
class Gumbel(Settings, section="search"):
    """Gumbel AlphaZero: sequential halving at the root, the improved policy below it.

    The improved policy is `softmax(logits + sigma(Q))`, with
    `sigma(Q) = (maxvisit_init + max_b N(b)) * value_scale * Q` and Q scaled to [0, 1]; the Q of an
    unvisited action is a mean of the node's value and of the others (paper, appendix D). The root
    plays the largest `gumbel + logits + sigma(Q)` of the most visited actions. Below it, the search
    takes the largest `improved - N / (1 + sum N)`.
    """

    algorithm: Literal["gumbel"] = dataclasses.field(default="gumbel", kw_only=True)
    """Gumbel AlphaZero's search."""
    num_simulations: Simulations = 32
    """Positions evaluated per move, without the root. Paper: 2 to 200 in Go."""
    gumbel_scale: NonNegative = 1.0
    """Scale of the noise that chooses among the root's actions. Paper: 1."""
    max_considered_actions: Positive = 16
    """Root actions that sequential halving starts with. Paper: 16."""
    value_scale: NonNegative = 0.1
    """Weight of Q, scaled to [0, 1], against the prior's logits. Paper: 1 in board games, 0.1 in
    Atari."""
    maxvisit_init: NonNegative = 50.0
    """Constant that is added to the largest visit count; the weight of Q is multiplied by the sum.
    Paper: 50."""

    is_deterministic = True  # Without noise, ties go to the lowest action.

    def select(self, roots: Roots) -> Selection:
        """Selects by sequential halving at the roots; the only random draw is the Gumbel noise."""
        num_actions = roots.legal.shape[-1]
        gumbel = jnp.zeros(roots.legal.shape, jnp.float32)
        if roots.add_noise is not False:
            draw = functools.partial(jax.random.gumbel, shape=(num_actions,), dtype=jnp.float32)
            scale = jnp.where(roots.add_noise, jnp.float32(self.gumbel_scale), 0.0)
            gumbel = scale[:, None] * jax.vmap(draw)(roots.keys)
        most = min(self.max_considered_actions, num_actions)
        budget = self.num_simulations
        schedules = np.array([visits_wanted(n, budget) for n in range(most + 1)], np.int32)
        considered = jnp.minimum(most, jnp.sum(roots.legal, axis=-1, dtype=jnp.int32))
        # The paper's Q has a range of 1. Here it is in [-1, 1], so half the scale is equivalent.
        qtransform = functools.partial(
            _sigma,
            value_scale=self.value_scale / 2,
            maxvisit_init=self.maxvisit_init,
            rescale_values=False,
        )

        def finish(tree):
            completed = jax.vmap(qtransform, in_axes=(0, None))(tree, ROOT)
            improved = mask_logits(roots.legal, roots.logits + completed)
            visits = tree.children_visits[:, ROOT]
            finalist = visits == jnp.max(visits, axis=-1, keepdims=True)
            action = jnp.argmax(jnp.where(finalist, gumbel + improved, -jnp.inf), axis=-1)
            weights = jnp.where(roots.legal, jax.nn.softmax(improved), 0.0)
            return make_result(tree, action, weights)

        return Selection(
            logits=roots.logits,
            at_root=functools.partial(_halving_action, qtransform),
            below=functools.partial(_improved_action, qtransform),
            finish=finish,
            extra=(gumbel, jnp.asarray(schedules)[considered]),
        )


def visits_wanted(considered: int, budget: int) -> list[int]:
    """Returns, for each of `budget` simulations, the visits of the action that it is to visit.

    This is sequential halving (Karnin et al. 2013): each phase takes an equal share of the budget
    and passes the better half of its actions on to the next phase. The first phase has
    `considered` actions, and the last one two, which also get what is left of the budget.
    """
    wanted, visits, left = [], 0, max(1, considered)
    phases = max(1, (left - 1).bit_length())
    while len(wanted) < budget:
        for _ in range(max(1, budget // (phases * left))):  # Visits per action in this phase.
            wanted += left * [visits]
            visits += 1
        left = max(2, left // 2) if left > 1 else 1
    return wanted[:budget]


def _halving_action(qtransform: Any, tree: Tree, node: jax.Array) -> jax.Array:
    """Chooses at the root: the best action with the visit count that the schedule requires."""
    gumbel, wanted = tree.extra_data
    visits, logits = tree.children_visits[node], tree.children_prior_logits[node]
    score = jnp.maximum(-1e9, gumbel + logits - jnp.max(logits) + qtransform(tree, node))
    eligible = (visits == wanted[jnp.sum(visits)]) & ~tree.root_invalid_actions
    return jnp.argmax(jnp.where(eligible, score, -jnp.inf)).astype(jnp.int32)


def _improved_action(qtransform: Any, tree: Tree, node: jax.Array) -> jax.Array:
    """Chooses below the root; the visit counts follow the improved policy."""
    action = _select(None, tree, node, None, qtransform=qtransform)
    legal = legal_actions(tree, node)  # mctx selects action 0 if a value is NaN.
    return jnp.where(legal[action], action, jnp.argmax(legal)).astype(jnp.int32)
