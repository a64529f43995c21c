"""The `Agent` record, and the players: random, perfect, network, search, minimax."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State, check_batch, choose, legal_action_at, play
from azjax.games.hashing import make_index
from azjax.games.solver import Solution
from azjax.search import Algorithm, SearchResult, make_search
from azjax.search.algorithm import mask_logits
from azjax.search.evaluators import Evaluator, checked, is_deterministic


class Decision(NamedTuple):
    """The actions of a player in `B` positions, and its estimates.

    Rows of finished games are undefined. The last four fields are None for players without them.
    """

    action: jax.Array  # `int32 [B]`, a legal action.
    weights: jax.Array  # `float32 [B, A]`, the player's policy: sums to 1 over the legal actions.
    # `float32 [B]`, the expected outcome in [-1, 1], for the player to move.
    value: jax.Array | None = None
    # `float32 [B, A]`, the expected outcome of each action, for the player to move.
    q_values: jax.Array | None = None
    prior: jax.Array | None = None  # `float32 [B, A]`, the policy from which a search started.
    visit_counts: jax.Array | None = None  # `int32 [B, A]`, simulations spent on each action.


class Agent(NamedTuple):
    """A player."""

    name: str  # The name in tables and plots.
    # `(params, key, states [B, ...]) -> Decision`, which is jitted; `jax.pure_callback` calls other
    # programs.
    act: Callable[[Any, jax.Array, State], Decision]
    # The first argument of `act`, such as the parameters of a network. Settings, such as a number
    # of simulations, belong in the function.
    params: Any = None
    deterministic: bool = False  # Whether the action depends only on the position, not on the key.
    # Number of positions that `act` stores per game; determines the arena's batch size.
    nodes: int = 1

    def __repr__(self):
        return f"Agent(name={self.name!r})"


def as_agent(player: Any) -> Agent:
    """Returns the player itself, or the attribute `agent` of an object that has one."""
    agent = getattr(player, "agent", player)
    if not isinstance(agent, Agent):
        name = type(player).__name__
        raise ValueError(
            f"a {name} is not a player: use an Agent, or an object with an Agent as attribute agent"
        )
    return agent


def random_agent(game: Game) -> Agent:
    """Makes a player that plays all legal actions with equal probability."""

    def act(params, key, states):
        del params
        uniform = jax.random.uniform(key, (check_batch(game, states),), jnp.float32)
        legal = jax.vmap(game.legal_actions)(states)
        weights = _uniform_over(legal)
        return Decision(legal_action_at(legal, uniform), weights)

    return Agent("random", act)


def perfect_agent(game: Game, solution: Solution) -> Agent:
    """Makes a player that plays the first optimal action; all optimal actions have equal weight."""
    index = make_index(solution.states)
    action_values = np.where(solution.legal, solution.action_values, 0.0)

    def act(params, key, states):
        del params, key
        check_batch(game, states)
        row = index(states)
        optimal = jnp.asarray(solution.optimal)[row]
        return Decision(
            action=jnp.argmax(optimal, axis=-1).astype(jnp.int32),
            weights=_uniform_over(optimal),
            value=jnp.asarray(solution.values)[row],
            q_values=jnp.asarray(action_values)[row],
        )

    return Agent("perfect", act, deterministic=True)


def network_agent(game: Game, evaluate: Evaluator, params: Any) -> Agent:
    """Makes a player that plays an evaluator's most probable legal action, without search."""
    find = checked(game, evaluate)

    def act(params, key, states):
        check_batch(game, states)
        logits, value, *_ = find(params, key, states)
        legal = jax.vmap(game.legal_actions)(states)
        prior = jnp.where(legal, jax.nn.softmax(mask_logits(legal, logits)), 0.0)
        return Decision(choose(logits, legal), prior, value=value, prior=prior)

    return Agent("network", act, params, deterministic=is_deterministic(evaluate))


