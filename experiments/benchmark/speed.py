"""How fast each part is, against the textbook baseline and against the machine's own limit.

Both sides have the same network, simulations and games, and are timed in turn. azjax runs on
all devices, as its training program does; the baseline is one program, as it is written
everywhere.
"""

from typing import Any

import jax
import jax.numpy as jnp

from azjax import memory, train
from azjax.evaluators import network_evaluator, uniform_evaluator
from azjax.game import init_batch
from azjax.search import SearchConfig, make_search
from experiments.benchmark import textbook
from experiments.benchmark.iteration import compile_both, time_iteration
from experiments.benchmark.options import Options
from experiments.benchmark.runs import (
    COPIED,
    PLIES,
    SPREAD,
    make_playing,
    on_mesh,
    run_config,
)
from experiments.benchmark.setup import Setup, set_up
from experiments.benchmark.table import Row, rate, show_rows
from experiments.benchmark.timing import median_seconds


def time_speed(options: Options) -> list[dict[str, Any]]:
    """Measures everything, prints the table, and returns its rows."""
    setup = set_up(options)
    config = run_config(options, setup.mesh.size)
    compiled, rows_compile = compile_both(setup, config)
    peak = _peak(options.repeats)
    rows = [Row("matrix product, 2048 x 2048, float32", "GFLOP/s", peak / 1e9)]
    rows += _time_network(setup)
    for algorithm in options.algorithms:
        rows += _time_search(setup, algorithm)
    play, state = make_playing(config, setup.mesh)
    rows += _time_selfplay(setup, play, state, compiled.their_play, peak)
    rows += _time_learner(setup, config, compiled.their_update)
    rows += time_iteration(setup, config, play, compiled.iterate, state)
    rows += rows_compile
    rows.append(Row("search tree", "bytes/game", memory.tree_bytes(config.search, setup.game)))
    show_rows(_title(options), rows)
    return [row._asdict() | {"ratio": row.ratio} for row in rows]


def _title(options: Options) -> str:
    return (
        f"{options.channels} channels, {options.blocks} blocks, {options.simulations} simulations, "
        f"{options.games:,} games; medians of {options.repeats}"
    )


def _peak(repeats: int, size: int = 2048) -> float:
    """The floating-point operations a second that one large matrix product reaches."""
    x = jnp.ones((size, size))
    product = jax.jit(lambda x: x @ x)
    return 2 * size**3 / median_seconds(repeats, product=lambda: product(x))["product"]


def _time_network(setup: Setup) -> list[Row]:
    games = setup.options.games
    planes = jax.random.bernoulli(jax.random.key(1), 0.4, (games, 3, 3, 2))
    folded = jax.jit(setup.network.fold)(setup.variables)
    evaluate = jax.jit(setup.evaluate)
    seconds = median_seconds(
        setup.options.repeats,
        ours=on_mesh(setup.mesh, setup.network.infer, (COPIED, SPREAD), SPREAD, folded, planes),
        textbook=lambda: evaluate(setup.theirs, planes),
    )
    return [rate("network", "evaluations/s", games, seconds)]


def _time_search(setup: Setup, algorithm: Any) -> list[Row]:
    """Searches of the starting position, with the network, and with one that costs nothing."""
    options, game, key = setup.options, setup.game, jax.random.key(2)
    config = SearchConfig(algorithm, num_simulations=options.simulations)
    states, keys = init_batch(game, options.games), jax.random.split(key, options.games)
    their_states = jax.jit(textbook.init_games, static_argnums=1)(key, options.games)

    def ours(evaluate, params):
        search = make_search(config, game, evaluate)
        return on_mesh(
            setup.mesh,
            lambda params, keys, states: search(params, keys, states, 1.0, True).action,
            (COPIED, SPREAD, SPREAD),
            SPREAD,
            *(params, keys, states),
        )

    def theirs(evaluate):
        search = textbook.make_search(algorithm, evaluate, options.simulations)
        program = jax.jit(lambda variables: search(variables, key, their_states).action)
        return lambda: program(setup.theirs)

    folded = jax.jit(setup.network.fold)(setup.variables)
    seconds = median_seconds(
        options.repeats,
        ours=ours(network_evaluator(game, setup.network, "relative"), folded),
        textbook=theirs(setup.evaluate),
        ours_bare=ours(uniform_evaluator(game), None),
        textbook_bare=theirs(textbook.trivial),
    )
    outside = {name: 1e3 * seconds[f"{name}_bare"] for name in ("ours", "textbook")}
    share = {name: outside[name] / seconds[name] / 10 for name in outside}
    return [
        rate(f"search, {algorithm}", "moves/s", options.games, seconds),
        Row(f"search, {algorithm}: outside the network", "ms", **outside),
        Row(f"search, {algorithm}: outside the network", "%", **share),
    ]


def _time_selfplay(setup: Setup, play, state, their_play, peak: float) -> list[Row]:
    """Self-play from the starting position, by Gumbel search."""
    options, key = setup.options, jax.random.key(3)
    states = textbook.init_games(key, options.games)
    _, transitions = play(state)
    _, moves = their_play(setup.theirs, key, states)
    seconds = median_seconds(
        options.repeats,
        ours=lambda: play(state),
        textbook=lambda: their_play(setup.theirs, key, states),
    )
    finished = {
        "ours": float(jnp.sum(transitions.discount == 0)),
        "textbook": float(jnp.sum(moves.terminated)),
    }
    made = options.games * PLIES
    useful = made * (options.simulations + 1) * _useful_operations(options) / peak * 100
    return [
        rate("self-play, gumbel", "moves/s", made, seconds),
        Row("self-play, gumbel", "games/s", *(finished[n] / seconds[n] for n in finished)),
        Row(
            "self-play: useful arithmetic over the matrix product's",
            "%",
            *(useful / seconds[name] for name in ("ours", "textbook")),
        ),
    ]


def _useful_operations(options: Options) -> int:
    """Operations of one evaluation: of a kernel's 81 products on the board, 49 touch it."""
    c, head = options.channels, 64
    convolutions = 49 * (2 * c + 2 * options.blocks * c * c) + 9 * c * 3
    return 2 * (convolutions + 18 * 9 + 9 * head + head)


def _time_learner(setup: Setup, config: train.Config, their_update) -> list[Row]:
    """One optimiser step on a batch that is there already."""
    size = config.learner.batch_size
    parts = train.make_parts(config, train.AXIS)
    sample = train.example_sample(config, setup.game)
    samples = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), sample)
    planes = jax.random.bernoulli(jax.random.key(4), 0.4, samples.planes.shape)
    samples = samples._replace(planes=planes, policy=samples.policy / 9)
    state = jax.jit(parts.learner.init)(setup.variables)
    specs = (COPIED, SPREAD)
    init, _ = textbook.make_learner(setup.options.channels, setup.options.blocks)
    their_state = jax.jit(init)(setup.theirs)
    seconds = median_seconds(
        setup.options.repeats,
        ours=on_mesh(setup.mesh, parts.learner.update, specs, COPIED, state, samples),
        textbook=lambda: their_update(their_state, planes, samples.policy, samples.value),
    )
    return [rate("learner", "samples/s", size, seconds)]
