# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportIndexIssue=false, reportArgumentType=false
"""What the algorithms share: settings, the plan that each makes, and the result."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from jax.core import Tracer

from azjax import drawing
from azjax.settings import MOST_SIMULATIONS, check_range, check_types

_SHOWN = 4  # Positions of a batch that a notebook shows.
NEVER = float(jnp.finfo(jnp.float32).min)  # The logit of an illegal action; -inf gives NaN.


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How a search spends its simulations."""

    algorithm: Literal["gumbel", "puct", "uct"] = "gumbel"
    """`puct`: AlphaZero's; `gumbel`: Gumbel AlphaZero's, better with few simulations;
    `uct`: without priors, at its best with random rollouts."""
    num_simulations: int = 32
    """Positions evaluated per move, beside the root. AlphaZero: 800."""
    c_puct: float = 1.25
    """PUCT: weight of the prior's exploration bonus. AlphaZero: 1.25, with Q in [0, 1]; with
    Q in [-1, 1], as here, that is 2.5."""
    first_play_urgency: Literal["zero", "parent", "loss"] = "zero"
    """PUCT: value assumed for an unvisited action: 0, the node's own, or -1.
    AlphaZero: loss for an action of value in [0, 1], which is `loss` here."""
    dirichlet_alpha: float = 0.3
    """PUCT: concentration of the root noise over the legal actions. AlphaZero: 0.3 in
    chess, about 10 / (number of legal actions)."""
    dirichlet_fraction: float = 0.25
    """PUCT: share of the noise in the root's prior. AlphaZero: 0.25."""
    gumbel_scale: float = 1.0
    """Gumbel: scale of the noise that chooses among the root's actions. Paper: 1."""
    max_considered_actions: int = 16
    """Gumbel: root actions that sequential halving starts with. Paper: 16."""
    value_scale: float = 0.1
    """Gumbel: weight of Q against the prior's logits. Paper: 0.1, with Q in [0, 1]."""
    maxvisit_init: float = 50.0
    """Gumbel: visits added to the largest count in that weight. Paper: 50."""
    exploration: float = math.sqrt(2)
    """UCT: weight C of the confidence bound. UCB1 (Auer et al. 2002): sqrt(2), for rewards
    in [0, 1]."""

    def __post_init__(self):
        check_types("search", self)
        check_range("search", self, "num_simulations", 1, MOST_SIMULATIONS)
        check_range("search", self, "max_considered_actions", 1)
        check_range("search", self, "dirichlet_fraction", 0, 1)
        check_range("search", self, "dirichlet_alpha", 0, above=True)
        check_range("search", self, "c_puct gumbel_scale value_scale maxvisit_init exploration", 0)


class SearchResult(NamedTuple):
    """What a search found out about `B` positions.

    Attributes:
      action: `int32 [B]`, the action to play.
      action_weights: `float32 [B, A]`, the policy to learn: PUCT's and UCT's visit shares,
        or Gumbel's improved policy. Sums to 1 over the legal actions.
      visit_counts: `int32 [B, A]`.
      q_values: `float32 [B, A]`, mean outcome of each action for the player to move; 0
        where unvisited.
      value: `float32 [B]`, the root's mean value, for the player to move.
      tree: the `mctx.Tree`; its embeddings are game states.
    """

    action: jax.Array
    action_weights: jax.Array
    visit_counts: jax.Array
    q_values: jax.Array
    value: jax.Array
    tree: mctx.Tree

    def _repr_svg_(self) -> str | None:
        """Shows the first positions, with the policy as a heat map; None while tracing."""
        states = getattr(self.tree, "embeddings", None)
        if isinstance(self.action, Tracer) or not hasattr(states, "draw"):
            return None
        shown, weights = min(len(self.action), _SHOWN), np.asarray(self.action_weights)
        pictures, captions = [], []
        for row in range(shown):
            state = jax.tree.map(lambda leaf: leaf[row, 0], states)
            labels = [f"{share:.0%}" for share in weights[row]]
            pictures.append(state.draw(values=weights[row], labels=labels))
            value = drawing.signed(self.value[row])
            captions.append(f"plays {self.action[row]}, value {value}")
        return str(drawing.gallery(pictures, captions, rest=len(self.action) - shown))


class Plan(NamedTuple):
    """What an algorithm makes of a batch of positions.

    Attributes:
      root: the evaluated root, noise included.
      invalid: `bool [B, A]`, True = not allowed: what mctx wants.
      select_root: `(tree, node) -> action`, for one tree.
      select_below: the same for the other nodes.
      finish: `tree -> SearchResult`.
      extra: what the selection needs to know beside the tree; leaves are `[B, ...]`.
    """

    root: mctx.RootFnOutput
    invalid: jax.Array
    select_root: Callable[[mctx.Tree, jax.Array], jax.Array]
    select_below: Callable[[mctx.Tree, jax.Array], jax.Array]
    finish: Callable[[mctx.Tree], SearchResult]
    extra: Any = None


def make_result(tree: mctx.Tree, action: jax.Array, weights: jax.Array) -> SearchResult:
    """Reads a result off the roots; `action [B]` and `weights [B, A]` are the algorithm's."""
    visits = tree.children_visits[:, tree.ROOT_INDEX]
    return SearchResult(
        action=action,
        action_weights=weights,
        visit_counts=visits,
        q_values=jnp.where(visits > 0, tree.summary().qvalues, 0.0),
        value=tree.node_values[:, tree.ROOT_INDEX],
        tree=tree,
    )


def draw_by_visits(key, visits, temperature):
    """Draws an action with probability proportional to `visits ** (1 / temperature)`."""
    logits = jnp.log(jnp.maximum(visits, 1e-30)) / jnp.maximum(temperature, 1e-3)
    drawn = jax.random.categorical(key, jnp.where(visits > 0, logits, -jnp.inf))
    return jnp.where(temperature > 0, drawn, jnp.argmax(visits)).astype(jnp.int32)
