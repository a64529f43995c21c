"""How fast each part is, against the textbook baseline and against the machine's own limit.

Both sides have the same network, simulations and games, and are timed in turn. azjax runs on
all devices, as its training program does. The baseline is one program on the first device, as it
is written everywhere; of the CPU's devices each has the threads of all cores, so its operations
use them all.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from azjax import train
from azjax.config import make_parts
from azjax.evaluators import uniform_evaluator
from azjax.game import init_batch
from azjax.search import PUCT, make_search
from experiments.benchmark import textbook
from experiments.benchmark.iterations import go_on, run_config
from experiments.benchmark.measuring import median_seconds, show
from experiments.benchmark.options import Options

_PLIES = 8
COPIED, SPREAD = P(), P(train.AXIS)


class Setup(NamedTuple):
    """The same things on both sides."""

    options: Options
    mesh: Mesh
    parts: train.Parts
    state: train.TrainState
    theirs: Any  # The baseline's variables.
    evaluate: Callable  # Its network.


def time_speed(options: Options) -> list[dict]:
    """Measures everything, prints the table, and returns its rows."""
    mesh, peak = train.make_mesh(), _peak(options.repeats)
    parts = make_parts(run_config(options, mesh.size, options.games, _PLIES))
    init, evaluate = textbook.make_network(options.channels, options.blocks)
    theirs = jax.jit(init)(jax.random.key(0))
    state = train.make_state(parts, jax.random.key(0), mesh)
    setup = Setup(options, mesh, parts, state, theirs, evaluate)
    rows = [
        _row("matrix product, 2048 x 2048, float32", "GFLOP/s", peak / 1e9),
        _time_network(setup),
        _time_search(setup),
        *_time_selfplay(setup, peak),
        _time_learner(setup),
    ]
    return show(f"{options.sizes}, {options.games:,} games; medians of {options.repeats}", rows)


def _row(what: str, unit: str, azjax: float, baseline: float | None = None) -> dict:
    """A row of the table; without a baseline there is no ratio."""
    ratio = azjax / baseline if baseline else None
    row = {"what": what, "unit": unit, "azjax": azjax, "textbook": baseline}
    return row | {"azjax / textbook": ratio}


def _rate(what: str, unit: str, count: float, seconds: dict[str, float]) -> dict:
    """A row of what both sides do in a second."""
    return _row(what, unit, count / seconds["azjax"], count / seconds["textbook"])


def on_mesh(
    mesh: Mesh, function: Callable, in_specs: tuple, out_spec: Any, *args: Any
) -> Callable[[], Any]:
    """Compiles a function over all devices; returns it, with its arguments there already."""
    placed = jax.device_put(args, tuple(NamedSharding(mesh, spec) for spec in in_specs))
    mapped = jax.shard_map(
        function, mesh=mesh, in_specs=in_specs, out_specs=out_spec, check_vma=False
    )
    program = train.compiled(jax.jit(mapped), *placed)
    return lambda: program(*placed)


def _peak(repeats: int, size: int = 2048) -> float:
    """The floating-point operations a second that one large matrix product reaches."""
    x = jnp.ones((size, size))
    product = jax.jit(lambda x: x @ x)
    return 2 * size**3 / median_seconds(repeats, product=lambda: product(x))["product"]


def _time_network(setup: Setup) -> dict:
    """Evaluations of as many positions as there are games."""
    games, network = setup.options.games, setup.parts.network
    planes = jax.random.bernoulli(jax.random.key(1), 0.4, (games, 3, 3, 2))
    folded = jax.jit(network.fold)(setup.state.learner.variables)
    evaluate = jax.jit(setup.evaluate)
    seconds = median_seconds(
        setup.options.repeats,
        azjax=on_mesh(setup.mesh, network.infer, (COPIED, SPREAD), SPREAD, folded, planes),
        textbook=lambda: evaluate(setup.theirs, planes),
    )
    return _rate("network", "evaluations/s", games, seconds)


def _time_search(setup: Setup) -> dict:
    """PUCT from the starting position, with a network that costs nothing."""
    options, game, key = setup.options, setup.parts.game, jax.random.key(2)
    settings = PUCT(num_simulations=options.simulations)
    search = make_search(settings, game, uniform_evaluator(game))
    baseline = textbook.make_search(
        "puct",
        lambda _, planes: (jnp.zeros((len(planes), 9)), jnp.zeros(len(planes))),
        options.simulations,
    )
    their_states = jax.jit(textbook.init_games, static_argnums=1)(key, options.games)
    theirs = jax.jit(lambda states: baseline(None, key, states).action)
    seconds = median_seconds(
        options.repeats,
        azjax=on_mesh(
            setup.mesh,
            lambda keys, states: search(None, keys, states, 1.0, True).action,
            (SPREAD, SPREAD),
            SPREAD,
            *(jax.random.split(key, options.games), init_batch(game, options.games)),
        ),
        textbook=lambda: theirs(their_states),
    )
    taken = (1e3 * seconds[side] for side in ("azjax", "textbook"))
    return _row("search, puct: outside the network", "ms", *taken)


def _time_selfplay(setup: Setup, peak: float) -> list[dict]:
    """Self-play from the starting position by Gumbel search, and the iteration around it."""
    options, parts, key = setup.options, setup.parts, jax.random.key(3)
    play = train.compiled(train.make_play(parts, setup.mesh), setup.state)
    held = [train.make_state(parts, key, setup.mesh)]  # It is donated.
    iterate = train.compiled(train.make_iteration(parts, setup.mesh), held[0])
    search = textbook.make_search("gumbel", setup.evaluate, options.simulations)
    theirs = jax.jit(textbook.make_selfplay(search, _PLIES))
    states = textbook.init_games(key, options.games)
    seconds = median_seconds(
        options.repeats,
        azjax=lambda: play(setup.state),
        textbook=lambda: theirs(setup.theirs, key, states),
    )
    whole = median_seconds(
        options.repeats,
        iteration=lambda: go_on(iterate, held),
        play=lambda: play(held[0]),
    )
    moves = options.games * _PLIES
    useful = 100 * moves * (options.simulations + 1) * useful_operations(options) / peak
    return [
        _rate("self-play, gumbel", "moves/s", moves, seconds),
        _rate("self-play: useful arithmetic over the matrix product's", "%", useful, seconds),
        _row("iteration over its self-play", "times", whole["iteration"] / whole["play"]),
    ]


def useful_operations(options: Options) -> int:
    """Operations of one evaluation: of a kernel's 81 products on the board, 49 touch it."""
    c, head = options.channels, 64
    convolutions = 49 * (2 * c + 2 * options.blocks * c * c) + 9 * c * 3
    return 2 * (convolutions + 18 * 9 + 9 * head + head)


def _time_learner(setup: Setup) -> dict:
    """One optimiser step on a batch that is there already."""
    parts, options = setup.parts, setup.options
    size = parts.replay.batch_size
    samples = jax.tree.map(lambda x: jnp.broadcast_to(x, (size, *x.shape)), train.example(parts))
    state = jax.jit(parts.learner.init)(setup.state.learner.variables)
    init, update = textbook.make_learner(options.channels, options.blocks)
    their_state, theirs = jax.jit(init)(setup.theirs), jax.jit(update)
    seconds = median_seconds(
        options.repeats,
        azjax=on_mesh(
            setup.mesh,
            lambda state, samples: parts.learner.update(state, samples, train.AXIS),
            (COPIED, SPREAD),
            COPIED,
            *(state, samples),
        ),
        textbook=lambda: theirs(their_state, samples.planes, samples.policy, samples.value),
    )
    return _rate("learner", "samples/s", size, seconds)
