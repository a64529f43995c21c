"""Comparison of settings by their exact errors, over many seeds.

All seeds of a setting train in one program, and all settings make about equally many network
evaluations. The error is the share of positions where the network's move, without search, loses
what perfect play would keep. It covers all positions if the game can be enumerated, and labelled
ones if not.
"""

import dataclasses
import functools
import json
import math
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec
from scipy import stats

from azjax import _files as files
from azjax._settings import Positive, checked, from_dict
from azjax.games import solver
from azjax.games.base import Game
from azjax.players.statistics import Interval
from azjax.proof import certificate
from azjax.proof.callbacks import LabelledEvaluation, iterations_between
from azjax.runs.config import Config, make_parts
from azjax.runs.player import Player
from azjax.training import (
    AXIS,
    Parts,
    TrainState,
    check_parts,
    compiled,
    init,
    iteration,
    make_mesh,
)

_RESAMPLES = 10_000
_ENOUGH = 0.5  # Share of the seeds that must reach the target for a comparison of their costs.


@dataclasses.dataclass(frozen=True)
class Curves:
    """The errors of one setting at `K` points of training, for `S` seeds."""

    name: str  # What distinguishes the setting, such as `search.algorithm=puct`.
    config: dict[str, Any]
    device: str
    iterations: list[int]  # `[K]`.
    evaluations: list[int]  # `[K]`, of the network, in self-play of one seed.
    moves: list[int]  # `[K]`, in self-play of one seed.
    seconds: list[float]  # `[K]`, of the whole program divided by `S`, without compilation.
    errors: list[list[float]]  # `[K, S]`, in [0, 1].

    def cost(self, target: float) -> np.ndarray:
        """Returns `float [S]`, the evaluations until the error is at most `target`, or inf."""
        reached = np.array(self.errors) <= target
        first = np.array(self.evaluations)[np.argmax(reached, axis=0)]
        return np.where(reached.any(axis=0), first, math.inf)


class Effect(NamedTuple):
    """A setting against the first one, seed by seed."""

    measure: str  # `evaluations` to the target, or the last `error` if too few seeds reached it.
    ratio: Interval  # Median over the seeds, with its 95% interval; below 1 is better.
    p_value: float  # That the settings do not differ, corrected for the number of settings (Holm).


def compile_seeds(parts: Parts, seeds: int) -> tuple[TrainState, Any]:
    """Compiles the training of seeds 0 to `S - 1` as one program, with the seeds on all devices.

    Returns the initial states, with leaves `[S, ...]`, and one iteration of all seeds,
    `states -> (states, Metrics)`, which donates the states. A CPU runs its seeds one after the
    other, so that each fits its cache; other devices run them at the same time.
    """
    count = max(n for n in range(1, len(jax.devices()) + 1) if seeds % n == 0)
    mesh, split = make_mesh(jax.devices()[:count]), PartitionSpec(AXIS)
    one_by_one = jax.default_backend() == "cpu"

    def on_mesh(function):
        local = functools.partial(jax.lax.map, function) if one_by_one else jax.vmap(function)
        # `training.mesh` has the reason for `check_vma`.
        return jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)

    numbers = jnp.arange(seeds, dtype=jnp.uint32)
    start = jax.jit(on_mesh(lambda seed: init(parts, jax.random.key(seed))))
    states = compiled(start, numbers, often=False)(numbers)
    advance = jax.jit(on_mesh(functools.partial(iteration, parts)), donate_argnums=0)
    return states, compiled(advance, states)


@functools.lru_cache(maxsize=1)
def make_measure(game: Game) -> tuple[Callable[[Parts, Any], float], int]:
    """Returns `(parts, variables) -> error` of one network, and its number of evaluations.

    Raises a ValueError for a game without exact values: it has too many positions, and no labels.
    """
    if game.enumerable:
        solution = solver.solve(game)

        def measure(parts, variables):
            player = Player(parts, parts.network.fold(variables))
            return int(certificate.examine(player, solution).blunders) / len(solution.decisions)

        return measure, len(solution.decisions)
    if game.positions is None:
        raise ValueError(
            f"{game.name} has no exact errors, which need a game that can be enumerated or has "
            "labelled positions: compare settings in a smaller size, such as hex:4"
        )

    def measure_labelled(parts, variables):
        return LabelledEvaluation(parts, 1).find_errors(variables)["error"]

    return measure_labelled, len(game.positions().outcomes)


