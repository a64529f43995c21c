"""UCT with a memory: its statistics of positions persist from game to game.

Positions reached by different moves share their statistics, so the search tree is a graph. They
are rows of the solved game, which is used only for its rules.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games import Game, State, where
from azjax.games.hashing import make_index
from azjax.games.solver import Solution
from azjax.search import Evaluator, rollout_evaluator


class Experience(NamedTuple):
    """Statistics of the `S` positions of a game. A batch has a leading axis `B`.

    Attributes:
      visits: `int32 [S]`, simulations that passed through the position.
      totals: `float32 [S]`, the sum of their outcomes for player 0.
      tried: `bool [S, A]`, the actions that simulations have tried.
    """

    visits: jax.Array
    totals: jax.Array
    tried: jax.Array


class PersistentPlayer(NamedTuple):
    """A player with a memory.

    Attributes:
      init_memory: `batch_size -> Experience`, empty, every leaf `[B, ...]`.
      learn: `(key, states [B, ...], memory) -> (actions [B], memory)`.
    """

    init_memory: Callable[[int], Any]
    learn: Callable[[jax.Array, State, Any], tuple[jax.Array, Any]]


class _Path(NamedTuple):
    """The selection phase of a simulation."""

    row: jax.Array  # int32 [], the position reached.
    rows: jax.Array  # int32 [max_plies + 1], the positions passed; S for unused entries.
    length: jax.Array  # int32 []
    outcome: jax.Array  # float32 [], sum of rewards for player 0.


def make_persistent(
    game: Game, solution: Solution, num_simulations: int, exploration: float = math.sqrt(2)
) -> PersistentPlayer:
    """Makes a UCT player whose simulations add to those of earlier moves and games.

    At a node with untried actions, the last of them is tried, followed by a random game. At other
    nodes UCB1 chooses, with the visits and mean outcome of the *position* after each action,
    including those from other paths. The most visited action is played. Of equal actions, the last
    one is chosen.
    """
    index, size = make_index(solution.states), solution.num_states
    graph, evaluate = jax.tree.map(jnp.asarray, solution), rollout_evaluator(game)
    simulate = functools.partial(_simulate, graph, evaluate, game.max_plies, exploration)

    def init_memory(batch_size: int) -> Experience:
        return Experience(
            visits=jnp.zeros((batch_size, size), jnp.int32),
            totals=jnp.zeros((batch_size, size), jnp.float32),
            tried=jnp.zeros((batch_size, size, game.num_actions), bool),
        )

    def learn(key, states, memory):
        rows = index(states)

        def add(i, memory):
            keys = jax.random.split(jax.random.fold_in(key, i), len(rows))
            return jax.vmap(simulate)(keys, rows, memory)

        memory = jax.lax.fori_loop(0, num_simulations, add, memory)
        return jax.vmap(functools.partial(_choose, graph))(rows, memory), memory

    return PersistentPlayer(init_memory, learn)


def _simulate(
    graph: Any, evaluate: Evaluator, max_plies: int, exploration: float, key, root, memory
) -> Experience:
    """Makes one simulation: selection, expansion, a random game, backup; none of finished games."""
    signs = 1.0 - 2.0 * graph.player  # Rewards of player 1 count against player 0.

    def untried(row):
        return graph.legal[row] & ~memory.tried[row]

    def is_inside(path):
        return ~graph.over[path.row] & ~jnp.any(untried(path.row))

    def move(path, action):
        row = graph.children[path.row, action]
        outcome = path.outcome + signs[path.row] * graph.rewards[path.row, action]
        return _Path(row, path.rows.at[path.length].set(row), path.length + 1, outcome)

    def descend(path):
        children = graph.children[path.row]
        visits = jnp.maximum(memory.visits[children], 1).astype(jnp.float32)
        mean = memory.totals[children] / visits
        bound = jnp.sqrt(jnp.log1p(memory.visits[path.row].astype(jnp.float32)) / visits)
        score = signs[path.row] * mean + exploration * bound
        score = jnp.where(graph.legal[path.row], score, -jnp.inf)
        return move(path, _last(score == jnp.max(score)))

    unused = len(graph.over)
    start = jnp.full(max_plies + 1, unused).at[0].set(jnp.where(graph.over[root], unused, root))
    end = jax.lax.while_loop(is_inside, descend, _Path(root, start, jnp.int32(1), jnp.float32(0)))
    action, expands = _last(untried(end.row)), ~graph.over[end.row]
    path = where(expands, move(end, action), end)
    one = jax.tree.map(lambda leaf: leaf[path.row][None], graph.states)
    _, (value,) = evaluate(None, key[None], one)
    outcome = path.outcome + signs[path.row] * value
    return Experience(
        visits=memory.visits.at[path.rows].add(1, mode="drop"),
        totals=memory.totals.at[path.rows].add(outcome, mode="drop"),
        tried=memory.tried.at[end.row, action].max(expands),
    )


def _choose(graph: Any, row, memory: Experience) -> jax.Array:
    """Returns the most visited of the tried actions."""
    visits = jnp.where(memory.tried[row], memory.visits[graph.children[row]], -1)
    return _last(visits == jnp.max(visits)).astype(jnp.int32)


def _last(mask: jax.Array) -> jax.Array:
    """Returns the highest number of an action in `mask [A]`."""
    return jnp.argmax(jnp.where(mask, jnp.arange(len(mask)), -1))
