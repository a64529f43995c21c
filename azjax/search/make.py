# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false, reportIndexIssue=false, reportArgumentType=false
"""Searches, built from an algorithm, a game and an evaluator."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.evaluators import Evaluator
from azjax.game import Game, State, batch_keys, check_batch, play
from azjax.search.gumbel import plan_gumbel
from azjax.search.plan import NEVER, Plan, SearchConfig, SearchResult
from azjax.search.puct import plan_puct
from azjax.search.tree import simulate
from azjax.search.uct import plan_uct

Search = Callable[..., SearchResult]


def make_search(config: SearchConfig, game: Game, evaluate: Evaluator) -> Search:
    """Builds `search(params, keys, states, temperature=0.0, explore=False)`.

    Args:
      config: the algorithm and its settings.
      game: the rules. Positions of a batch may be finished; what is found for those means
        nothing.
      evaluate: any evaluator; `params` are handed to it.

    Returns:
      A function of `params`, `keys` (one, or `[B]`, one per position), `states [B, ...]`, and
      `temperature`, a float or `[B]`, which PUCT and UCT use to draw the action from
      `visits ** (1 / temperature)` (0: the most visited). With `explore` set, PUCT mixes
      Dirichlet noise into the root's prior and Gumbel draws its noise; without it, PUCT and
      Gumbel with temperature 0 are deterministic. UCT always expands in random order. It raises
      ValueError if the states are no batch of this game, or the keys do not go with it.
    """

    def search(params, keys, states, temperature=0.0, explore=False) -> SearchResult:
        plan, key_tree = _plan(config, game, evaluate, params, keys, states, temperature, explore)
        return plan.finish(_grow(config, game, evaluate, plan, params, key_tree))

    return search


class Resumable(NamedTuple):
    """A search that grows its tree a few simulations at a time, for players with a clock.

    Attributes:
      start: `(params, keys, states [B, ...], schedule) -> tree`, with nothing but its
        root; `schedule` is from `considered_visits` for the simulations expected.
      grow: `(params, keys, states, schedule, tree, done, count) -> tree`; after `done`
        simulations it makes `count` more, both `int32 []`, so that no number compiles anew.
        `done + count` is at most `config.num_simulations`. The schedule may change while
        sequential halving still considers all its actions.
      finish: `(params, keys, states, schedule, tree) -> SearchResult`.
    """

    start: Callable[..., mctx.Tree]
    grow: Callable[..., mctx.Tree]
    finish: Callable[..., SearchResult]


def make_resumable(config: SearchConfig, game: Game, evaluate: Evaluator) -> Resumable:
    """Builds the search of `make_search`, without noise, in steps.

    Args:
      config: as for `make_search`; `num_simulations` is the most that a tree has room for.
      game: the rules.
      evaluate: any evaluator.

    Returns:
      Functions to be jitted. Their calls for one search get the same `keys`. Grown to the
      end in any steps, the tree of a deterministic evaluator is that of `make_search`.
    """

    def plan_for(params, keys, states, schedule):
        return _plan(config, game, evaluate, params, keys, states, schedule=schedule)

    def start(params, keys, states, schedule):
        plan, key = plan_for(params, keys, states, schedule)
        return _grow(config, game, evaluate, plan, params, key, count=0)

    def grow(params, keys, states, schedule, tree, done, count):
        plan, key = plan_for(params, keys, states, schedule)
        tree = tree.replace(extra_data=plan.extra)
        return _grow(config, game, evaluate, plan, params, key, done, count, tree)

    def finish(params, keys, states, schedule, tree):
        return plan_for(params, keys, states, schedule)[0].finish(tree)

    return Resumable(start, grow, finish)


def _plan(
    config, game, evaluate, params, keys, states, temperature=0.0, explore=False, schedule=None
) -> tuple[Plan, jax.Array]:
    """Evaluates the roots; returns the algorithm's plan, and the key for the tree."""
    keys = jax.vmap(jax.random.split)(batch_keys(keys, check_batch(game, states)))
    key_root, key_tree = jax.random.split(keys[0, 0])  # Only random evaluators use these.
    root = _evaluate(config, game, evaluate, params, key_root, states)
    invalid = ~jax.vmap(game.legal_actions)(states)
    if config.algorithm == "gumbel":
        return plan_gumbel(config, root, invalid, keys[:, 1], explore, schedule), key_tree
    temperature = jnp.broadcast_to(jnp.asarray(temperature, jnp.float32), invalid.shape[:1])
    if config.algorithm == "puct":
        return plan_puct(config, root, invalid, keys[:, 1], temperature, explore), key_tree
    return plan_uct(config, root, invalid, keys[:, 1], temperature), key_tree


def _grow(config, game, evaluate, plan, params, key, begin=0, count=None, tree=None) -> mctx.Tree:
    """Makes `count` simulations (all, if None) in a tree, or in one that is only roots."""
    recurrent = functools.partial(_recurrent, config, game, evaluate)
    end = config.num_simulations if count is None else begin + count

    def simulate_next(i, tree):
        key_node = jax.random.fold_in(key, i)
        return simulate(plan, recurrent, game.max_plies, params, key_node, tree, i)

    def simulate_all(low, high, body, init):
        del low, high, body
        return init[0], jax.lax.fori_loop(
            begin, end, simulate_next, init[1] if tree is None else tree
        )

    return mctx.search(  # It makes the tree; the simulations are ours.
        params,
        key,
        root=plan.root,
        recurrent_fn=recurrent,
        root_action_selection_fn=lambda key, tree, node: plan.select_root(tree, node),
        interior_action_selection_fn=lambda key, tree, node, depth: plan.select_below(tree, node),
        num_simulations=config.num_simulations,
        invalid_actions=plan.invalid,
        extra_data=plan.extra,
        loop_fn=simulate_all,
    )


def _evaluate(config, game: Game, evaluate: Evaluator, params, key, states: State):
    """Evaluates states, with illegal actions excluded and finished games worth 0.

    UCT has no use for priors: their place takes the random order in which it tries actions.
    """
    if config.algorithm == "uct":
        key, key_order = jax.random.split(key)
        _, value = evaluate(params, key, states)
        logits = jax.random.uniform(key_order, (value.shape[0], game.num_actions))
    else:
        logits, value = evaluate(params, key, states)
    legal = jax.vmap(game.legal_actions)(states)
    over = jax.vmap(game.is_over)(states)
    return mctx.RootFnOutput(
        prior_logits=jnp.where(legal, logits, NEVER),
        value=jnp.where(over, 0.0, value),
        embedding=states,
    )


def _recurrent(config, game: Game, evaluate: Evaluator, params, key, actions, states: State):
    """Plays one action in each game and evaluates what comes after."""
    step = jax.vmap(functools.partial(play, game))(states, actions)
    node = _evaluate(config, game, evaluate, params, key, step.state)
    output = mctx.RecurrentFnOutput(
        reward=step.reward,
        discount=step.discount,
        prior_logits=node.prior_logits,
        value=node.value,
    )
    return output, step.state