def train_seeds(
    name: str,
    config: Config,
    game: Game,
    seeds: int,
    evaluations: int,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Curves:
    """Trains all seeds with one setting until each has made this many network evaluations."""
    parts = make_parts(config, game)
    each, (measure, cost) = parts.evaluations, make_measure(game)
    last = max(1, round(evaluations / each))
    every = max(iterations_between(parts, cost, 0.1), last // 100)
    states, advance = compile_seeds(parts, seeds)
    at, errors, seconds, spent = [], [], [], 0.0
    for number in range(1, last + 1):
        started = time.monotonic()
        states, _ = jax.block_until_ready(advance(states))
        spent += time.monotonic() - started
        if number % every == 0 or number == last:
            averages = jax.device_get(states.learner.average)  # Slicing here would communicate.
            rows = [jax.tree.map(lambda leaf, s=seed: leaf[s], averages) for seed in range(seeds)]
            at.append(number)
            errors.append([measure(parts, row) for row in rows])
            seconds.append(round(spent / seeds, 2))
            left = (last - number) * spent / number
            tell(f"{name}: error {np.median(errors[-1]):.2%}, {left:.0f} s to go")
    moves = parts.selfplay.games * parts.selfplay.unroll_length
    return Curves(
        name=name,
        config=config.as_dict(),
        device=jax.devices()[0].device_kind,
        iterations=at,
        evaluations=[each * number for number in at],
        moves=[moves * number for number in at],
        seconds=seconds,
        errors=errors,
    )


def compare(
    settings: Mapping[str, Config],
    game: Game,
    path: files.Path,
    *,
    seeds: int = 20,
    iterations: int | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> list[Curves]:
    """Trains all settings, and writes the errors of each to a JSON file when it is finished.

    Args:
      settings: by name; the first is what the others are compared with.
      game: the rules.
      path: the JSON file. Settings that it has already, with any name, are not trained again.
      seeds: `S`.
      iterations: of the first setting; the others make as many network evaluations. By default
        100, or as many evaluations as the settings in the file.
      tell: called with sentences on the progress.
    """
    path, seeds = pathlib.Path(path), checked("seeds", seeds, Positive)
    iterations = checked("iterations", iterations, Positive | None)
    if not settings:
        raise ValueError("there are no settings to compare: give one or more")
    files.check_folder(path)
    made = {"game": game.name, "seeds": seeds}
    if iterations is not None or not path.exists():
        each = make_parts(next(iter(settings.values())), game).evaluations
        made["evaluations"] = (100 if iterations is None else iterations) * each
    for config in settings.values():
        check_parts(make_parts(config, game))
    known, made["evaluations"] = read(path, made) if path.exists() else ([], made["evaluations"])
    done = {json.dumps(curves.config, sort_keys=True): curves for curves in known}
    found = []
    for name, config in settings.items():
        key = json.dumps(config.as_dict(), sort_keys=True)
        if key not in done:
            done[key] = train_seeds(name, config, game, seeds, made["evaluations"], tell)
            rows = [dataclasses.asdict(curves) for curves in done.values()]
            files.write_json(path, made | {"settings": rows})
        found.append(dataclasses.replace(done[key], name=name))
    return found


def read(path: pathlib.Path, made: dict[str, Any]) -> tuple[list[Curves], int]:
    """Reads the settings that a comparison has finished, and the evaluations of each.

    Raises a ValueError if the file is not that of a comparison with the values in `made`.
    """
    try:
        content = json.loads(path.read_text())
        rows = [from_dict(Curves, row) for row in content["settings"]]
        evaluations = int(content["evaluations"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not a comparison ({error}): choose another file") from error
    for name, value in made.items():
        if content.get(name) != value:
            raise ValueError(
                f"{path} has {name} {content.get(name)!r}, not {value!r}: choose another file"
            )
    return rows, evaluations


def effects(curves: Sequence[Curves], target: float = 0.0) -> list[Effect]:
    """Compares every setting with the first one."""
    costs = np.array([one.cost(target) for one in curves])
    enough = (np.isfinite(costs).mean(axis=1) >= _ENOUGH).all()
    limit = max(one.evaluations[-1] for one in curves)  # The same for all, so that these tie.
    errors = np.array([one.errors[-1] for one in curves])
    outcomes = np.where(np.isfinite(costs), costs, limit) if enough else errors
    rows = [compare_pairs(outcomes[0], row) for row in outcomes[1:]]
    corrected = holm([p for _, p in rows])
    measure = "evaluations" if enough else "error"
    return [Effect(measure, ratio, p) for (ratio, _), p in zip(rows, corrected, strict=True)]


def compare_pairs(first: np.ndarray, other: np.ndarray) -> tuple[Interval, float]:
    """Returns the median ratio of `other [S]` to `first [S]`, and the p-value of a difference.

    The interval is a bootstrap over the seeds, and the test Wilcoxon's signed ranks of the
    logarithms.
    """
    least = min(x for x in (*first, *other, 1.0) if x > 0) / 2  # Stands for an error of zero.
    logs = np.log(np.maximum(other, least)) - np.log(np.maximum(first, least))
    rows = np.random.default_rng(0).integers(len(logs), size=(_RESAMPLES, len(logs)))
    medians = np.median(logs[rows], axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    test: Any = stats.wilcoxon(logs) if np.any(logs) else None
    p_value = 1.0 if test is None else float(test.pvalue)
    return Interval(*map(float, np.exp([np.median(logs), low, high]))), p_value


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrects p-values for the number of comparisons (Holm 1979)."""
    order = np.argsort(p_values)
    scaled = np.array(p_values)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected.tolist()
