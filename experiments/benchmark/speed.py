"""Speed of network, search and self-play against the textbook baseline.

Both have the same layers, simulations and games, and are timed in turn. azjax computes in the dtype
that `auto` chooses: bfloat16 on most GPUs, where the baseline's float32 runs in JAX's default
precision. azjax runs on all devices, as in training. The baseline is one program on the first
device. On CPUs, its operations still use all cores, since all devices share one pool of threads.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import pgx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax import training
from azjax.games import Game, init_batch
from azjax.runs import make_parts
from azjax.search import PUCT, MctxMuZero, make_search, paths, simulate, uniform_evaluator
from experiments.benchmark import textbook
from experiments.benchmark.iterations import make_play, run_config, step
from experiments.benchmark.options import Options, median_seconds, show

_PLIES = 8


def run(options: Options) -> list[dict]:
    """Measures search and self-play, prints the table and returns its rows."""
    name: Any = options.game.removeprefix("pgx:")
    mesh, env = training.make_mesh(), pgx.make(name)
    parts = make_parts(run_config(options, mesh.size, options.games, _PLIES))
    rows = [
        _time_network(options, parts, mesh, env),
        *_time_searches(options, parts.game, mesh, env),
        *_time_selfplay(options, parts, mesh, env),
    ]
    title = f"{options.game}, {options.sizes}, {options.games:,} games"
    return show(f"{title}; medians of {options.repeats}", rows)


def _row(what: str, unit: str, azjax: float, baseline: float | None = None) -> dict:
    """Returns a row of the table; the ratio is None without a baseline."""
    ratio = azjax / baseline if baseline else None
    row = {"what": what, "unit": unit, "azjax": azjax, "textbook": baseline}
    return row | {"azjax / textbook": ratio}


def _on_mesh(mesh: Mesh, function: Any, *inputs: Any) -> functools.partial:
    """Compiles a function for inputs that are split over the devices by their first axis."""
    split = P(training.AXIS)
    inputs = jax.device_put(inputs, NamedSharding(mesh, split))
    ours = jax.shard_map(function, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)
    return functools.partial(training.compiled(jax.jit(ours), *inputs), *inputs)


def _time_network(options: Options, parts: training.Parts, mesh: Mesh, env: Any) -> dict:
    """Times the network alone, on as many positions as there are games."""
    key, network = jax.random.key(1), parts.network
    variables = network.init(key)
    folded = network.fold(variables)
    planes = parts.game.observe(parts.game.init(), network.encoding)
    ours = _on_mesh(
        mesh,
        lambda planes: network.infer(folded, planes)[:2],
        jnp.repeat(planes[None], options.games, axis=0),
    )
    init, baseline = textbook.make_network(env, options.channels, options.blocks)
    observation = textbook.init_games(env, key, options.games).observation
    theirs = functools.partial(jax.jit(baseline.apply), jax.jit(init)(key), observation)
    seconds = median_seconds(options.repeats, azjax=ours, textbook=theirs)
    kernels = [x for x in jax.tree.leaves(variables["params"]) if x.ndim > 1]
    cells = math.prod(planes.shape[:2])
    products = sum(x.size * (cells if x.ndim == 4 else 1) for x in kernels)
    rates = (2e-12 * products * options.games / seconds[side] for side in ("azjax", "textbook"))
    return _row("network alone, as plain convolutions", "TFLOP/s", *rates)


def _time_searches(options: Options, game: Game, mesh: Mesh, env: Any) -> list[dict]:
    """Times PUCT in both loops, and mctx's policy, with a trivial network."""
    key, states = jax.random.key(2), init_batch(game, options.games)
    keys = jax.random.split(key, options.games)

    def compiled(algorithm: PUCT | MctxMuZero, grow: Any = None):
        search = make_search(algorithm, game, uniform_evaluator(game), grow)
        return _on_mesh(
            mesh, lambda keys, states: search(None, keys, states, 1.0, True).action, keys, states
        )

    ours = {
        "search, puct": compiled(PUCT(options.simulations), simulate.grow),
        # At any number of games, to find the number from which it is slower.
        "search, puct without loops": compiled(
            PUCT(options.simulations), functools.partial(paths.grow, most_trees=options.games)
        ),
        "search, mctx_muzero": compiled(MctxMuZero(options.simulations)),
    }
    baseline = textbook.make_search(
        env,
        "puct",
        lambda _, planes: (jnp.zeros((len(planes), env.num_actions)), jnp.zeros(len(planes))),
        options.simulations,
    )
    their_states = jax.jit(lambda: textbook.init_games(env, key, options.games))()
    theirs = jax.jit(lambda states: baseline(None, key, states).action)
    seconds = median_seconds(options.repeats, **ours, textbook=lambda: theirs(their_states))
    taken = {side: 1e3 * each for side, each in seconds.items()}
    return [
        _row(f"{name}: outside the network", "ms", taken[name], taken["textbook"]) for name in ours
    ]


def _time_selfplay(options: Options, parts: training.Parts, mesh: Mesh, env: Any) -> list[dict]:
    """Times self-play by Gumbel search from the starting position, and a whole iteration."""
    key = jax.random.key(3)
    state = training.make_state(parts, key, mesh)
    play = training.compiled(make_play(parts, mesh), state)
    held = [training.make_state(parts, key, mesh)]  # It is donated.
    iterate = training.compiled(training.make_iteration(parts, mesh), held[0])
    init, network = textbook.make_network(env, options.channels, options.blocks)
    variables, states = jax.jit(init)(key), textbook.init_games(env, key, options.games)
    search = textbook.make_search(env, "gumbel", network.apply, options.simulations)
    theirs = jax.jit(textbook.make_selfplay(env, search, _PLIES))
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
