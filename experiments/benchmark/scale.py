"""Games a second on up to 1,024 devices: a model, from costs measured on one device."""

import dataclasses
import functools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp

from azjax import train
from experiments import console
from experiments.benchmark import model
from experiments.benchmark.options import MOST_DEVICES, Options
from experiments.benchmark.plot import draw_scale
from experiments.benchmark.runs import BATCH, PLIES, make_learning, make_playing, run_config
from experiments.benchmark.table import make_table, number
from experiments.benchmark.timing import median_seconds

_COUNTS = tuple(2**i for i in range(MOST_DEVICES.bit_length()))
_REDUCTIONS = {"ring": model.ring, "tree": model.tree}
_STEPS = 4  # Timed together, so that starting the program counts little.


def model_scale(options: Options) -> dict[str, Any]:
    """Measures, models, prints the table, its assumptions and a check, and draws the picture."""
    costs = costs_of_one(options)
    link = model.Link(options.bandwidth * 1e9, options.latency / 1e6)
    lines = model_lines(options, costs, link)
    _show(lines)
    said = assumptions(options, costs)
    print("\n".join(said))
    check = check_model(options, costs, link, train.make_mesh())
    draw_scale(options.plot, lines, said)
    print(f"picture: {options.plot}")
    points = {name: [point._asdict() for point in line] for name, line in lines.items()}
    return {"costs": costs._asdict(), "link": link._asdict(), "points": points, "check": check}


def costs_of_one(options: Options) -> model.Costs:
    """Measures one device; of a CPU one core, in a process of its own that is bound to it."""
    if jax.default_backend() != "cpu" or not hasattr(os, "sched_setaffinity"):
        return measure_costs(options)
    spawn, core = multiprocessing.get_context("spawn"), max(os.sched_getaffinity(0))
    with ProcessPoolExecutor(1, spawn, _bind, (core,)) as pool:
        return pool.submit(measure_costs, options).result()


def _bind(core: int) -> None:
    """Binds this process and the threads that XLA will start to one core."""
    os.sched_setaffinity(0, {core})


def measure_costs(options: Options) -> model.Costs:
    """Measures self-play and learning in several sizes on the first device."""
    mesh = train.make_mesh(jax.devices()[:1])
    games = _sizes(options.games)
    played = [_time_play(options, mesh, count) for count in games]
    batches = _sizes(min(BATCH, options.games * PLIES))
    learned = _time_steps(options, mesh, batches)
    reduced_bytes, reductions = count_reduced(run_config(options, 1))
    return model.Costs(
        play=model.fit(games, [seconds for seconds, _ in played]),
        learn=model.fit(batches, learned),
        plies=PLIES,
        moves_per_game=played[-1][1],
        reduced_bytes=reduced_bytes,
        reductions=reductions,
    )


