"""How fast each part is, against the textbook baseline and against the machine's own limit.

Both sides have the same network, simulations and games, and are timed in turn.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from rich.table import Table

from azjax import train
from azjax.evaluators import network_evaluator, uniform_evaluator
from azjax.game import Game, init_batch
from azjax.games import make
from azjax.learner import LearnerConfig
from azjax.network import Network, NetworkConfig, make_network
from azjax.replay import ReplayConfig
from azjax.search import SearchConfig, make_search
from azjax.selfplay import SelfPlayConfig, unroll
from experiments import console
from experiments.benchmark import textbook
from experiments.benchmark.options import Options

_PLIES = 8
_BATCH = 1024  # Of the learner.


class Row(NamedTuple):
    """One measurement.

    Attributes:
      name: what was measured.
      unit: of both numbers.
      ours: azjax's.
      textbook: the baseline's, or None where there is none.
    """

    name: str
    unit: str
    ours: float
    textbook: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours over the baseline's."""
        return self.ours / self.textbook if self.textbook else None


class Setup(NamedTuple):
    """The same things on both sides.

    Attributes:
      options: sizes.
      game: azjax's.
      network: azjax's.
      variables: its variables.
      folded: their inference form.
      theirs: the baseline's variables.
      evaluate: the baseline's network.
    """

    options: Options
    game: Game
    network: Network
    variables: Any
    folded: Any
    theirs: Any
    evaluate: Callable


def time_speed(options: Options) -> list[dict[str, Any]]:
    """Measures everything, prints the table, and returns its rows."""
    setup = _set_up(options)
    peak = _peak(options.repeats)
    rows = [Row("matrix product, 2048 x 2048, float32", "GFLOP/s", peak / 1e9)]
    rows += _time_network(setup)
    for algorithm in ("puct", "gumbel"):
        rows += _time_search(setup, algorithm)
    rows += _time_selfplay(setup, peak)
    rows += _time_learner(setup)
    rows += _time_iteration(setup)
    rows.append(Row("search tree", "bytes/game", _tree_bytes(setup)))
    _show(options, rows)
    return [row._asdict() | {"ratio": row.ratio} for row in rows]


def _set_up(options: Options) -> Setup:
    game = make("tic_tac_toe")
    network = make_network(_network_config(options), game)
    variables = jax.jit(network.init)(jax.random.key(0))
    init, evaluate = textbook.make_network(options.channels, options.blocks)
    theirs = jax.jit(init)(jax.random.key(0))
    folded = jax.jit(network.fold)(variables)
    return Setup(options, game, network, variables, folded, theirs, evaluate)


def _network_config(options: Options) -> NetworkConfig:
    return NetworkConfig(kind="tower", channels=options.channels, blocks=options.blocks)


def _time(repeats: int, **runs: Callable[[], Any]) -> dict[str, float]:
    """The median seconds of each of several functions, run in turn, compilation left out."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def _peak(repeats: int, size: int = 2048) -> float:
    """The floating-point operations a second that one large matrix product reaches."""
    x = jnp.ones((size, size))
    product = jax.jit(lambda x: x @ x)
    return 2 * size**3 / _time(repeats, product=lambda: product(x))["product"]


def _time_network(setup: Setup) -> list[Row]:
    games = setup.options.games
    planes = jax.random.bernoulli(jax.random.key(1), 0.4, (games, 3, 3, 2))
    infer, evaluate = jax.jit(setup.network.infer), jax.jit(setup.evaluate)
    seconds = _time(
        setup.options.repeats,
        ours=lambda: infer(setup.folded, planes),
        textbook=lambda: evaluate(setup.theirs, planes),
    )
    return [_rate("network", "evaluations/s", games, seconds)]


def _rate(name: str, unit: str, count: float, seconds: dict[str, float]) -> Row:
    return Row(name, unit, count / seconds["ours"], count / seconds["textbook"])


def _time_search(setup: Setup, algorithm: Any) -> list[Row]:
    """Searches of the starting position, with the network, and with one that costs nothing."""
    options, game, key = setup.options, setup.game, jax.random.key(2)
    config = SearchConfig(algorithm, num_simulations=options.simulations)
    states, keys = init_batch(game, options.games), jax.random.split(key, options.games)
    their_states = textbook.init_games(key, options.games)

    def ours(evaluate):
        search = make_search(config, game, evaluate)
        return jax.jit(lambda params: search(params, keys, states, 1.0, True).action)

    def theirs(evaluate):
        search = textbook.make_search(algorithm, evaluate, options.simulations)
        return jax.jit(lambda variables: search(variables, key, their_states).action)

    whole = {"ours": ours(network_evaluator(game, setup.network, "relative"))}
    whole["textbook"] = theirs(setup.evaluate)
    bare = {"ours": ours(uniform_evaluator(game)), "textbook": theirs(textbook.trivial)}
    seconds = _time(
        options.repeats,
        ours=lambda: whole["ours"](setup.folded),
        textbook=lambda: whole["textbook"](setup.theirs),
        ours_bare=lambda: bare["ours"](None),
        textbook_bare=lambda: bare["textbook"](None),
    )
    outside = {name: 1e3 * seconds[f"{name}_bare"] for name in ("ours", "textbook")}
    share = {name: outside[name] / seconds[name] / 10 for name in outside}
    return [
        _rate(f"search, {algorithm}", "moves/s", options.games, seconds),
        Row(f"search, {algorithm}: outside the network", "ms", **outside),
        Row(f"search, {algorithm}: outside the network", "%", **share),
    ]


def _time_selfplay(setup: Setup, peak: float) -> list[Row]:
    """Self-play from the starting position, by Gumbel search."""
    options, key = setup.options, jax.random.key(3)
    config = _config(setup)
    parts = train.make_parts(config)
    ours = jax.jit(_make_play(config, parts))
    states = textbook.init_games(key, options.games)
    search = textbook.make_search("gumbel", setup.evaluate, options.simulations)
    theirs = jax.jit(textbook.make_selfplay(search, _PLIES))
    games = train.init_state(config).games
    _, transitions = ours(setup.folded, key, games)
    _, moves = theirs(setup.theirs, key, states)
    seconds = _time(
        options.repeats,
        ours=lambda: ours(setup.folded, key, games),
        textbook=lambda: theirs(setup.theirs, key, states),
    )
    finished = {
        "ours": float(jnp.sum(transitions.discount == 0)),
        "textbook": float(jnp.sum(moves.terminated)),
    }
    made = options.games * _PLIES
    useful = made * (options.simulations + 1) * _useful_operations(options) / peak * 100
    return [
        _rate("self-play, gumbel", "moves/s", made, seconds),
        Row("self-play, gumbel", "games/s", *(finished[n] / seconds[n] for n in finished)),
        Row(
            "self-play: useful arithmetic over the matrix product's",
            "%",
            *(useful / seconds[name] for name in ("ours", "textbook")),
        ),
    ]


def _make_play(config: train.Config, parts: train.Parts):
    def play(folded, key, games):
        keys = jax.random.split(key, config.selfplay.games)
        encoding = config.network.encoding
        return unroll(config.selfplay, parts.game, encoding, parts.search, folded, keys, games)

    return play


def _useful_operations(options: Options) -> int:
    """Operations of one evaluation: of a kernel's 81 products on the board, 49 touch it."""
    c, head = options.channels, 64
    convolutions = 49 * (2 * c + 2 * options.blocks * c * c) + 9 * c * 3
    return 2 * (convolutions + 18 * 9 + 9 * head + head)


