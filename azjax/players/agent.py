"""The `Agent` record, and the players: random, perfect, network, search with a number or a time."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State, check_batch, choose, legal_action_at
from azjax.games.hashing import make_index
from azjax.games.solver import Solution
from azjax.search import Algorithm, SearchResult, make_resumable, make_search
from azjax.search.algorithm import mask_logits
from azjax.search.evaluators import Evaluator, checked, is_deterministic

_PROBE = 32  # Simulations that measure the speed of a new batch size.
_SHARE = 1 / 16  # Share of the remaining time between two readings of the clock.


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
    nodes: jax.Array | None = None  # `int32 [B]`, positions visited.


class Agent(NamedTuple):
    """A player."""

    name: str  # The name in tables and plots.
    # `(params, key, states [B, ...]) -> Decision`.
    act: Callable[[Any, jax.Array, State], Decision]
    # The first argument of `act`, such as the parameters of a network. Settings, such as a number
    # of simulations, belong in the function.
    params: Any = None
    deterministic: bool = False  # Whether the action depends only on the position, not on the key.
    traceable: bool = True  # Whether `act` can be jitted; a player with a time limit cannot.
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
    index = make_index(game, solution.states)
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


def network_agent(game: Game, evaluate: Evaluator, params: Any, name: str = "network") -> Agent:
    """Makes a player that plays an evaluator's most probable legal action, without search."""
    find = checked(game, evaluate)

    def act(params, key, states):
        check_batch(game, states)
        logits, value, *_ = find(params, key, states)
        legal = jax.vmap(game.legal_actions)(states)
        prior = jnp.where(legal, jax.nn.softmax(mask_logits(legal, logits)), 0.0)
        return Decision(choose(logits, legal), prior, value=value, prior=prior)

    return Agent(name, act, params, deterministic=is_deterministic(evaluate))


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
        nodes=jnp.sum(result.visit_counts, axis=-1, dtype=jnp.int32),
    )


def anytime_agent(
    game: Game,
    search: Algorithm,
    evaluate: Evaluator,
    params: Any = None,
    seconds: float = 0.1,
    name: str | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Agent:
    """Makes a player that searches until its time is up, then plays the best action found.

    The time limit is for a whole batch of positions. The first call with a new batch size also
    compiles and measures the speed, which takes additional seconds. Algorithms such as Gumbel need
    the number of simulations in advance. It is estimated from the speed, and the estimate is
    corrected after a tenth of the time. The player cannot be jitted.

    `search.num_simulations` is the maximum and the capacity of the tree. The name is by default the
    algorithm and the time. `clock` returns the time in seconds.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds is {seconds}: use a number above 0")
    capacity = search.num_simulations
    steps = make_resumable(search, game, evaluate)
    start, grow = jax.jit(steps.init), jax.jit(steps.step, donate_argnums=4)
    finish = jax.jit(lambda *args: decide(steps.finish(*args)))
    speed: dict[int, float] = {}  # Simulations per second, by batch size.
    closing: dict[int, float] = {}  # Seconds from the last simulation to the answer.

    def run(params, keys, states, limit: float, expected: int):
        """Grows a tree for `limit` seconds, or until it has made `expected` simulations."""
        began, size = clock(), len(keys)
        budget = jnp.int32(expected)
        tree = jax.block_until_ready(start(params, keys, states, budget))
        deadline = began + limit - closing.get(size, 0.0)
        ready, done, rate = clock(), 0, speed.get(size, 0.0)
        is_planned = expected < capacity
        while done < expected and (left := deadline - clock()) > 0:
            count = max(1, min(int(rate * left * _SHARE), expected - done))
            tree = jax.block_until_ready(
                grow(params, keys, states, budget, tree, jnp.int32(done), jnp.int32(count))
            )
            done, now = done + count, clock()
            rate = done / max(now - ready, 1e-9)
            if is_planned and now - began > limit / 10:
                more = rate * (deadline - now)
                expected, is_planned = int(np.clip(done + more, done, capacity)), False
                budget = jnp.int32(expected)
        stopped = clock()
        decision = jax.block_until_ready(finish(params, keys, states, budget, tree))
        speed[size], closing[size] = rate, clock() - stopped
        return decision

    def act(params, key, states):
        keys = jax.random.split(key, check_batch(game, states))
        if len(keys) not in speed:
            for _ in range(2):  # The first call compiles.
                run(params, keys, states, 3600.0, min(_PROBE, capacity))
            run(params, keys, states, seconds, capacity)  # Deeper trees grow more slowly.
        time_left = seconds - closing[len(keys)]
        expected = int(np.clip(speed[len(keys)] * time_left, 1, capacity))
        return run(params, keys, states, seconds, expected)

    return Agent(
        name=name or f"{search.algorithm}({seconds:g} s)",
        act=act,
        params=params,
        traceable=False,
        nodes=capacity + 1,
    )


def _uniform_over(mask: jax.Array) -> jax.Array:
    shares = mask.astype(jnp.float32)
    return shares / jnp.maximum(jnp.sum(shares, axis=-1, keepdims=True), 1.0)