def _sizes(most: int) -> list[int]:
    return sorted({max(1, most // part) for part in (64, 16, 4, 1)})


def _time_play(options: Options, mesh, games: int) -> tuple[float, float]:
    """Seconds of an iteration's self-play, and the moves that a game has."""
    play, state = make_playing(run_config(options, 1, games=games), mesh)
    held, ends = [state], []

    def go_on():
        after, transitions = play(held[0])
        iteration = held[0].iteration + 1
        held[0] = dataclasses.replace(held[0], games=after, iteration=iteration)
        ends.append(jnp.sum(transitions.discount == 0))
        return after

    seconds = median_seconds(options.repeats, play=go_on)["play"]
    return seconds, games * PLIES * len(ends) / float(sum(ends))


def _time_steps(options: Options, mesh, batches: list[int]) -> list[float]:
    """Seconds of an optimiser step with each batch, the drawing of the batch included."""
    configs = [
        run_config(options, 1, games=batch * _STEPS, plies=1, batch=batch) for batch in batches
    ]
    # One buffer for all. It is empty, and gives zeros, which cost the same as positions.
    state = train.make_state(configs[-1], mesh)
    seconds = []
    for config in configs:
        config = dataclasses.replace(config, replay=configs[-1].replay)
        learn = make_learning(config, mesh).lower(state).compile(train.compiler_options())
        taken = median_seconds(options.repeats, learn=functools.partial(learn, state))["learn"]
        seconds.append(taken / config.learner.steps)
    return seconds


def count_reduced(config: train.Config) -> tuple[int, int]:
    """The bytes and the number of an optimiser step's reductions, from the state's shapes.

    The gradient is one. BatchNorm's mean and square are one in each layer, on the way there
    and again in the gradient.
    """
    variables = jax.eval_shape(lambda: train.init_state(config)).learner.variables
    params, stats = (jax.tree.leaves(variables[name]) for name in ("params", "batch_stats"))
    numbers = sum(leaf.size for leaf in params) + 2 * sum(leaf.size for leaf in stats)
    layers = len(stats) // 2
    return 4 * numbers, 1 + 2 * layers


def model_lines(
    options: Options, costs: model.Costs, link: model.Link
) -> dict[str, list[model.Point]]:
    """The points of weak and strong scaling, for each way to reduce."""
    batch = min(BATCH, options.games * PLIES)
    kinds: dict[str, tuple[Callable, int, int]] = {
        "weak": (model.weak, options.games, batch),
        "strong": (model.strong, options.scale_games, options.scale_batch),
    }
    return {
        f"{kind}, {way}": scaling(costs, link, reduce, _COUNTS, games, batch)
        for kind, (scaling, games, batch) in kinds.items()
        for way, reduce in _REDUCTIONS.items()
    }


def _show(lines: dict[str, list[model.Point]]) -> None:
    table = make_table("modelled games/s (parallel efficiency)", "devices", *lines)
    for points in zip(*lines.values(), strict=True):
        cells = [f"{number(p.games_per_second)} ({p.efficiency:4.0%})" for p in points]
        table.add_row(f"{points[0].devices:,}", *cells)
    console.print_rich(table)


def assumptions(options: Options, costs: model.Costs) -> list[str]:
    """What the model takes for granted, in sentences."""
    play, learn = costs.play, costs.learn
    batch = min(BATCH, options.games * PLIES)
    return [
        f"Measured on one device (of a CPU: one core), {jax.devices()[0].device_kind}, and "
        "fitted by lines, which are extended beyond the sizes measured:",
        f"  self-play of {costs.plies} moves {1e3 * play.fixed:.3g} ms + {1e3 * play.per_item:.3g} "
        f"ms a game; an optimiser step {1e3 * learn.fixed:.3g} ms + {1e6 * learn.per_item:.3g} us "
        f"a sample; {costs.moves_per_game:.2f} moves a game.",
        f"Weak: {options.games:,} games and {batch:,} samples a step on each device. Strong: "
        f"{options.scale_games:,} games and {options.scale_batch:,} samples in all.",
        "Every position is learned from once.",
        f"A step reduces {costs.reduced_bytes:,} bytes (float32: gradient, BatchNorm both ways) in "
        f"{costs.reductions} reductions, one after the other.",
        f"Assumed, not measured: {options.bandwidth:g} GB/s a device, {options.latency:g} us a "
        "message, no contention, no stragglers, no overlap with arithmetic.",
        "Left out: dealing samples into the buffer, verification, checkpoints.",
    ]


def check_model(options: Options, costs: model.Costs, link: model.Link, mesh) -> dict | None:
    """Times the weak scaling's iteration on all devices there are, if there are several."""
    devices = mesh.size
    if devices < 2:
        print("check: none, since there is one device")
        return None
    games, batch = options.games, min(BATCH, options.games * PLIES)
    config = run_config(options, devices, games=games * devices, batch=batch * devices)
    iterate: Any = train.make_iteration(config, mesh)
    held = [train.make_state(config, mesh)]
    compiled = iterate.lower(held[0]).compile(train.compiler_options())

    def whole():
        held[0], metrics = compiled(held[0])
        return metrics

    measured = median_seconds(options.repeats, whole=whole)["whole"]
    predicted = model.iteration_seconds(costs, link, model.ring, devices, games, batch)
    print(
        f"check: {devices} devices, {games * devices:,} games: an iteration takes "
        f"{measured:.3g} s, and the model says {predicted:.3g} s: {predicted / measured:.0%}"
    )
    return {"devices": devices, "measured": measured, "predicted": predicted}
