"""What an algorithm is, what it is given, and what a search returns."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, get_args

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import State, describe
from azjax.search.tree import ROOT, Tree

Engine = Literal["azjax", "mctx"]


class Algorithm(Protocol):
    """A way to search: its settings, and how it selects.

    Any object with these members is one, best a frozen dataclass, such as `PUCT`.

    Attributes:
      algorithm: its name.
      num_simulations: positions evaluated per move, without the root.
      is_deterministic: whether the position alone determines the action, without noise, at
        temperature 0 and with a deterministic evaluator.

    It may also have an `engine`, which `make_search` takes unless it is given another.
    """

    @property
    def algorithm(self) -> str: ...  # noqa: D102

    @property
    def num_simulations(self) -> int: ...  # noqa: D102

    @property
    def is_deterministic(self) -> bool: ...  # noqa: D102

    def select(self, roots: "Roots") -> "Selection":
        """Says how to search from a batch of positions."""
        ...


def check_algorithm(algorithm: Any) -> None:
    """Refuses what lacks the members of `Algorithm`.

    Raises:
      ValueError: naming the member.
    """
    if isinstance(algorithm, type):
        name = algorithm.__name__
        raise ValueError(f"the search is the class {name}: make one of it, such as {name}()")
    members = {
        "algorithm": (str, "its name"),
        "num_simulations": (int | np.integer | jax.Array, "a whole number"),
        "is_deterministic": (bool | np.bool_, "True or False"),
        "select": (Callable, "a function of Roots that returns a Selection"),
    }
    for name, (kind, wanted) in members.items():
        found = getattr(algorithm, name, None)
        if not isinstance(found, kind):
            problem = f"has the {name} {found!r}" if hasattr(algorithm, name) else f"has no {name}"
            raise ValueError(
                f"the search, of type {type(algorithm).__name__}, {problem}: give it {name}, "
                f"{wanted}, as search.Algorithm says, or use one such as PUCT()"
            )


def choose_engine(algorithm: Any, engine: Engine | None = None) -> Engine:
    """Returns the engine given, or else the algorithm's, or else `azjax`.

    Raises:
      ValueError: if the engine is unknown, or the algorithm lacks a member.
    """
    check_algorithm(algorithm)
    chosen: Any = getattr(algorithm, "engine", "azjax") if engine is None else engine
    if chosen not in get_args(Engine):
        known = " or ".join(map(repr, get_args(Engine)))
        raise ValueError(f"the search's engine is {chosen!r}: use {known}")
    return chosen


class Roots(NamedTuple):
    """The positions to search from, evaluated, and what was asked for.

    Attributes:
      states: `[B, ...]`.
      legal: `bool [B, A]`.
      logits: `float32 [B, A]`, the evaluator's, see `tree.mask_logits`.
      value: `float32 [B]`, the evaluator's; 0 where the game is over.
      keys: `[B]`, for the algorithm's own draws.
      temperature: `float32 [B]`, for drawing the action; 0: the best.
      add_noise: whether to explore, as self-play does; False, or `bool [B]`.
      budget: simulations expected; a number, or `int32 []` while tracing.
    """

    states: State  # [B, ...]
    legal: jax.Array  # bool [B, A]
    logits: jax.Array  # float32 [B, A]
    value: jax.Array  # float32 [B]
    keys: jax.Array  # [B]
    temperature: jax.Array  # float32 [B]
    add_noise: Literal[False] | jax.Array  # bool [B]
    budget: int | jax.Array  # int32 []


class Selection(NamedTuple):
    """How an algorithm searches from given roots.

    Attributes:
      logits: `float32 [B, A]`, the prior of the roots, noise included.
      at_root: `(tree, node) -> action`, for the root of one tree.
      below: the same for the other nodes. The tree has no axis `B`; the action must be one of
        `tree.legal_actions(tree, node)`, also where values or logits are NaN.
      finish: `tree [B, ...] -> SearchResult`.
      extra: what the selection needs in addition to the tree; leaves `[B, ...]`, in the tree's
        `extra_data`.
      prior: `(keys [B], logits [B, A]) -> logits [B, A]`, which replaces the evaluator's logits
        below the roots; None keeps them.
      first: `int32 [B, K]`, different actions, which `at_root` chooses in the first simulations,
        whatever these find; -1 where that ends, before the last one. With it, the search may
        evaluate them together.
    """

    logits: jax.Array  # float32 [B, A]
    at_root: Callable[[Tree, jax.Array], jax.Array]
    below: Callable[[Tree, jax.Array], jax.Array]
    finish: Callable[[Tree], Any]
    extra: Any = None  # [B, ...]
    prior: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    first: jax.Array | None = None  # int32 [B, K]


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
      tree: the search tree; its embeddings are game states.
      prior: `float32 [B, A]`, the policy that the search started from; None for UCT.
    """

    action: jax.Array  # int32 [B]
    action_weights: jax.Array  # float32 [B, A]
    visit_counts: jax.Array  # int32 [B, A]
    q_values: jax.Array  # float32 [B, A]
    value: jax.Array  # float32 [B]
    tree: Tree
    prior: jax.Array | None = None  # float32 [B, A]

    def __repr__(self):
        action, visits = describe(self.action), describe(self.visit_counts)
        return f"SearchResult(action={action}, visit_counts={visits})"

    @property
    def policy_value(self) -> jax.Array:
        """`float32 [B]`, what `action_weights` is worth: the mean of `q_values` by it.

        The root's own value is a mean over all visits, among them those to actions that the search
        then rejects: where one action wins and the others lose, it says that much is lost.
        Actions without a visit are left out; where all are, it is the root's.
        """
        weights = jnp.where(self.visit_counts > 0, self.action_weights, 0.0)
        total = jnp.sum(weights, axis=-1)
        mean = jnp.sum(weights * self.q_values, axis=-1) / jnp.where(total > 0, total, 1.0)
        return jnp.where(total > 0, mean, self.value)


def make_result(tree: Tree, action: jax.Array, weights: jax.Array) -> SearchResult:
    """Reads a result off the roots; `action [B]` and `weights [B, A]` are the algorithm's."""
    visits = tree.children_visits[:, ROOT]
    q_values = tree.qvalues(jnp.full(len(visits), ROOT))
    return SearchResult(
        action=action.astype(jnp.int32),
        action_weights=weights,
        visit_counts=visits,
        q_values=jnp.where(visits > 0, q_values, 0.0),
        value=tree.node_values[:, ROOT],
        prior=jax.nn.softmax(tree.children_prior_logits[:, ROOT]),
        tree=tree,
    )


def visit_shares(tree: Tree) -> jax.Array:
    """Returns `float32 [B, A]`, the share of each action in the visits of its root."""
    visits = tree.children_visits[:, ROOT]
    return visits.astype(jnp.float32) / jnp.sum(visits, axis=-1, keepdims=True).astype(jnp.float32)


def draw_by_visits(key: jax.Array, visits: jax.Array, temperature: jax.Array) -> jax.Array:
    """Draws an action with probability proportional to `visits ** (1 / temperature)`.

    Args:
      key: one key.
      visits: `[A]`.
      temperature: `float32 []`; 0: the most visited, and of several the lowest.
    """
    logits = jnp.log(jnp.maximum(visits.astype(jnp.float32), 1e-30)) / jnp.maximum(
        temperature, 1e-3
    )
    drawn = jax.random.categorical(key, jnp.where(visits > 0, logits, -jnp.inf))
    return jnp.where(temperature > 0, drawn, jnp.argmax(visits)).astype(jnp.int32)
