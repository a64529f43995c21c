"""Anytime play: a search with a time limit in place of a number of simulations."""

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, check_batch
from azjax.players.agent import Agent, decide
from azjax.search import Algorithm, make_resumable
from azjax.search.evaluators import Evaluator

_PROBE = 32  # Simulations that measure the speed of a new batch size.
_SHARE = 1 / 16  # Share of the remaining time between two readings of the clock.


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
