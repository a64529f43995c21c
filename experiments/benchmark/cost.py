"""What a search costs an accelerator, on paper: nothing here is run on one.

The programs are those of GPUs, traced and optimized by XLA for this CPU: arithmetic in float32, all
games together, and no form that is chosen for CPUs alone. How operations fuse differs by platform.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable, Iterator
from typing import Any

import jax
import mctx
from rich.progress import track

from azjax import training
from azjax.games.base import Game
from azjax.runs import presets
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel, make_search, mctx_fns
from azjax.search.evaluators import Evaluator
from azjax.training import memory
from azjax.training.parts import Parts
from azjax.training.starts import start_games
from experiments.benchmark.loops import Loop, find_loops
from experiments.benchmark.measuring import show
from experiments.benchmark.options import Options

_PRESET = "connect_four"
_STOCK = "mctx.gumbel_muzero_policy"
_PLACES = {(): "around", (0,): "simulation", (0, 0): "down", (0, 1): "up"}
_LAUNCH = 5e-6  # Seconds a kernel, assumed.
_MEASURED = 4096  # Games, of which a card's traffic is taken.
_BATCH = 4096  # Of the learner, at most.
_SAMPLES = 4  # Times that a move is learned from, as in the preset.
_WINDOW = 24  # Iterations in the buffer, as in the preset.
_CARDS = {  # By memory in GB: an example, and its bandwidth in GB/s by the maker's data sheet.
    16: ("T4", 320),
    40: ("A100 40 GB", 1555),
    80: ("A100 80 GB", 2039),
}


def count_costs(options: Options) -> list[dict]:
    """Prints what a move costs with every number of games, and then each loop of the search."""
    rows, loops = [], []
    for games in track(options.cost_games, "costs", transient=True):
        for engine, found, calls in find_costs(games):
            rows.append({"engine": engine, "games": games, **_sum_up(found, calls)})
            loops += [{"engine": engine, "games": games, **_row(loop)} for loop in found]
    show(f"one move of all games, preset {_PRESET}; counted, not run on an accelerator", rows)
    show("its loops, each time once around; counted, not run on an accelerator", loops)
    return [row | {"loops": [loop for loop in loops if _same(loop, row)]} for row in rows]


def _same(loop: dict, row: dict) -> bool:
    return all(loop[name] == row[name] for name in ("engine", "games"))


def find_costs(games: int) -> Iterator[tuple[str, list[Loop], int]]:
    """Yields, for every engine, its name, the loops of a search and the number of network calls.

    The searches start from that many positions of self-play, with a network that learned nothing.
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
    """The parts as they are built for a GPU without bfloat16, which this CPU counts alike."""
    in_full = {"evaluation_dtype": "float32", "learning_dtype": "float32"}
    network: Any = config.network
    config = dataclasses.replace(config, network=dataclasses.replace(network, **in_full))
    return make_parts(config, platform="gpu")


def make_searches(parts: Parts) -> dict[str, Callable]:
    """Returns `(params, key, states) -> weights [B, A]` of every engine, by its name."""

    @jax.jit
    def evaluate_positions(params, keys, states):
        return parts.evaluate(params, keys, states)

    # One by one, as in self-play, where some position nearly always has only few legal actions.
    settings: Any = parts.search
    search = dataclasses.replace(settings, rows_together=1)
    hint = typing.get_type_hints(type(search)).get("engine")
    engines = {
        name: dataclasses.replace(search, engine=name) for name in typing.get_args(hint)
    } or {"azjax": search}
    searches: dict[str, Callable] = {
        name: functools.partial(
            _weights, make_search(search, parts.game, Evaluator(evaluate_positions))
        )
        for name, search in engines.items()
    }
    return searches | {_STOCK: _stock_search(search, parts.game, evaluate_positions)}


def _weights(search, params, key, states):
    return search(params, key, states, 1.0, True).action_weights


def _stock_search(settings: Gumbel, game: Game, evaluate: Callable) -> Callable:
    """The policy of mctx as it is, with the same game, network and settings."""
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
    """What a move costs: every loop as often as it ran."""
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
    """Prints with how many games to start on cards of several sizes, and what the run then needs.

    As many games, a power of two, as move in a search for as long as the launches of its kernels
    take, at least; fewer where the run would need more than half of the card.
    """
    del options
    _, loops, calls = next(iter(find_costs(_MEASURED)))
    cost, tables = _sum_up(loops, calls), []
    for gigabytes, (example, bandwidth) in track(_CARDS.items(), "cards", transient=True):
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
    show(f"sizes to start with, {title}", [card | sizes for card, sizes, _ in tables])
    show(f"what these take, {title}", [card | taken for card, _, taken in tables])
    return [card | sizes | taken for card, sizes, taken in tables]


def config_of(games: int) -> Config:
    """The preset with another number of games: each move is learned from as often."""
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
    """What a training of that many games needs on one device; compiled for this CPU, not run."""
    parts, mesh = make_gpu_parts(config_of(games)), training.make_mesh(jax.devices()[:1])
    state = training.abstract_state(parts, mesh)
    iterate = training.compiled(training.make_iteration(parts, mesh), state, often=False)
    return memory.estimate(parts, mesh, iterate)
