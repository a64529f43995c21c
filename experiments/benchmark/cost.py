"""Estimated costs of a search on an accelerator; nothing here runs on one.

The programs are built for GPUs (float32, all games together, no CPU-specific code) and then traced
and optimized by XLA for this CPU, so fusion differs from that on an accelerator.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable, Iterator
from typing import Any

import jax
import mctx

from azjax import training
from azjax.cli import console
from azjax.games.base import Game
from azjax.runs import presets
from azjax.runs.config import Config, make_parts
from azjax.search import Engine, Gumbel, make_search, mctx_fns
from azjax.search.evaluators import Evaluator
from azjax.training import memory
from azjax.training.parts import Parts
from azjax.training.selfplay import start_games
from experiments.benchmark.loops import Loop, find_loops
from experiments.benchmark.measuring import show
from experiments.benchmark.options import Options

_PRESET = "connect_four"
_STOCK = "mctx.gumbel_muzero_policy"
_PLACES = {(): "around", (0,): "simulation", (0, 0): "down", (0, 1): "up"}
_LAUNCH = 5e-6  # Assumed seconds to launch a kernel.
_MEASURED = 4096  # Number of games from which a card's memory traffic is estimated.
_BATCH = 4096  # Largest batch of the learner.
_SAMPLES = 4  # How often the learner draws each move, on average, as in the preset.
_WINDOW = 24  # Iterations in the buffer, as in the preset.
_CARDS = {  # By memory in GB: an example, and its bandwidth in GB/s from the data sheet.
    16: ("T4", 320),
    40: ("A100 40 GB", 1555),
    80: ("A100 80 GB", 2039),
}


def count_costs(options: Options) -> list[dict]:
    """Prints the cost of one move for each number of games, and of each loop of the search."""
    rows, loops = [], []
    for games in console.track(options.cost_games, "costs"):
        for engine, parts, calls in find_costs(games):
            name = {"engine": engine, "games": games}
            rows.append(name | _sum_up(parts, calls))
            loops.append([name | _row(loop) for loop in parts])
    show(f"one move of all games, preset {_PRESET}; counted, not run on an accelerator", rows)
    show("one iteration of its loops; counted, not run on an accelerator", sum(loops, []))
    return [row | {"loops": parts} for row, parts in zip(rows, loops, strict=True)]


def find_costs(games: int) -> Iterator[tuple[str, list[Loop], int]]:
    """Yields each engine's name, the loops of its search and its number of network calls.

    The searches start from `games` positions of self-play, with an untrained network.
    """
    parts = make_gpu_parts(presets.get(_PRESET))

    def begin(key):
        key_network, key_games = jax.random.split(key)
        params = parts.network.fold(parts.network.init(key_network))
        keys = jax.random.split(key_games, games)
        return params, start_games(parts.selfplay, parts.game, keys).states

    params, states = jax.jit(begin)(jax.random.key(0))
    arguments = params, jax.random.key(1), states
    for engine, search in make_searches(parts).items():
        yield engine, *find_loops(search, *arguments, calls="evaluate_positions")


def make_gpu_parts(config: Config) -> Parts:
    """Builds the parts for a GPU, in float32.

    In bfloat16, XLA might insert conversions for this CPU, which would change the counts.
    """
    in_full = {"evaluation_dtype": "float32", "learning_dtype": "float32"}
    network: Any = config.network
    config = dataclasses.replace(config, network=dataclasses.replace(network, **in_full))
    return make_parts(config, platform="gpu")


def make_searches(parts: Parts) -> dict[str, Callable]:
    """Returns `(params, key, states) -> weights [B, A]` for every engine, by its name."""

    @jax.jit
    def evaluate_positions(params, keys, states):
        return parts.evaluate(params, keys, states)

    settings: Any = parts.search

    def make(engine):
        search = make_search(settings, parts.game, Evaluator(evaluate_positions), engine)
        return lambda *arguments: search(*arguments, 1.0, True).action_weights

    searches = {engine: make(engine) for engine in typing.get_args(Engine)}
    return searches | {_STOCK: _stock_search(settings, parts.game, evaluate_positions)}


def _stock_search(settings: Gumbel, game: Game, evaluate: Callable) -> Callable:
    """Returns the search of mctx with the same game, network and settings."""
    fns = mctx_fns(game, Evaluator(evaluate))

    def search(params, key, states):
        return mctx.gumbel_muzero_policy(
            params,
            key,
            fns.root(params, key, states),
            fns.recurrent_fn,
            settings.num_simulations,
            invalid_actions=fns.invalid_actions(states),
            max_num_considered_actions=settings.max_considered_actions,
            gumbel_scale=settings.gumbel_scale,
            qtransform=functools.partial(
                mctx.qtransform_completed_by_mix_value,
                value_scale=settings.value_scale / 2,
                maxvisit_init=settings.maxvisit_init,
                rescale_values=False,
            ),
        ).action_weights

    return search


def _sum_up(loops: list[Loop], calls: int) -> dict:
    """Computes the cost of one move: each loop's cost times its trips."""
    total = {name: sum(loop.trips * getattr(loop.once, name) for loop in loops)
             for name in ("kernels", "bytes", "flops")}  # fmt: skip
    temporary = next(loop.once.memory for loop in loops if not loop.path)
    return {
        "network calls": calls,
        "loop trips": sum(loop.trips for loop in loops if loop.path),
        "kernels": total["kernels"],
        "GB moved": total["bytes"] / 1e9,
        "GFLOP": total["flops"] / 1e9,
        "temporary MB": temporary / 1e6,
    }


