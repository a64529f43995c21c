"""How fast matches are, and how exactly players keep to their clocks."""

import itertools
import time

import jax

from azjax import agents, games
from azjax.arena import play_match
from azjax.evaluators import rollout_evaluator
from azjax.game import Game, init_batch
from azjax.search import ALGORITHMS, UCT
from experiments.benchmark.measuring import median_seconds, show
from experiments.benchmark.options import Options


def time_arena(options: Options) -> list[dict]:
    """Times matches and players with a clock."""
    game, key = games.make("tic_tac_toe"), jax.random.key(0)
    random = agents.random_agent(game)
    uct = agents.search_agent(game, UCT(num_simulations=100), rollout_evaluator(game))
    seconds = median_seconds(
        options.repeats,
        random=lambda: play_match(game, random, random, 1_000_000, key),
        uct=lambda: play_match(game, uct, random, 10_000, key),
    )
    found = {
        "random against random, 1,000,000 games: seconds": seconds["random"],
        "UCT, 100 simulations, against random: games a minute": 60 * 10_000 / seconds["uct"],
        "players with a clock, furthest from it: %": 100 * _furthest(game, options.repeats),
    }
    return show("arena", [{"what": name, "value": value} for name, value in found.items()])


def _furthest(game: Game, repeats: int) -> float:
    """How far players are from their clocks at the worst, as a share of the time given."""
    states, evaluate, furthest = init_batch(game, 1), rollout_evaluator(game), 0.0
    for algorithm, seconds in itertools.product(ALGORITHMS.values(), (0.1, 0.5)):
        search = algorithm(num_simulations=50_000)
        agent = agents.anytime_agent(game, search, evaluate, seconds=seconds)
        for repeat in range(repeats + 1):
            start = time.perf_counter()
            jax.block_until_ready(agent.act(None, jax.random.key(repeat), states))
            if repeat:  # The first compiles and measures its speed.
                furthest = max(furthest, abs((time.perf_counter() - start) / seconds - 1))
    return furthest
