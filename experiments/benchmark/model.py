"""The arithmetic of scaling: an iteration's seconds on many devices, from costs of one.

Every device plays its own games and computes the gradient of its share of each batch; then the
devices reduce what they found. So an iteration takes the self-play of the local games, and for
each optimiser step the learning of the local batch and the reductions.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.optimize


class Line(NamedTuple):
    """Seconds as a linear function of a number of items."""

    fixed: float
    per_item: float

    def seconds(self, items: float) -> float:
        """Seconds for so many items."""
        return self.fixed + self.per_item * items


class Costs(NamedTuple):
    """What was measured on one device.

    Attributes:
      play: seconds of an iteration's self-play by the number of games.
      learn: seconds of an optimiser step by the number of samples.
      plies: moves that each game makes in an iteration.
      moves_per_game: the games' mean length.
      reduced_bytes: sent around for one optimiser step.
      reductions: of one optimiser step, which wait for each other.
    """

    play: Line
    learn: Line
    plies: int
    moves_per_game: float
    reduced_bytes: int
    reductions: int


class Link(NamedTuple):
    """What joins the devices: bytes a second that each sends, and seconds of one message."""

    bandwidth: float
    latency: float


class Point(NamedTuple):
    """What the model says for one number of devices.

    Attributes:
      devices: how many.
      games: on each.
      batch: samples of an optimiser step, on each.
      seconds: of one iteration.
      games_per_second: finished, over all devices.
      efficiency: games a second over those of as many times one device.
    """

    devices: int
    games: float
    batch: float
    seconds: float
    games_per_second: float
    efficiency: float


def fit(items: Sequence[float], seconds: Sequence[float]) -> Line:
    """The line through measurements with the least squares of relative errors.

    Neither of its numbers is negative.
    """
    times = np.asarray(seconds, float)
    columns = np.stack([np.ones(len(times)), np.asarray(items, float)], axis=1)
    (fixed, per_item), _ = scipy.optimize.nnls(columns / times[:, None], np.ones(len(times)))
    return Line(float(fixed), float(per_item))


def ring(costs: Costs, link: Link, devices: int) -> float:
    """Seconds that an optimiser step's reductions take around a ring.

    In n - 1 steps the sums are formed, in n - 1 more they are handed on; each sends an n-th of
    the bytes.
    """
    hops = 2 * (devices - 1)
    transfer = hops / devices * costs.reduced_bytes / link.bandwidth
    return transfer + costs.reductions * hops * link.latency


def tree(costs: Costs, link: Link, devices: int) -> float:
    """Seconds by recursive halving and doubling, with partners 1, 2, 4, ... devices away."""
    transfer = 2 * (devices - 1) / devices * costs.reduced_bytes / link.bandwidth
    return transfer + costs.reductions * 2 * math.log2(devices) * link.latency


Reduction = Callable[[Costs, Link, int], float]


def iteration_seconds(
    costs: Costs, link: Link, reduce: Reduction, devices: int, games: float, batch: float
) -> float:
    """Seconds of one iteration.

    Args:
      costs: of one device.
      link: between devices.
      reduce: `ring` or `tree`.
      devices: how many.
      games: on each device.
      batch: samples of an optimiser step on each device. Every position is learned from once,
        so there are `games * plies / batch` steps.
    """
    steps = games * costs.plies / batch
    step = costs.learn.seconds(batch) + reduce(costs, link, devices)
    return costs.play.seconds(games) + steps * step


def weak(
    costs: Costs, link: Link, reduce: Reduction, counts: Sequence[int], games: int, batch: int
) -> list[Point]:
    """More devices, each with as many games and samples as one has alone."""
    return _points(costs, link, reduce, [(n, games, batch) for n in counts])


def strong(
    costs: Costs, link: Link, reduce: Reduction, counts: Sequence[int], games: int, batch: int
) -> list[Point]:
    """More devices for the same games and samples in all."""
    return _points(costs, link, reduce, [(n, games / n, batch / n) for n in counts])


def _points(costs: Costs, link: Link, reduce: Reduction, sizes: list) -> list[Point]:
    """Points for `(devices, games, batch)`, of which the first is the one device."""
    points, alone = [], 0.0
    for devices, games, batch in sizes:
        seconds = iteration_seconds(costs, link, reduce, devices, games, batch)
        rate = devices * games * costs.plies / costs.moves_per_game / seconds
        alone = alone or rate
        points.append(Point(devices, games, batch, seconds, rate, rate / (devices * alone)))
    return points
