"""Where the time of a training iteration goes, and what compiling it costs."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax import train
from experiments.benchmark import textbook
from experiments.benchmark.runs import PLIES, make_learning, make_remember
from experiments.benchmark.setup import Setup
from experiments.benchmark.table import Row
from experiments.benchmark.timing import CompileTimes, compile_cold, median_seconds


class Compiled(NamedTuple):
    """What was compiled to see how long that takes, to be run.

    Attributes:
      iterate: one iteration, `TrainState -> (TrainState, Metrics)`.
      their_play: the baseline's self-play, `(variables, key, states) -> (states, Move)`.
      their_update: its optimiser step, `(state, observation, policy, outcome) -> state`.
    """

    iterate: Callable
    their_play: Callable
    their_update: Callable


def compile_both(setup: Setup, config: train.Config) -> tuple[Compiled, list[Row]]:
    """Compiles an iteration, and the baseline's self-play and learner, each as if cold."""
    iterate, ours = compile_cold(
        train.make_iteration(config, setup.mesh),
        train.abstract_state(config, setup.mesh),
        options=train.compiler_options(),
    )
    their_play, play_times = compile_cold(*_their_play(setup))
    their_update, update_times = compile_cold(*_their_update(setup, config))
    theirs = CompileTimes(*map(sum, zip(play_times, update_times, strict=True)))
    name = "compiling an iteration"
    rows = [
        Row(f"{name}: {part}", "s", *(getattr(times, part) for times in (ours, theirs)))
        for part in CompileTimes._fields
    ]
    rows.append(Row(name, "s", sum(ours), sum(theirs)))
    return Compiled(iterate, their_play, their_update), rows


def _their_play(setup: Setup) -> tuple:
    """The baseline's self-play by Gumbel search, and arguments for it."""
    options, key = setup.options, jax.random.key(3)
    search = textbook.make_search("gumbel", setup.evaluate, options.simulations)
    states = textbook.init_games(key, options.games)
    return jax.jit(textbook.make_selfplay(search, PLIES)), setup.theirs, key, states


def _their_update(setup: Setup, config: train.Config) -> tuple:
    """The baseline's optimiser step, and arguments for it."""
    size = config.learner.batch_size
    init, update = textbook.make_learner(setup.options.channels, setup.options.blocks)
    planes = jnp.zeros((size, 3, 3, 2), bool)
    return jax.jit(update), init(setup.theirs), planes, jnp.zeros((size, 9)), jnp.zeros(size)


def time_iteration(
    setup: Setup, config: train.Config, play: Callable, iterate: Callable, state: train.TrainState
) -> list[Row]:
    """Times an iteration and each of its parts, which are programs of their own, in turn.

    Inside the iteration the parts are compiled together, and may overlap. The rest is what the
    iteration takes beyond the parts' sum; where it is negative, together is faster.

    Args:
      setup: gives devices and repeats.
      config: the run's.
      play: its self-play, compiled.
      iterate: its iteration, compiled.
      state: where to start; it is donated.
    """
    options = train.compiler_options()
    _, transitions = play(state)
    remember = make_remember(config, setup.mesh).lower(state.replay, transitions).compile(options)
    learn = make_learning(config, setup.mesh).lower(state).compile(options)
    held = [state]

    def whole():
        held[0], metrics = iterate(held[0])
        return metrics

    def fill():
        held[0] = dataclasses.replace(held[0], replay=remember(held[0].replay, transitions))
        return held[0].replay

    seconds = median_seconds(
        setup.options.repeats,
        whole=whole,
        selfplay=lambda: play(held[0]),
        targets=fill,
        learning=lambda: learn(held[0]),
    )
    return _breakdown(seconds)


def _breakdown(seconds: dict[str, float]) -> list[Row]:
    """Rows of an iteration's parts, in milliseconds and as shares of the whole."""
    whole = seconds["whole"]
    parts = {
        "self-play": seconds["selfplay"],
        "targets and buffer": seconds["targets"],
        "learning": seconds["learning"],
    }
    parts["the rest"] = whole - sum(parts.values())
    rows = [Row("one training iteration", "ms", 1e3 * whole)]
    for name, taken in parts.items():
        rows.append(Row(f"iteration: {name}", "ms", 1e3 * taken))
        rows.append(Row(f"iteration: {name}", "%", 100 * taken / whole))
    rows.append(Row("iteration over its self-play", "times", whole / seconds["selfplay"]))
    return rows
