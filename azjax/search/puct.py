"""PUCT, AlphaZero's search (Silver et al. 2018, Methods, "Search")."""

import dataclasses
import functools
from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from azjax._settings import Fraction, NonNegative, Positive, Range, Simulations, check, is_zero
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
class PUCT:
    """AlphaZero's search: `argmax Q + c P sqrt(N) / (1 + n)` at every node.

    In the paper, `c` grows slowly with `N`; here it is constant.
    """

    algorithm: Literal["puct"] = "puct"
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
    forced_playouts: NonNegative = 0.0
    """With noise, every root action that was visited gets at least `sqrt(k P N)` visits; those that
    its value does not deserve are left out of the policy target (Wu 2019). This is `k`; 0: no such
    visits. KataGo: 2; AlphaZero: 0."""
    leaves: Positive = 1
    """Positions evaluated together in each tree: the largest divisor of `num_simulations` up to
    this number. More are faster in deep searches of few positions, and a little weaker.
    AlphaZero: 8."""

    is_deterministic = True  # Ties go to the lowest action.

    def __post_init__(self):
        check("search", self)

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
        plain = Selection(logits, act, act, finish)
        if roots.tree is None and (roots.add_noise is False or is_zero(self.forced_playouts)):
            return plain
        return explore_root(self, plain, roots, key_action)


def puct_action(settings: PUCT, tree: Tree, node: jax.Array) -> jax.Array:
    """Returns the action with the highest `Q + bonus` in one node of one tree.

    Ties go to the lowest.
    """
    visits = tree.children_visits[node]
    q, _, bonus = puct_terms(settings, tree, node, tree.node_visits[node], visits)
    score = jnp.where(legal_actions(tree, node), q + bonus, -jnp.inf)
    return jnp.argmax(score).astype(jnp.int32)


def puct_terms(
    settings: PUCT, tree: Tree, node: jax.Array, total: jax.Array, visits: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns Q, P and the bonus of the actions of one node of one tree, each `float32 [A]`.

    The bonus is `c_puct P sqrt(N) / (1 + n)` (Silver et al. 2018), where `N`, `total []`, are
    visits of the node and `n`, `visits [A]`, those of its actions. Q is in [-1, 1], for the player
    to move.
    """
    unvisited = {"zero": 0.0, "parent": tree.node_values[node], "loss": -1.0}
    is_visited = tree.children_visits[node] > 0
    q = jnp.where(is_visited, tree.qvalues(node), unvisited[settings.first_play_urgency])
    prior = jax.nn.softmax(tree.children_prior_logits[node])
    exploration = prior * jnp.sqrt(total.astype(jnp.float32))
    bonus = settings.c_puct * exploration / (1 + visits).astype(jnp.float32)
    return q, prior, bonus


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


# Beyond AlphaZero: forced playouts, and roots of trees that continue.


def explore_root(settings: PUCT, plain: Selection, roots: Roots, keys: jax.Array) -> Selection:
    """Returns a selection with forced playouts, at roots that may have visits already.

    With noise, every root action that was visited gets at least `sqrt(k P N)` visits. Those that
    its value does not deserve are left out of the policy target (Wu 2019, section 3.2). Visits of
    an earlier search count in neither, since they would suppress exploration. `keys [B]` draw the
    actions.
    """
    k = settings.forced_playouts
    forces = roots.add_noise is not False and not is_zero(k)
    noisy = jnp.broadcast_to(forces and roots.add_noise, roots.temperature.shape)
    old = jnp.zeros(roots.legal.shape, jnp.int32)
    if roots.add_noise is not False and roots.tree is not None:
        old = jnp.where(roots.add_noise[:, None], roots.tree.children_visits[:, ROOT], old)

    def at_root(tree, node):
        noisy, old = tree.extra_data
        visits = tree.children_visits[node] - old
        q, prior, bonus = puct_terms(settings, tree, node, 1 + jnp.sum(visits), visits)
        score = jnp.where(legal_actions(tree, node), q + bonus, -jnp.inf)
        forced = (visits > 0) & (visits < count_forced(k, prior, visits))
        return jnp.argmax(jnp.where(noisy & forced, jnp.inf, score)).astype(jnp.int32)

    def finish(tree):
        visits = tree.children_visits[:, ROOT] - old
        action = jax.vmap(draw_by_visits)(keys, visits, roots.temperature)
        weights = visit_shares(tree, old)
        if forces:
            pruned = jax.vmap(functools.partial(prune_forced, settings))(tree, visits)
            weights = jnp.where(noisy[:, None], pruned, weights)
        return make_result(tree, action, weights)

    return plain._replace(at_root=at_root, finish=finish, extra=(noisy, old))


def count_forced(k: float, prior: jax.Array, visits: jax.Array) -> jax.Array:
    """Returns `float32 [A]`, the visits that every root action gets."""
    return jnp.sqrt(k * prior * jnp.sum(visits).astype(jnp.float32))


def prune_forced(settings: PUCT, tree: Tree, visits: jax.Array) -> jax.Array:
    """Returns the policy target `float32 [A]` of one tree, without visits that were only forced.

    Up to the forced number of visits is taken from each action but the most visited one, as long as
    its score stays below that one's. An action that is left with a single visit loses it as well.
    """
    q, prior, bonus = puct_terms(settings, tree, jnp.int32(ROOT), 1 + jnp.sum(visits), visits)
    best = jnp.argmax(visits)
    counts = visits.astype(jnp.float32)
    lead = q[best] + bonus[best] - q
    deserved = jnp.ceil(bonus * (1 + counts) / jnp.maximum(lead, 1e-9)) - 1
    least = counts - jnp.floor(count_forced(settings.forced_playouts, prior, visits))
    kept = jnp.clip(jnp.maximum(deserved, least), 0, counts)
    kept = jnp.where((kept <= 1) & (kept < counts), 0.0, kept).at[best].set(counts[best])
    return kept / jnp.sum(kept)
