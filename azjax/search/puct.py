"""PUCT, AlphaZero's search (Silver et al. 2018, Methods, "Search")."""

import dataclasses
import functools
from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from azjax._settings import Fraction, NonNegative, Range, Settings, Simulations
from azjax.search.algorithm import (
    ROOT,
    Roots,
    Selection,
    Tree,
    draw_by_visits,
    legal_actions,
    make_result,
    mask_logits,
    split_each,
    visit_shares,
)


@dataclasses.dataclass(frozen=True)
class PUCT(Settings, section="search"):
    """AlphaZero's search: `argmax Q + c P sqrt(N) / (1 + n)` at every node.

    In the paper, `c` grows slowly with `N`; here it is constant.
    """

    algorithm: Literal["puct"] = dataclasses.field(default="puct", kw_only=True)
    """AlphaZero's search."""
    num_simulations: Simulations = 32
    """Positions evaluated per move, without the root. AlphaZero: 800."""
    c_puct: NonNegative = 1.25
    """Weight of the prior's exploration bonus. AlphaZero: 1.25, with Q in [0, 1]; with Q in
    [-1, 1], as here, that is 2.5."""
    first_play_urgency: Literal["zero", "parent", "loss"] = "zero"
    """Value assumed for an unvisited action: 0, the node's own, or -1. AlphaZero: 0 with values in
    [0, 1], which is `loss` here."""
    dirichlet_alpha: Annotated[float, Range(0, excludes="low")] = 0.3
    """Concentration of the root noise over the legal actions. AlphaZero: 0.3 in chess, about
    10 / (number of legal actions)."""
    dirichlet_fraction: Fraction = 0.25
    """Share of the noise in the root's prior. AlphaZero: 0.25."""

    is_deterministic = True  # Ties go to the lowest action.

    def select(self, roots: Roots) -> Selection:
        """Selects by `puct_action`, with noise in the roots' priors; draws the move by visits."""
        key_noise, key_action = split_each(roots.keys)
        logits = with_dirichlet(
            roots, key_noise, alpha=self.dirichlet_alpha, fraction=self.dirichlet_fraction
        )

        def finish(tree):
            visits = tree.children_visits[:, ROOT]
            action = jax.vmap(draw_by_visits)(key_action, visits, roots.temperature)
            return make_result(tree, action, visit_shares(tree))

        act = functools.partial(puct_action, self)
        return Selection(logits, at_root=act, below=act, finish=finish)


def puct_action(settings: PUCT, tree: Tree, node: jax.Array) -> jax.Array:
    """Returns the action with the highest `Q + c_puct P sqrt(N) / (1 + n)` in a node of one tree.

    `N` is the node's visit count, `n` are those of its actions, and P is the prior (Silver et al.
    2018). Q is in [-1, 1], for the player to move. Ties go to the lowest action.
    """
    visits, value = tree.children_visits[node], tree.node_values[node]
    unvisited = {"zero": 0.0, "parent": value, "loss": -1.0}[settings.first_play_urgency]
    q = jnp.where(visits > 0, tree.qvalues(node), unvisited)
    prior = jax.nn.softmax(tree.children_prior_logits[node])
    exploration = prior * jnp.sqrt(tree.node_visits[node].astype(jnp.float32))
    bonus = settings.c_puct * exploration / (1 + visits).astype(jnp.float32)
    score = jnp.where(legal_actions(tree, node), q + bonus, -jnp.inf)
    return jnp.argmax(score).astype(jnp.int32)


def with_dirichlet(roots: Roots, keys: jax.Array, *, alpha: float, fraction: float) -> jax.Array:
    """Returns the roots' logits `float32 [B, A]`, with Dirichlet noise where `roots.add_noise`.

    The noise is over the *legal* actions: gamma draws, masked and normalized, are a Dirichlet draw.
    """
    if roots.add_noise is False:
        return roots.logits
    num_actions = roots.legal.shape[-1]
    draw = functools.partial(jax.random.loggamma, a=alpha, shape=(num_actions,), dtype=jnp.float32)
    noise = jax.nn.softmax(mask_logits(roots.legal, jax.vmap(draw)(keys)))
    prior = (1 - fraction) * jax.nn.softmax(roots.logits) + fraction * noise
    noisy = mask_logits(roots.legal, jnp.log(jnp.maximum(prior, 1e-30)))
    return jnp.where(roots.add_noise[:, None], noisy, roots.logits)