def search_agent(
    game: Game,
    search: Algorithm,
    evaluate: Evaluator,
    params: Any = None,
    name: str | None = None,
) -> Agent:
    """Makes a player that searches, without noise and at temperature 0.

    With the evaluator of a network this is AlphaZero; with `evaluators.rollout_evaluator` and
    `UCT()` it is classic MCTS. The player is deterministic if its evaluator is; UCT never is. Its
    name is by default the algorithm and the number of simulations.
    """
    find = make_search(search, game, evaluate)

    def act(params, key, states):
        return decide(find(params, key, states))

    return Agent(
        name=name or f"{search.algorithm}({search.num_simulations})",
        act=act,
        params=params,
        deterministic=is_deterministic(evaluate) and search.is_deterministic,
        nodes=search.num_simulations + 1,
    )


def decide(result: SearchResult) -> Decision:
    """Converts the result of a search to a decision."""
    return Decision(
        action=result.action,
        weights=result.action_weights,
        value=result.value,
        q_values=result.q_values,
        prior=result.prior,
        visit_counts=result.visit_counts,
    )


# Minimax and alpha-beta, as negamax (Knuth and Moore 1975): every value is for the player to move.


def minimax_agent(game: Game, depth: int | None = None, *, prune: bool = False) -> Agent:
    """Makes a player that searches all lines to a depth and plays the first best action.

    Decisions have the value and the value of every action; positions at the horizon count as drawn.
    The weights are equal over the best actions.

    Args:
      game: the rules.
      depth: moves to look ahead; the length of the longest game if None.
      prune: whether to skip positions as in alpha-beta. The value and the action stay the same. The
        values of other actions are only upper bounds, so the chosen action has all of the weight.
    """
    if depth is not None and depth < 1:
        raise ValueError(f"the search depth is {depth}: use 1 or more")
    if game.chance is not None:
        raise ValueError(
            f"{game.name} has dice, over which minimax does not average: use a search, such as "
            "uct, or, in a game that can be enumerated, perfect"
        )
    name = "alpha-beta" if prune else "minimax"
    search = functools.partial(_search, game, min(depth or game.max_plies, game.max_plies), prune)

    def act(params, key, states):
        del params, key
        check_batch(game, states)
        window = -jnp.float32(jnp.inf), jnp.float32(jnp.inf)
        legal = jax.vmap(game.legal_actions)(states)
        q_values = jax.vmap(lambda state: search(state, *window))(states)
        action, value = choose(q_values, legal), jnp.max(q_values, axis=-1)
        weights = _uniform_over(legal & (q_values == value[:, None]))
        if prune:
            weights = jax.nn.one_hot(action, game.num_actions, dtype=jnp.float32)
        value = jnp.where(jnp.any(legal, axis=-1), value, 0.0)
        return Decision(action, weights, value, jnp.where(legal, q_values, 0.0))

    return Agent(name if depth is None else f"{name}({depth})", act, deterministic=True)


def _search(
    game: Game, depth: int, prune: bool, state: State, alpha: jax.Array, beta: jax.Array
) -> jax.Array:
    """Returns the values of a state's actions after all lines of `depth` moves, `float32 [A]`.

    They are -inf for actions that are illegal or skipped. The mover can already force `alpha`;
    the opponent avoids this state if its value is `beta` or more.
    """

    def is_unfinished(now):
        todo, values = now
        return jnp.any(todo) & ((jnp.max(values) < beta) | (not prune))

    def examine(now):
        todo, values = now
        action = jnp.argmax(todo).astype(jnp.int32)
        step = play(game, state, action)
        value = step.reward
        if depth > 1:
            # The window from the perspective of who moves next.
            low = jnp.maximum(alpha, jnp.max(values)) - step.reward
            high = beta - step.reward
            same = step.discount > 0
            window = jnp.where(same, low, -high), jnp.where(same, high, -low)
            best = jnp.max(_search(game, depth - 1, prune, step.state, *window))
            value += jnp.where(step.discount == 0, 0.0, step.discount * best)
        return todo.at[action].set(False), values.at[action].set(value)

    start = game.legal_actions(state), jnp.full(game.num_actions, -jnp.inf, jnp.float32)
    return jax.lax.while_loop(is_unfinished, examine, start)[1]


def _uniform_over(mask: jax.Array) -> jax.Array:
    shares = mask.astype(jnp.float32)
    return shares / jnp.maximum(jnp.sum(shares, axis=-1, keepdims=True), 1.0)