def _row(loop: Loop) -> dict:
    return {
        "part": _PLACES.get(loop.path, str(loop.path)),
        "trips": loop.trips,
        "kernels": loop.once.kernels,
        "MB moved": loop.once.bytes / 1e6,
        "MFLOP": loop.once.flops / 1e6,
    }


def choose_sizes(options: Options) -> list[dict]:
    """Prints settings to start with on GPU cards, and the time and memory that they need.

    The number of games is the smallest power of two for which memory traffic takes at least as long
    as kernel launches, or a smaller one if the run would need more than half of the card's memory.
    """
    del options
    _, loops, calls = next(iter(find_costs(_MEASURED)))
    cost, tables = _sum_up(loops, calls), []
    for gigabytes, (example, bandwidth) in console.track(_CARDS.items(), "cards"):
        launches, moved = cost["kernels"] * _LAUNCH, cost["GB moved"] / _MEASURED / bandwidth
        games = 2 ** max(0, (int(launches / moved)).bit_length())
        needs = find_needs(games)
        while 2 * needs.total > gigabytes * 1e9 and games > 1:
            games //= 2
            needs = find_needs(games)
        config = config_of(games)
        sizes = {
            "games": games,
            "games_at_once": config.selfplay.games_at_once,
            "capacity": config.replay.capacity,
            "batch_size": config.learner.batch_size,
            "steps": config.learner.steps,
        }
        taken = {
            "trees, GB": needs.tree / 1e9,
            "buffer, GB": needs.buffer / 1e9,
            "whole run, GB": needs.total / 1e9,
            "launches, ms/move": 1e3 * launches,
            "traffic, ms/move": 1e3 * moved * games,
        }
        tables.append(({"card": f"{gigabytes} GB, such as {example}"}, sizes, taken))
    title = f"preset {_PRESET}; computed, not run on an accelerator"
    show(f"initial sizes, {title}", [card | sizes for card, sizes, _ in tables])
    show(f"their time and memory, {title}", [card | taken for card, _, taken in tables])
    return [card | sizes | taken for card, sizes, taken in tables]


def config_of(games: int) -> Config:
    """Returns the preset with another number of games; the learner draws each move as often."""
    config = presets.get(_PRESET)
    moves = games * config.selfplay.unroll_length
    batch = min(_BATCH, games)
    return dataclasses.replace(
        config,
        selfplay=dataclasses.replace(config.selfplay, games=games),
        replay=dataclasses.replace(config.replay, capacity=_WINDOW * moves),
        learner=dataclasses.replace(
            config.learner, batch_size=batch, steps=_SAMPLES * moves // batch
        ),
    )


def find_needs(games: int) -> memory.Estimate:
    """Returns the memory that training needs on one device; compiled for this CPU, not run."""
    parts, mesh = make_gpu_parts(config_of(games)), training.make_mesh(jax.devices()[:1])
    state = training.abstract_state(parts, mesh)
    iterate = training.compiled(training.make_iteration(parts, mesh), state, often=False)
    return memory.estimate(parts, mesh, iterate)
