"""Comparison of settings or custom parts by their exact errors, over many seeds.

The error is the share of positions where the network's move, without search, loses what perfect
play would keep. It covers all positions if the game can be enumerated, each once for every ply at
which it can be reached, and labelled ones if not. The last networks are also measured with the
search of training, without noise.
"""

import dataclasses
import functools
import hashlib
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
from azjax._commands import write_note
from azjax._settings import Positive, checked, from_dict
from azjax.games import solver
from azjax.games.base import Game
from azjax.games.check import check_custom
from azjax.players.statistics import Interval
from azjax.proof import certificate
from azjax.proof.callbacks import LabelledEvaluation, iterations_between
from azjax.runs import directory
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
from azjax.training.memory import check_trees

_RESAMPLES = 10_000
_SIGNIFICANT = 0.05
_ENOUGH = 0.5  # Share of the seeds that must reach the target for a comparison of their costs.
Measure = Callable[..., float]  # `(parts, variables, search=None) -> error`.
AXES = ("iterations", "evaluations", "moves", "seconds")  # Of curves.


@dataclasses.dataclass(frozen=True)
class Curves:
    """The errors of one setting at `K` points of training, for `S` seeds."""

    name: str  # What distinguishes the setting, such as `search.algorithm=puct`.
    config: dict[str, Any]  # Of custom parts, the game and the digest of their programs.
    device: str
    iterations: list[int]  # `[K]`.
    evaluations: list[int]  # `[K]`, of the network, in self-play of one seed.
    moves: list[int]  # `[K]`, in self-play of one seed.
    seconds: list[float]  # `[K]`, of the whole program divided by `S`, without compilation.
    errors: list[list[float]]  # `[K, S]`, in [0, 1].
    searched: list[float] | None = None  # `[S]`, the last ones, with a deterministic search.

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


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The errors of several settings of a game."""

    game: str
    curves: list[Curves]  # The others are compared with the first.

    def effects(self, target: float = 0.0, *, search: bool = False) -> list[Effect]:
        """Compares every setting with the first one; with `search`, by the last errors with it."""
        errors = [one.searched if search else one.errors[-1] for one in self.curves]
        if None in errors:
            name = self.curves[errors.index(None)].name
            raise ValueError(f"{name} has no errors with the search: leave search out")
        costs = np.array([one.cost(target) for one in self.curves])
        enough = not search and (np.isfinite(costs).mean(axis=1) >= _ENOUGH).all()
        limit = max(one.evaluations[-1] for one in self.curves)  # The same, so that these tie.
        outcomes = np.where(np.isfinite(costs), costs, limit) if enough else np.array(errors)
        rows = [compare_pairs(outcomes[0], row) for row in outcomes[1:]]
        corrected = holm([p for _, p in rows])
        measure = "evaluations" if enough else "error"
        return [Effect(measure, ratio, p) for (ratio, _), p in zip(rows, corrected, strict=True)]

    def to_rows(self) -> list[dict[str, Any]]:
        """Returns a row for every setting, point of training and seed, for `pandas.DataFrame`.

        `error_with_search` is None except at the last point.
        """
        rows = []
        for one in self.curves:
            for k, errors in enumerate(one.errors):
                point = {name: getattr(one, name)[k] for name in AXES}
                searched = one.searched if k == len(one.errors) - 1 else None
                for seed, error in enumerate(errors):
                    row = {"setting": one.name, "seed": seed} | point | {"error": error}
                    rows.append(row | {"error_with_search": searched and searched[seed]})
        return rows


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


def make_measure(game: Game) -> tuple[Measure, int]:
    """Returns `(parts, variables, search=None) -> error` of one network, and its evaluations."""
    if game.enumerable:
        solution = solver.solve(game)

        def measure(parts, variables, search=None):
            player = Player(parts, parts.network.fold(variables))
            verdict = certificate.examine(player, solution, search)
            return int(verdict.blunders) / len(solution.decisions)

        return measure, len(solution.decisions)

    positions: Any = game.positions  # Every game that is compared has some; see `_make_all`.

    def measure_labelled(parts, variables, search=None):
        return LabelledEvaluation(parts, 1).find_errors(variables, search)["error"]

    return measure_labelled, len(positions().outcomes)


def train_seeds(
    name: str,
    parts: Parts,
    config: dict[str, Any],
    seeds: int,
    evaluations: int,
    measuring: tuple[Measure, int],
    tell: Callable[[str], None] = lambda sentence: None,
) -> Curves:
    """Trains all seeds with one setting until each has made this many network evaluations."""
    each, (measure, cost) = parts.evaluations, measuring
    last = max(1, round(evaluations / each))
    every = max(iterations_between(parts, cost, 0.1), last // 100)
    states, advance = compile_seeds(parts, seeds)
    at, errors, seconds, spent, rows = [], [], [], 0.0, []
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
    searched = None
    if parts.search.is_deterministic:
        tell(f"{name}: measuring errors with the search")
        searched = [measure(parts, row, parts.search) for row in rows]
    moves = parts.selfplay.games * parts.selfplay.unroll_length
    return Curves(
        name=name,
        config=config,
        device=jax.devices()[0].device_kind,
        iterations=at,
        evaluations=[each * number for number in at],
        moves=[moves * number for number in at],
        seconds=seconds,
        errors=errors,
        searched=searched,
    )


def compare(
    settings: Mapping[str, Config | Parts],
    path: files.Path,
    *,
    seeds: int = 20,
    iterations: int | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Comparison:
    """Trains all settings, and writes the errors of each to a JSON file when it is finished.

    Args:
      settings: by name, a `Config` or custom `Parts`, all of one game; the first is what the others
        are compared with.
      path: the JSON file. Settings that it has already, with any name, are not trained again.
      seeds: `S`.
      iterations: of the first setting; the others make as many network evaluations. By default
        100, or as many evaluations as the settings in the file.
      tell: called with sentences on the progress.
    """
    path, seeds = pathlib.Path(path), checked("seeds", seeds, Positive)
    iterations = checked("iterations", iterations, Positive | None)
    made = _make_all(settings)
    first = next(iter(made.values()))
    check_custom(first.game)
    files.check_folder(path)
    least = 1 + math.ceil(math.log2(max(1, len(made) - 1) / _SIGNIFICANT))
    if len(made) > 1 and seeds < least:  # The signs of all pairs agree with probability 2^(1 - S).
        write_note(f"no difference can be significant with {seeds} seeds: use {least} or more")
    content: dict[str, Any] = {"game": first.game.name, "seeds": seeds}
    if iterations is not None or not path.exists():
        content["evaluations"] = (iterations or 100) * first.evaluations
    with directory.lock(path.with_name(f"{path.name}.lock"), f"writes {path.name}"):
        known, evaluations = read(path, content) if path.exists() else ([], content["evaluations"])
        done = {json.dumps(curves.config, sort_keys=True): curves for curves in known}
        found, measuring = [], None
        for name, parts in made.items():
            config = _identify(settings[name])
            key = json.dumps(config, sort_keys=True)
            if key not in done:
                measuring = measuring or make_measure(first.game)
                done[key] = train_seeds(name, parts, config, seeds, evaluations, measuring, tell)
                rows = [dataclasses.asdict(curves) for curves in done.values()]
                files.write_json(path, content | {"evaluations": evaluations, "settings": rows})
            found.append(dataclasses.replace(done[key], name=name))
    return Comparison(first.game.name, found)


def _make_all(settings: Mapping[str, Config | Parts]) -> dict[str, Parts]:
    """Returns the parts of all settings; raises a ValueError unless all can train, in one game."""
    if not settings:
        raise ValueError("there are no settings to compare: give one or more")
    made = {}
    for name, given in settings.items():
        if not isinstance(given, Config | Parts):
            raise ValueError(f"{name} is of type {type(given).__name__}: give a Config or Parts")
        made[name] = parts = given if isinstance(given, Parts) else make_parts(given)
        check_parts(parts)
        if parts.game.enumerable and parts.search.is_deterministic:
            check_trees(parts.search, parts.game, certificate.SLICE)
        if not (parts.game.enumerable or parts.game.positions):
            raise ValueError(
                f"{parts.game.name} has no exact errors, which need a game that can be enumerated "
                "or has labelled positions: compare settings in a smaller size, such as hex:4"
            )
    games = {parts.game.name: None for parts in made.values()}
    if len(games) > 1:
        raise ValueError(f"the settings have several games, {', '.join(games)}: use one")
    return made


def _identify(given: Config | Parts) -> dict[str, Any]:
    """Returns what distinguishes settings; of custom parts, a digest of what they compute."""
    if isinstance(given, Config):
        return given.as_dict()
    start = jax.jit(functools.partial(init, given)).lower(jax.random.key(0))
    advance = jax.jit(functools.partial(iteration, given)).lower(start.out_info)
    programs = start.as_text() + advance.as_text()
    return {"game": given.game.name, "programs": hashlib.sha256(programs.encode()).hexdigest()}


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
