"""Any-time play: a search that is given seconds in place of a number of simulations."""

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.agents.agent import Agent, decide
from azjax.evaluators import Evaluator
from azjax.game import Game, check_batch
from azjax.search import SearchConfig, considered_visits, make_resumable

_PROBE = 32  # Simulations that measure the speed of a batch size not met before.
_SHARE = 1 / 16  # Of the time left, between two looks at the clock.


def anytime_agent(
    game: Game,
    config: SearchConfig,
    evaluate: Evaluator,
    params: Any = None,
    seconds: float = 0.1,
    name: str | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Agent:
    """Searches until its time is up, then plays the best action found.

    A batch of positions shares the time. The first call with a batch size compiles and
    measures the speed, which takes seconds of its own. Gumbel must know beforehand how many
    simulations there will be: it plans for as many as its speed lets expect, and plans again
    after a tenth of the time, while sequential halving still considers all its actions.

    Args:
      game: the rules.
      config: as for `search_agent`; `num_simulations` is the most that it makes, and its
        tree needs memory for as many.
      evaluate: any evaluator.
      params: for the evaluator.
      seconds: time for one call.
      name: the player's; the algorithm and the time by default.
      clock: what tells the time, in seconds.

    Returns:
      A player whose `act` looks at the clock, so that it cannot be jitted.

    Raises:
      ValueError: if the time is not above 0.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"{seconds} seconds are no time to search: use above 0")
    capacity = config.num_simulations
    search = make_resumable(config, game, evaluate)
    start, grow = jax.jit(search.start), jax.jit(search.grow, donate_argnums=4)
    finish = jax.jit(lambda *args: decide(config, search.finish(*args)))
    speed: dict[int, float] = {}  # Simulations a second, by batch size.
    closing: dict[int, float] = {}  # Seconds from the last simulation to the answer.

    def run(params, keys, states, limit: float, expected: int):
        """Grows a tree until `limit` seconds are over or `expected` simulations are made."""
        began, size = clock(), len(keys)
        schedule = _schedule(config, game, expected)
        tree = jax.block_until_ready(start(params, keys, states, schedule))
        deadline = began + limit - closing.get(size, 0.0)
        ready, done, rate = clock(), 0, speed.get(size, 0.0)
        is_planned = config.algorithm == "gumbel" and expected < capacity
        while done < expected and (left := deadline - clock()) > 0:
            count = max(1, min(int(rate * left * _SHARE), expected - done))
            tree = jax.block_until_ready(
                grow(params, keys, states, schedule, tree, jnp.int32(done), jnp.int32(count))
            )
            done, now = done + count, clock()
            rate = done / max(now - ready, 1e-9)
            if is_planned and now - began > limit / 10:  # All actions still have their turn.
                more = rate * (deadline - now)
                expected, is_planned = int(np.clip(done + more, done, capacity)), False
                schedule = _schedule(config, game, expected)
        stopped = clock()
        decision = jax.block_until_ready(finish(params, keys, states, schedule, tree))
        speed[size], closing[size] = rate, clock() - stopped
        return decision

    def act(params, key, states):
        keys = jax.random.split(key, check_batch(game, states))
        if len(keys) not in speed:
            for _ in range(2):  # The first one compiles.
                run(params, keys, states, 3600.0, min(_PROBE, capacity))
            run(params, keys, states, seconds, capacity)  # Deeper trees grow more slowly.
        expected = capacity
        if config.algorithm == "gumbel":
            time_left = seconds - closing[len(keys)]
            expected = int(np.clip(speed[len(keys)] * time_left, 1, capacity))
        return run(params, keys, states, seconds, expected)

    return Agent(
        name=name or f"{config.algorithm}({seconds:g} s)",
        act=act,
        params=params,
        traceable=False,
        nodes=capacity + 1,
    )


def _schedule(config: SearchConfig, game: Game, expected: int) -> jax.Array:
    """Sequential halving for the simulations expected, as long as the tree's room."""
    if config.algorithm != "gumbel":
        return jnp.zeros((0, 0), jnp.int32)
    considered = min(config.max_considered_actions, game.num_actions)
    planned = considered_visits(considered, expected)
    unused = config.num_simulations - expected
    return jnp.asarray(np.pad(planned, ((0, 0), (0, unused)), mode="edge"))