def _config(setup: Setup) -> train.Config:
    """A run in which every position is learned from once on average, as in AlphaZero."""
    options = setup.options
    moves = options.games * _PLIES
    batch = min(_BATCH, moves)
    return train.Config(
        network=_network_config(options),
        search=SearchConfig("gumbel", num_simulations=options.simulations),
        selfplay=SelfPlayConfig(games=options.games, plies=_PLIES, opening_share=0.0),
        replay=ReplayConfig(capacity=4 * moves, shards=1),
        learner=LearnerConfig(batch_size=batch, steps=max(1, moves // batch)),
    )


def _time_learner(setup: Setup) -> list[Row]:
    key = jax.random.key(4)
    config = _config(setup)
    parts = train.make_parts(config)
    size = config.learner.batch_size
    state = parts.learner.init(setup.variables)
    sample = train.example_sample(config, setup.game)
    samples = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), sample)
    planes = jax.random.bernoulli(key, 0.4, samples.planes.shape)
    samples = samples._replace(planes=planes, policy=samples.policy / 9)
    init, update = textbook.make_learner(setup.options.channels, setup.options.blocks)
    their_state = init(setup.theirs)
    ours, theirs = jax.jit(parts.learner.update), jax.jit(update)
    seconds = _time(
        setup.options.repeats,
        ours=lambda: ours(state, samples),
        textbook=lambda: theirs(their_state, planes, samples.policy, samples.value),
    )
    return [_rate("learner", "samples/s", size, seconds)]


def _time_iteration(setup: Setup) -> list[Row]:
    """One whole training iteration and its self-play alone, in turn."""
    config, mesh = _config(setup), train.make_mesh(jax.devices()[:1])
    parts, iterate = train.make_parts(config), train.make_iteration(config, mesh)
    play, key = jax.jit(_make_play(config, parts)), jax.random.key(5)
    games = train.init_state(config).games
    state = [train.make_state(config, mesh)]

    def whole():
        state[0], metrics = iterate(state[0])
        return metrics

    seconds = _time(setup.options.repeats, whole=whole, play=lambda: play(setup.folded, key, games))
    return [
        Row("one training iteration", "ms", 1e3 * seconds["whole"]),
        Row("its self-play alone", "ms", 1e3 * seconds["play"]),
        Row("iteration over its self-play", "times", seconds["whole"] / seconds["play"]),
    ]


def _tree_bytes(setup: Setup) -> float:
    """Bytes of the search's tree for one game."""
    options = setup.options
    config = SearchConfig("gumbel", num_simulations=options.simulations)
    search = make_search(config, setup.game, uniform_evaluator(setup.game))
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), options.games))
    states = jax.eval_shape(lambda: init_batch(setup.game, options.games))
    tree = jax.eval_shape(search, None, keys, states).tree
    sizes = [leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)]
    return sum(sizes) / options.games


def _show(options: Options, rows: list[Row]) -> None:
    title = (
        f"{options.channels} channels, {options.blocks} blocks, {options.simulations} simulations, "
        f"{options.games:,} games; medians of {options.repeats}"
    )
    table = Table(title=title)
    for heading in ("what", "unit", "azjax", "textbook", "azjax / textbook"):
        table.add_column(heading, justify="left" if heading in ("what", "unit") else "right")
    for row in rows:
        baseline = _number(row.textbook) if row.textbook else ""
        ratio = f"{row.ratio:.2f}" if row.ratio else ""
        table.add_row(row.name, row.unit, _number(row.ours), baseline, ratio)
    console.print_rich(table)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
