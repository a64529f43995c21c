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
from azjax.search.evaluators import Evaluator, checked, is_deterministic, uniform_evaluator


class Decision(NamedTuple):
    """The actions of a player in `B` positions, and its estimates.

    Rows of finished games are undefined. The last five fields are None for players without them.
    """

    action: jax.Array  # `int32 [B]`, a legal action.
    weights: jax.Array  # `float32 [B, A]`, the player's policy: sums to 1 over the legal actions.
    # `float32 [B]`, the expected outcome in [-1, 1], for the player to move.
    value: jax.Array | None = None
    # `float32 [B, A]`, the expected outcome of each action, for the player to move.
    q_values: jax.Array | None = None
    prior: jax.Array | None = None  # `float32 [B, A]`, the policy from which a search started.
    visit_counts: jax.Array | None = None  # `int32 [B, A]`, simulations spent on each action.
    nodes: jax.Array | None = None  # `int32 [B]`, positions visited by minimax.


class ProgramError(RuntimeError):
    """Raised when another program that plays stops answering."""


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
    # Called after `act`, on the host: raises a ProgramError if another program has stopped.
    check: Callable[[], None] = lambda: None

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


# Minimax and alpha-beta: depth-first search with an explicit stack. Both are negamax (Knuth and
# Moore 1975): every value is for the player to move. Each iteration of a `while_loop` either
# descends from the top of the stack or backs up a value to the node above.


class _Node(NamedTuple):
    """One node of the path being searched; in the stack, every leaf is `[D, ...]`."""

    state: State
    next_action: jax.Array  # int32 [], lower actions have been searched.
    best: jax.Array  # float32 [], the value so far; -inf at first.
    alpha: jax.Array  # float32 [], a value that the mover can already force.
    beta: jax.Array  # float32 [], a value beyond which the opponent avoids this node.
    reward: jax.Array  # float32 [], of the move to this node, for the player who made it.
    discount: jax.Array  # float32 [], of that move.


class _Progress(NamedTuple):
    stack: _Node
    depth: jax.Array  # int32 [], the top of the stack; -1 when done.
    nodes: jax.Array  # int32 [], visited so far.
    q_values: jax.Array  # float32 [A], of the root's actions.


def minimax_agent(
    game: Game,
    depth: int | None = None,
    evaluate: Evaluator | None = None,
    params: Any = None,
    *,
    prune: bool = False,
) -> Agent:
    """Makes a player that searches all lines to a depth and plays the first best action.

    Decisions have the value, the value of every action, and the number of visited positions,
    including the root. The weights are equal over the best actions.

    Args:
      game: the rules.
      depth: moves to look ahead; the length of the longest game if None.
      evaluate: values of positions at the horizon; 0 if None. The player is deterministic if the
        evaluator is; a plain function counts as random.
      params: the parameters of the evaluator.
      prune: whether to skip positions as in alpha-beta. With a deterministic evaluator, the value
        and the action stay the same. The values of other actions are only upper bounds, so the
        chosen action has all of the weight.
    """
    if depth is not None and depth < 1:
        raise ValueError(f"the search depth is {depth}: use 1 or more")
    if game.chance is not None:
        raise ValueError(
            f"{game.name} has dice, over which minimax does not average: use a search, such as "
            "uct, or, in a game that can be enumerated, perfect"
        )
    name = "alpha-beta" if prune else "minimax"
    max_depth = game.max_plies if depth is None else min(depth, game.max_plies)
    evaluate = checked(game, evaluate or uniform_evaluator(game))

    def act(params, key, states):
        keys = jax.random.split(key, check_batch(game, states))
        search = functools.partial(_search, game, max_depth, prune, evaluate, params)
        result = jax.vmap(search)(keys, states)
        legal = jax.vmap(game.legal_actions)(states)
        value, action = result.stack.best[:, 0], choose(result.q_values, legal)
        best = (legal & (result.q_values == value[:, None])).astype(jnp.float32)
        if prune:
            best = jax.nn.one_hot(action, game.num_actions, dtype=jnp.float32)
        return Decision(
            action=action,
            weights=best / jnp.maximum(jnp.sum(best, axis=-1, keepdims=True), 1),
            value=jnp.where(jnp.any(legal, axis=-1), value, 0.0),
            q_values=jnp.where(legal, result.q_values, 0.0),
            nodes=result.nodes,
        )

    label = name if depth is None else f"{name}({depth})"
    return Agent(label, act, params, deterministic=is_deterministic(evaluate))


