"""Minimax and alpha-beta: depth-first search with an explicit stack, jitted and vmapped.

Both are negamax (Knuth and Moore 1975): every value is for the player to move. Each iteration of a
`while_loop` either descends from the top of the stack or backs up a value to the node above.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games.base import Game, State, check_batch, choose, play
from azjax.players.agent import Agent, Decision
from azjax.search.evaluators import Evaluator, is_deterministic, uniform_evaluator


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
    game: Game, depth: int | None = None, evaluate: Evaluator | None = None, params: Any = None
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
    """
    return _make_agent("minimax", game, depth, evaluate, params, prune=False)


def alpha_beta_agent(
    game: Game, depth: int | None = None, evaluate: Evaluator | None = None, params: Any = None
) -> Agent:
    """Makes a player like `minimax_agent` that does not visit every position.

    It takes the same arguments and, if the evaluator is deterministic, returns the same value and
    action. The values of actions other than the chosen one are only upper bounds, so the chosen
    action has all of the weight.
    """
    return _make_agent("alpha-beta", game, depth, evaluate, params, prune=True)


def _make_agent(name, game, depth, evaluate, params, prune) -> Agent:
    if depth is not None and depth < 1:
        raise ValueError(f"the search depth is {depth}: use 1 or more")
    label = name if depth is None else f"{name}({depth})"
    max_depth = game.max_plies if depth is None else min(depth, game.max_plies)
    evaluate = evaluate or uniform_evaluator(game)

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
        depth, stack = progress.depth, progress.stack
        node = jax.tree.map(lambda leaf: leaf[depth], stack)
        todo = game.legal_actions(node.state) & (jnp.arange(game.num_actions) >= node.next_action)
        descend = jnp.any(todo) & ((node.best < node.beta) | (not prune))
        action = jnp.argmax(todo).astype(jnp.int32)
        following = jnp.where(descend, action + 1, node.next_action)
        stack = stack._replace(next_action=stack.next_action.at[depth].set(following))
        progress = progress._replace(stack=stack, nodes=progress.nodes + descend.astype(jnp.int32))
        step = play(game, node.state, action)
        over = game.is_over(step.state)
        is_leaf = over | (depth + 1 == max_depth)
        one = jax.tree.map(lambda leaf: leaf[None], step.state)
        _, values = evaluate(params, jax.random.fold_in(key, progress.nodes), one)
        leaf_value = jnp.where(over, 0.0, values[0])
        # A leaf's value is backed up to this node, and a completed node's value to its parent.
        value = jnp.where(
            descend,
            step.reward + step.discount * leaf_value,
            node.reward + node.discount * node.best,
        )
        has_value = jnp.where(descend, is_leaf, depth > 0)
        progress = _back_up(progress, has_value, jnp.where(descend, depth, depth - 1), value)
        return _move(progress, descend & ~is_leaf, ~descend, _child(node, step))

    return jax.lax.while_loop(lambda progress: progress.depth >= 0, advance, start)


def _back_up(progress: _Progress, has_value, depth, value) -> _Progress:
    """Updates the node at `depth` with the value of its latest action, if `has_value`."""
    stack = progress.stack
    better = has_value & (value > stack.best[depth])
    best = jnp.where(better, value, stack.best[depth])
    alpha = jnp.maximum(stack.alpha[depth], best)
    is_action = jnp.arange(len(progress.q_values)) == stack.next_action[depth] - 1
    return progress._replace(
        stack=stack._replace(
            best=stack.best.at[depth].set(best), alpha=stack.alpha.at[depth].set(alpha)
        ),
        q_values=jnp.where(has_value & (depth == 0) & is_action, value, progress.q_values),
    )


def _move(progress: _Progress, down, up, below: _Node) -> _Progress:
    """Pushes the node `below` on the stack, pops the top, or leaves the stack unchanged."""
    slot = jnp.where(down, progress.depth + 1, len(progress.stack.best))  # Out of range: dropped.
    return progress._replace(
        stack=jax.tree.map(
            lambda old, new: old.at[slot].set(new, mode="drop"), progress.stack, below
        ),
        depth=progress.depth + down.astype(jnp.int32) - up.astype(jnp.int32),
    )


def _child(node: _Node, step) -> _Node:
    """Returns the node after a move, with the parent's window from its mover's perspective."""
    low, high = node.alpha - step.reward, node.beta - step.reward
    same = step.discount > 0
    return _Node(
        state=step.state,
        next_action=jnp.int32(0),
        best=jnp.float32(-jnp.inf),
        alpha=jnp.where(same, low, -high),
        beta=jnp.where(same, high, -low),
        reward=step.reward,
        discount=step.discount,
    )
