"""PUCT, AlphaZero's search (Silver et al. 2018, Methods, "Search")."""

import dataclasses
import functools
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from azjax._settings import Fraction, NonNegative, Positive, Range, Simulations, check
from azjax.search.algorithm import (
    ROOT,
    Engine,
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
    """Positions evaluated together in each tree, a divisor of `num_simulations`. More are faster in
    deep searches of few positions, and a little weaker. AlphaZero: 8."""
    engine: Engine = "azjax"
    """How the trees grow, always with the same results: in the loop of azjax or of mctx.search, or
    in simulations without loops (paths), which training and its players use on GPUs."""

    is_deterministic = True  # Ties go to the lowest action.

    def __post_init__(self):
        check("search", self)

    def select(self, roots: Roots) -> Selection:
        """Selects by `puct_action`, with noise in the roots' priors; draws the move by visits."""
        key_noise, key_action = split_each(roots.keys)
        logits = with_dirichlet(
            roots, key_noise, alpha=self.dirichlet_alpha, fraction=self.dirichlet_fraction
        )

        is_noisy = roots.add_noise is not False
        forces = is_noisy and (type(self.forced_playouts) is not float or self.forced_playouts > 0)
        # With noise, exploration ignores the visits of an earlier search.
        old: Any = 0
        if is_noisy and roots.tree is not None:
            old = jnp.where(roots.add_noise[:, None], roots.tree.children_visits[:, ROOT], 0)

        def at_root(tree, node):
            noisy, old = tree.extra_data
            terms = puct_terms(self, tree, node, old)
            forced = is_forced(self, terms, tree.children_visits[node] - old)
            return jnp.argmax(jnp.where(noisy & forced, jnp.inf, terms.score)).astype(jnp.int32)

        def finish(tree):
            visits = tree.children_visits[:, ROOT] - old
            action = jax.vmap(draw_by_visits)(key_action, visits, roots.temperature)
            weights = visit_shares(tree, old)
            if forces:
                pruned = jax.vmap(functools.partial(prune_forced, self))(tree, visits)
                weights = jnp.where(roots.add_noise[:, None], pruned, weights)
            return make_result(tree, action, weights)

        below = functools.partial(puct_action, self)
        if not forces and roots.tree is None:
            return Selection(logits, below, below, finish)
        noisy = jnp.broadcast_to(forces and roots.add_noise, roots.temperature.shape)
        old = jnp.broadcast_to(old, roots.legal.shape)
        return Selection(logits, at_root, below, finish, extra=(noisy, old))


class Terms(NamedTuple):
    """The terms of PUCT's score for the actions of one node; each `float32 [A]`."""

    q: jax.Array  # Mean outcome for the player to move; the first-play urgency where unvisited.
    prior: jax.Array  # Probabilities; 0 where illegal.
    bonus: jax.Array  # `c_puct P sqrt(N) / (1 + n)`.
    score: jax.Array  # `q + bonus`; -inf where illegal.


def puct_terms(settings: PUCT, tree: Tree, node: jax.Array, before: jax.Array | int = 0) -> Terms:
    """Scores the actions of one node of one tree.

    The score is `Q + c_puct P sqrt(N) / (1 + n)` (Silver et al. 2018), with Q in [-1, 1]
    for the player to move, `N` the node's visits and `n` the action's. Neither counts the visits
    `before [A]`.
    """
    visits, logits = tree.children_visits[node], tree.children_prior_logits[node]
    unvisited = {"zero": 0.0, "parent": tree.node_values[node], "loss": -1.0}
    q = jnp.where(visits > 0, tree.qvalues(node), unvisited[settings.first_play_urgency])
    prior = jax.nn.softmax(logits)
    total = tree.node_visits[node] - jnp.sum(before)
    exploration = prior * jnp.sqrt(total.astype(jnp.float32))
    bonus = settings.c_puct * exploration / (1 + visits - before).astype(jnp.float32)
    score = jnp.where(legal_actions(tree, node), q + bonus, -jnp.inf)
    return Terms(q, prior, bonus, score)


def puct_action(settings: PUCT, tree: Tree, node: jax.Array) -> jax.Array:
    """Returns the action with the highest score in one node of one tree; ties go to the lowest."""
    return jnp.argmax(puct_terms(settings, tree, node).score).astype(jnp.int32)


def is_forced(settings: PUCT, terms: Terms, visits: jax.Array) -> jax.Array:
    """Returns `bool [A]`, the visited root actions with fewer visits than Wu (2019) forces."""
    return (visits > 0) & (visits < count_forced(settings, terms, visits))


def count_forced(settings: PUCT, terms: Terms, visits: jax.Array) -> jax.Array:
    """Returns `float32 [A]`, the visits that every root action gets (Wu 2019, section 3.2)."""
    total = jnp.sum(visits).astype(jnp.float32)
    return jnp.sqrt(settings.forced_playouts * terms.prior * total)


def prune_forced(settings: PUCT, tree: Tree, visits: jax.Array) -> jax.Array:
    """Returns the policy target `float32 [A]` of one tree, without visits that were only forced.

    Up to the forced number of visits is taken from each action but the most visited one, as long as
    its score stays below that one's. An action that is left with a single visit loses it as well.
    """
    terms = puct_terms(settings, tree, jnp.int32(ROOT), tree.children_visits[ROOT] - visits)
    best = jnp.argmax(visits)
    counts = visits.astype(jnp.float32)
    lead = terms.score[best] - terms.q
    deserved = jnp.ceil(terms.bonus * (1 + counts) / jnp.maximum(lead, 1e-9)) - 1
    least = counts - jnp.floor(count_forced(settings, terms, visits))
    kept = jnp.clip(jnp.maximum(deserved, least), 0, counts)
    kept = jnp.where((kept <= 1) & (kept < counts), 0.0, kept).at[best].set(counts[best])
    return kept / jnp.sum(kept)


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
