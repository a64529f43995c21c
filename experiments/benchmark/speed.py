"""Speed of search and self-play against the textbook baseline.

Both have the same network, simulations and games, and are timed in turn. azjax runs on all devices,
as in training. The baseline is one program on the first device. On CPUs, its operations still use
all cores, since all devices share one pool of threads.
"""

import functools
from typing import get_args

import jax
import jax.numpy as jnp
import pgx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax import training
from azjax.games.base import Game, init_batch
from azjax.runs.config import make_parts
from azjax.search import PUCT, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.search.make import Engine
from experiments.benchmark import textbook
from experiments.benchmark.iterations import make_play, run_config, step
from experiments.benchmark.options import Options, median_seconds, show

_PLIES = 8
_ENV = pgx.make("tic_tac_toe")


def run(options: Options) -> list[dict]:
    """Measures search and self-play, prints the table and returns its rows."""
    mesh = training.make_mesh()
    parts = make_parts(run_config(options, mesh.size, options.games, _PLIES))
    rows = [*_time_searches(options, parts.game, mesh), *_time_selfplay(options, parts, mesh)]
    return show(f"{options.sizes}, {options.games:,} games; medians of {options.repeats}", rows)


def _row(what: str, unit: str, azjax: float, baseline: float | None = None) -> dict:
    """Returns a row of the table; the ratio is None without a baseline."""
    ratio = azjax / baseline if baseline else None
    row = {"what": what, "unit": unit, "azjax": azjax, "textbook": baseline}
    return row | {"azjax / textbook": ratio}


def _time_searches(options: Options, game: Game, mesh: Mesh) -> list[dict]:
    """Times PUCT on all engines from the starting position, with a trivial network."""
    key, spread = jax.random.key(2), P(training.AXIS)
    states = jax.device_put(init_batch(game, options.games), NamedSharding(mesh, spread))
    keys = jax.device_put(jax.random.split(key, options.games), NamedSharding(mesh, spread))

    def compiled(engine: Engine):
        config = PUCT(num_simulations=options.simulations)
        search = make_search(config, game, uniform_evaluator(game), engine)
        ours = jax.shard_map(
            lambda keys, states: search(None, keys, states, 1.0, True).action,
            mesh=mesh,
            in_specs=spread,
            out_specs=spread,
            check_vma=False,
        )
        return training.compiled(jax.jit(ours), keys, states)

    engines = {engine: compiled(engine) for engine in get_args(Engine)}
    baseline = textbook.make_search(
        _ENV,
        "puct",
        lambda _, planes: (jnp.zeros((len(planes), 9)), jnp.zeros(len(planes))),
        options.simulations,
    )
    their_states = jax.jit(lambda: textbook.init_games(_ENV, key, options.games))()
    theirs = jax.jit(lambda states: baseline(None, key, states).action)
    seconds = median_seconds(
        options.repeats,
        **{name: functools.partial(search, keys, states) for name, search in engines.items()},
        textbook=lambda: theirs(their_states),
    )
    taken = {side: 1e3 * each for side, each in seconds.items()}
    what = {"azjax": "search, puct", "paths": "search, puct without loops"}
    what["mctx"] = "search, puct on mctx's loop"
    return [
        _row(f"{name}: outside the network", "ms", taken[engine], taken["textbook"])
        for engine, name in what.items()
    ]


def _time_selfplay(options: Options, parts: training.Parts, mesh: Mesh) -> list[dict]:
    """Times self-play by Gumbel search from the starting position, and a whole iteration."""
    key = jax.random.key(3)
    state = training.make_state(parts, key, mesh)
    play = training.compiled(make_play(parts, mesh), state)
    held = [training.make_state(parts, key, mesh)]  # It is donated.
    iterate = training.compiled(training.make_iteration(parts, mesh), held[0])
    init, network = textbook.make_network(_ENV, options.channels, options.blocks)
    variables, states = jax.jit(init)(key), textbook.init_games(_ENV, key, options.games)
    search = textbook.make_search(_ENV, "gumbel", network.apply, options.simulations)
    theirs = jax.jit(textbook.make_selfplay(_ENV, search, _PLIES))
    seconds = median_seconds(
        options.repeats,
        azjax=lambda: play(state),
        textbook=lambda: theirs(variables, key, states),
    )
    whole = median_seconds(
        options.repeats,
        iteration=lambda: step(iterate, held),
        play=lambda: play(held[0]),
    )
    rates = (options.games * _PLIES / seconds[side] for side in ("azjax", "textbook"))
    return [
        _row("self-play, gumbel", "moves/s", *rates),
        _row("iteration over its self-play", "times", whole["iteration"] / whole["play"]),
    ]
