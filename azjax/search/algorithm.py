"""The interface of search algorithms: trees, `Algorithm`, `Roots`, `Selection`, `SearchResult`."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import hashing
from azjax.games.base import State, write_types

ROOT = 0
UNVISITED = -1
NO_PARENT = -1
NEVER = float(jnp.finfo(jnp.float32).min)  # The logit of an illegal action; -inf would give NaN.
_STEP = np.uint32(0x9E3779B9)  # Of Fibonacci hashing; outcomes get different numbers.
_LARGEST = 1e30  # Logits of legal actions are clipped to this; sums of two stay above `NEVER`.


Tree = Any  # mctx's dataclasses hide their fields from type checkers.
"""`B` search trees of `N` nodes, a `mctx.Tree`; functions for one tree get no axis `B`.

Node `ROOT` is the root. The main fields, and one method:

- `node_visits int32 [B, N]`; `node_values float32 [B, N]`, the mean values for the player to move;
- `children_index int32 [B, N, A]`, the node after each action, or `UNVISITED`;
- `children_visits int32 [B, N, A]`;
- `children_prior_logits float32 [B, N, A]`, `NEVER` exactly where an action is illegal;
- `qvalues(node)`, in one tree: `float32 [A]`, the values of the actions for the player to move;
- `embeddings`, the states, leaves `[B, N, ...]`; and `extra_data`, which is `Selection.extra`.
"""


@runtime_checkable
class Algorithm(Protocol):
    """A search algorithm: its settings, and its rule for selecting actions.

    Any object with these members can be passed to `make_search` and to players (`players.agents`);
    a hashable one, such as a frozen dataclass, also to training (`training.Parts`).
    `examples/search_rule.py` is a complete algorithm in 40 lines. An algorithm itself draws the
    noise in the roots' priors, where `Roots.add_noise`, and the action, by `Roots.temperature`.
    """

    @property
    def algorithm(self) -> str:
        """Its name."""
        ...

    @property
    def num_simulations(self) -> int:
        """Positions evaluated per move, without the root."""
        ...

    @property
    def is_deterministic(self) -> bool:
        """Whether the action depends only on the position, without noise, at temperature 0."""
        ...

    def select(self, roots: "Roots") -> "Selection | SearchResult":
        """Returns the functions that select actions in the trees of a batch of positions.

        A rule without noise needs `Selection(roots.logits, at_root=act, below=act, finish=finish)`,
        where `finish` usually ends with `make_result(tree, action, visit_shares(tree))`. An
        algorithm with another loop, such as a policy of mctx, searches here, with `roots.expand` or
        the functions of `search.simulate`, and returns the result.
        """
        ...


def check_algorithm(algorithm: Any) -> None:
    """Raises ValueError unless an object has the members of `Algorithm`."""
    is_instance = isinstance(algorithm, Algorithm) and not isinstance(algorithm, type)
    # A method without @property would count as True.
    if not is_instance or callable(algorithm.is_deterministic):
        raise ValueError(
            f"the search is {algorithm!r}: use an instance, such as PUCT(), that has the members "
            "and properties of search.Algorithm"
        )


class Expansion(NamedTuple):
    """The positions that one simulation reaches, one in each tree."""

    states: State  # `[B, ...]`.
    reward: jax.Array  # `float32 [B]`, of the move that led there, to the player who made it.
    discount: jax.Array  # `float32 [B]`, see `games.base.Step`.
    logits: jax.Array  # `float32 [B, A]`; `NEVER` where illegal.
    value: jax.Array  # `float32 [B]`, for the player to move; 0 where the game is over.


class Roots(NamedTuple):
    """The evaluated positions to search from, and the arguments of the search."""

    states: State  # `[B, ...]`.
    legal: jax.Array  # `bool [B, A]`.
    # `float32 [B, A]`, the evaluator's; finite or NaN where legal, `NEVER` where illegal.
    logits: jax.Array
    # `float32 [B]`, the evaluator's, for the player to move; 0 where the game is over.
    value: jax.Array
    keys: jax.Array  # `[B]`, for the algorithm's random draws.
    temperature: jax.Array  # `float32 [B]`, for drawing the action; 0 means the best action.
    # Whether to explore, as self-play does; False, or `bool [B]`.
    add_noise: Literal[False] | jax.Array
    keys_expand: jax.Array  # `[B]`, for the evaluations in the trees.
    params: Any  # Those of the search, for an algorithm that needs more than `expand`.
    # `(keys [b], actions [b], states [b, ...]) -> Expansion`, plays and evaluates.
    expand: Callable[[jax.Array, jax.Array, State], Expansion]
    max_plies: int  # No path in a tree has more moves.
    # `Game.chance`. The search selects outcomes by `next_outcome`; algorithms with their own loop
    # do so themselves.
    chance: Callable[[State], jax.Array] | None = None


class Selection(NamedTuple):
    """The functions and data with which an algorithm searches from the given roots."""

    # `float32 [B, A]`, the prior of the roots, including noise. Illegal actions are masked
    # afterwards.
    logits: jax.Array
    # `(tree, node int32 []) -> action int32 []`, for the root of one tree, without the axis `B`.
    # The action must be one of `legal_actions(tree, node)`, even where values or logits are NaN; in
    # a finished game, any action.
    at_root: Callable[[Tree, jax.Array], jax.Array]
    # The same for all other nodes. It may look at this node and at those below it, so that a choice
    # stays the same until a simulation passes through the node.
    below: Callable[[Tree, jax.Array], jax.Array]
    # `tree [B, ...] -> SearchResult`, after the last simulation; see `make_result`.
    finish: Callable[[Tree], Any]
    # Additional data for the selection; leaves `[B, ...]`, stored as `tree.extra_data`.
    extra: Any = None
    # `(keys [B], logits [B, A]) -> logits [B, A]`, which replaces the evaluator's logits below the
    # roots; None keeps them.
    prior: Callable[[jax.Array, jax.Array], jax.Array] | None = None


class SearchResult(NamedTuple):
    """The result of a search from `B` positions."""

    action: jax.Array  # `int32 [B]`, the action to play.
    # `float32 [B, A]`, the policy target: the visit shares of PUCT and UCT, or the improved policy
    # of Gumbel. Sums to 1 over the legal actions.
    action_weights: jax.Array
    visit_counts: jax.Array  # `int32 [B, A]`.
    # `float32 [B, A]`, mean outcome of each action for the player to move; 0 where unvisited.
    q_values: jax.Array
    value: jax.Array  # `float32 [B]`, the root's mean value, for the player to move.
    tree: Tree  # The search tree; its embeddings are game states.
    # `float32 [B, A]`, the root policy before the search, including noise; None for UCT.
    prior: jax.Array | None = None

    def __repr__(self):
        action, visits = write_types(self.action), write_types(self.visit_counts)
        return f"SearchResult(action={action}, visit_counts={visits})"

    @property
    def policy_value(self) -> jax.Array:
        """`float32 [B]`, the mean of `q_values` under `action_weights`, of visited actions.

        The root's own value also averages over visits to actions that the search then rejects, so
        it is too low where one action wins and the others lose. Without visits, it is used.
        """
        weights = jnp.where(self.visit_counts > 0, self.action_weights, 0.0)
        total = jnp.sum(weights, axis=-1)
        mean = jnp.sum(weights * self.q_values, axis=-1) / jnp.where(total > 0, total, 1.0)
        return jnp.where(total > 0, mean, self.value)


def mask_logits(legal: jax.Array, logits: jax.Array) -> jax.Array:
    """Returns logits `float32 [..., A]` that are `NEVER` exactly where an action is illegal.

    An evaluator's -inf gives a prior of zero, but does not make a legal action illegal. NaN stays.
    """
    clipped = jnp.clip(logits.astype(jnp.float32), -_LARGEST, _LARGEST)
    return jnp.where(legal, clipped, NEVER)


def legal_actions(tree: Tree, node: jax.Array) -> jax.Array:
    """Returns `bool [A]`, the legal actions in one node of one tree; none in a finished game."""
    return tree.children_prior_logits[node] != NEVER


def next_outcome(
    chance: Callable[[State], jax.Array], tree: Tree, node: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns whether nature is to move in a node of one tree, and the outcome to visit next.

    Outcomes are visited in proportion to their probabilities, without a draw: the one with the
    largest `chance / (e + visits)` comes next. With `e = 1` (Antonoglou et al. 2022, "Planning in
    Stochastic Environments with a Learned Model"), all nodes would begin with the same outcome, and
    means over few visits would be biased. Here each `e` is between 0 and 1, from a hash of the
    position and of the noise at the root, so that errors average out over the searches of training.
    """
    state = jax.tree.map(lambda leaf: leaf[node], tree.embeddings)
    odds = chance(state)
    extra = [leaf for leaf in jax.tree.leaves(tree.extra_data) if leaf.dtype == jnp.float32]
    hashed = jax.tree.map(lambda x: x[None], (state, tree.children_prior_logits[ROOT], extra))
    number = hashing.buckets(hashed, 2**32 - 1)
    bits = hashing.mix(number + jnp.arange(len(odds), dtype=jnp.uint32) * _STEP)
    e = ((bits >> 8).astype(jnp.float32) + 0.5) / 2**24
    outcome = jnp.argmax(odds / (e + tree.children_visits[node]))
    return jnp.any(odds > 0), outcome.astype(jnp.int32)


def make_result(tree: Tree, action: jax.Array, weights: jax.Array) -> SearchResult:
    """Makes a result from the roots of finished trees, the actions `[B]` and the policy target."""
    visits = tree.children_visits[:, ROOT]
    q_values = tree.qvalues(jnp.full(visits.shape[0], ROOT))
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
    """Returns `float32 [B, A]`, each root action's share of the visits."""
    visits = tree.children_visits[:, ROOT].astype(jnp.float32)
    return visits / jnp.sum(visits, axis=-1, keepdims=True)


def draw_by_visits(key: jax.Array, visits: jax.Array, temperature: jax.Array) -> jax.Array:
    """Draws an action with probabilities proportional to `visits ** (1 / temperature)`.

    Temperature 0 means the most visited action; ties go to the lowest.
    """
    divisor = jnp.maximum(temperature, 1e-3)  # A smaller one could overflow.
    logits = jnp.log(jnp.maximum(visits.astype(jnp.float32), 1e-30)) / divisor
    drawn = jax.random.categorical(key, jnp.where(visits > 0, logits, -jnp.inf))
    return jnp.where(temperature > 0, drawn, jnp.argmax(visits)).astype(jnp.int32)


def split_each(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits each of the keys `[B]` in two."""
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]