def _search(game, max_depth, prune, evaluate, params, key, state) -> _Progress:
    """Searches one state; the value is the root's `best`."""
    infinity, zero = jnp.float32(jnp.inf), jnp.float32(0)
    root = _Node(state, jnp.int32(0), -infinity, -infinity, infinity, zero, zero)
    start = _Progress(
        stack=jax.tree.map(lambda leaf: jnp.stack([leaf] * max_depth), root),
        depth=jnp.int32(0),
        nodes=jnp.int32(1),
        q_values=jnp.full(game.num_actions, -infinity, jnp.float32),
    )

    def advance(progress: _Progress) -> _Progress:
        stack, depth, nodes, q_values = progress
        node = jax.tree.map(lambda leaf: leaf[depth], stack)
        actions = jnp.arange(game.num_actions)
        todo = game.legal_actions(node.state) & (actions >= node.next_action)
        descend = jnp.any(todo) & ((node.best < node.beta) | (not prune))
        action = jnp.argmax(todo).astype(jnp.int32)
        following = jnp.where(descend, action + 1, node.next_action)
        next_action = stack.next_action.at[depth].set(following)
        nodes = nodes + descend.astype(jnp.int32)
        step = play(game, node.state, action)
        over = game.is_over(step.state)
        is_leaf = over | (depth + 1 == max_depth)
        one = jax.tree.map(lambda leaf: leaf[None], step.state)
        _, values, *_ = evaluate(params, jax.random.fold_in(key, nodes), one)
        leaf_value = jnp.where(over, 0.0, values[0])
        # A leaf's value is backed up to this node, and a completed node's value to its parent.
        value = jnp.where(
            descend,
            step.reward + step.discount * leaf_value,
            node.reward + node.discount * node.best,
        )
        has_value = jnp.where(descend, is_leaf, depth > 0)
        at = jnp.where(descend, depth, depth - 1)
        best = jnp.where(has_value & (value > stack.best[at]), value, stack.best[at])
        stack = stack._replace(
            next_action=next_action,
            best=stack.best.at[at].set(best),
            alpha=stack.alpha.at[at].set(jnp.maximum(stack.alpha[at], best)),
        )
        is_action = has_value & (at == 0) & (actions == next_action[at] - 1)
        # The child has the window of this node, from the perspective of its own mover.
        low, high = node.alpha - step.reward, node.beta - step.reward
        same = step.discount > 0
        child = _Node(
            state=step.state,
            next_action=jnp.int32(0),
            best=-infinity,
            alpha=jnp.where(same, low, -high),
            beta=jnp.where(same, high, -low),
            reward=step.reward,
            discount=step.discount,
        )
        down = descend & ~is_leaf
        slot = jnp.where(down, depth + 1, max_depth)  # Out of range: dropped.
        return _Progress(
            stack=jax.tree.map(lambda old, new: old.at[slot].set(new, mode="drop"), stack, child),
            depth=depth + down.astype(jnp.int32) - (~descend).astype(jnp.int32),
            nodes=nodes,
            q_values=jnp.where(is_action, value, q_values),
        )

    return jax.lax.while_loop(lambda progress: progress.depth >= 0, advance, start)


def _uniform_over(mask: jax.Array) -> jax.Array:
    shares = mask.astype(jnp.float32)
    return shares / jnp.maximum(jnp.sum(shares, axis=-1, keepdims=True), 1.0)
