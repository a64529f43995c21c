"""How fast matches are, and how exactly players keep to their clocks."""

import statistics
import time
from collections.abc import Callable
from unittest import mock

import jax
import mctx

from azjax import agents, games
from azjax.arena import play_match
from azjax.evaluators import rollout_evaluator
from azjax.game import Game, init_batch
from azjax.search import SearchConfig, make_search


def time_arena(repeats: int = 5) -> dict[str, float]:
    """Times matches, searches and players with a clock, and prints the medians."""
    game = games.make("tic_tac_toe")
    random, uct = agents.random_agent(game), _uct(game, 100)
    million, thousands = 1_000_000, 10_000

    def match(one, other, count):
        return lambda key: play_match(game, one, other, count, key)

    found = {
        "random - random, seconds for 1,000,000 games": _median_time(
            match(random, random, million), repeats
        ),
        "UCT(100) - random, games a minute": 60
        * thousands
        / _median_time(match(uct, random, thousands), repeats),
    }
    for simulations, batch in ((32, 1024), (100, 1024), (500, 256)):
        ours, theirs = _time_loops(game, simulations, batch, repeats)
        label = f"UCT, {simulations} simulations, {batch} games"
        found[f"{label}: simulations a second"] = simulations * batch / ours
        found[f"{label}: times as fast as mctx's own loop"] = theirs / ours
    for algorithm in ("uct", "puct", "gumbel"):
        for seconds in (0.1, 0.5):
            found[f"{algorithm} given {seconds} s: seconds taken"] = _time_clock(
                game, algorithm, seconds, repeats
            )
    for name, value in found.items():
        print(f"{value:14,.3f}  {name}")
    return found


def _uct(game: Game, simulations: int) -> agents.Agent:
    config = SearchConfig("uct", num_simulations=simulations)
    return agents.search_agent(game, config, rollout_evaluator(game))


def _median_time(run: Callable[[jax.Array], object], repeats: int) -> float:
    """The median seconds of `run(key)`, after one that compiles."""
    times = []
    for seed in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(run(jax.random.key(seed)))
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def _time_loops(game: Game, simulations: int, batch: int, repeats: int) -> tuple[float, float]:
    """Seconds of one UCT search with our loop over simulations, and with mctx's, in turn."""
    config = SearchConfig("uct", num_simulations=simulations)
    states = init_batch(game, batch)

    def search(key):
        find = make_search(config, game, rollout_evaluator(game))
        return find(None, jax.random.split(key, batch), states).visit_counts

    key, ours, times = jax.random.key(0), jax.jit(search), ([], [])
    ours(key)
    with mock.patch.object(mctx, "search", _without_our_loop(mctx.search)):
        theirs = jax.jit(lambda key: search(key))
        theirs(key)
    for seed in range(repeats):
        for run, seconds in zip((ours, theirs), times, strict=True):
            seconds.append(_median_time(lambda _: run(jax.random.key(seed)), 1))
    return statistics.median(times[0]), statistics.median(times[1])


def _without_our_loop(mctx_search: Callable) -> Callable:
    return lambda *args, loop_fn, **rest: mctx_search(*args, **rest)


def _time_clock(game: Game, algorithm, seconds: float, repeats: int) -> float:
    """The time that a player with a clock takes for one position; the worst of several."""
    config = SearchConfig(algorithm, num_simulations=50_000)
    agent = agents.anytime_agent(game, config, rollout_evaluator(game), seconds=seconds)
    state, taken = init_batch(game, 1), []
    agent.act(None, jax.random.key(0), state)  # It compiles and measures its speed.
    for seed in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(agent.act(None, jax.random.key(seed), state))
        taken.append(time.perf_counter() - start)
    return max(taken, key=lambda t: abs(t - seconds))
