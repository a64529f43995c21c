"""How long training takes until the proof holds, and what the proof costs.

Runs are whole processes, cold: imports and compilation count, and each has an empty
compilation cache of its own.
"""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import jax
from rich.progress import track
from rich.table import Table

from azjax import presets, train
from experiments import console
from experiments.benchmark.options import Options
from experiments.proof import make_proof


@dataclasses.dataclass(frozen=True)
class Run:
    """One training run from one seed.

    Attributes:
      games: in parallel.
      seed: its seed.
      started: seconds until the first iteration began: imports and compilation.
      unbeatable: seconds until the raw network had no losing line, or None.
      perfect: seconds until the raw network was optimal everywhere, or None.
      iterations: made until the proof held.
      seconds: the whole process, certificate included.
      search_blunders: of network + search at the end, PUCT and Gumbel together.
      losing_lines_later: largest number in the 100 iterations afterwards; None if not run.
    """

    games: int
    seed: int
    started: float
    unbeatable: float | None
    perfect: float | None
    iterations: int
    seconds: float
    search_blunders: int
    losing_lines_later: int | None


def train_once(options: Options, games: int, seed: int, folder: pathlib.Path) -> Run:
    """Trains in a process of its own until the proof holds."""
    run_dir = folder / f"{games}-{seed}"
    preset = presets.get(options.preset)
    capacity = max(preset.replay.capacity, games * preset.selfplay.plies)
    before = time.perf_counter()
    _train(folder, ["--preset", options.preset, "--seed", seed, "--run-dir", run_dir,
                    "--max-iterations", options.max_iterations, "--selfplay.games", games,
                    "--replay.capacity", capacity])  # fmt: skip
    seconds = time.perf_counter() - before
    records = read_records(run_dir)
    certificate = json.loads((run_dir / "certificate.json").read_text())
    later = None
    if options.stability:
        last = records[-1]["iteration"]
        _train(folder, ["--resume", "--run-dir", run_dir, "--until", "never",
                        "--max-iterations", last + 100])  # fmt: skip
        later = max(_losing_lines(record) for record in read_records(run_dir)[last:])
    first = records[0]
    return Run(
        games=games,
        seed=seed,
        started=first["seconds"] - first["games"] / first["games_per_second"],
        unbeatable=_first(records, lambda record: _losing_lines(record) == 0),
        perfect=_first(records, lambda record: record["blunders"] == 0),
        iterations=records[-1]["iteration"],
        seconds=seconds,
        search_blunders=certificate["puct_blunders"] + certificate["gumbel_blunders"],
        losing_lines_later=later,
    )


def _train(folder: pathlib.Path, arguments: list) -> None:
    """Runs the training program with an empty compilation cache."""
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
        command = [sys.executable, "-m", "experiments.train", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: the goal was not reached, which is a result.
        raise RuntimeError(f"training failed: {done.stderr.strip()}")


def read_records(run_dir: pathlib.Path) -> list[dict]:
    """What a run wrote of its iterations."""
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def _losing_lines(record: dict) -> int:
    return record["losing_lines_first"] + record["losing_lines_second"]


def _first(records: list[dict], holds) -> float | None:
    return next((record["seconds"] for record in records if holds(record)), None)


def time_to_perfect(options: Options) -> list[Run]:
    """Trains from every seed with every number of games, and prints the tables."""
    runs = []
    for games in options.train_games or (presets.get(options.preset).selfplay.games,):
        with tempfile.TemporaryDirectory() as name:
            seeds = track(range(options.seeds), f"training, {games:,} games", transient=True)
            found = [train_once(options, games, seed, pathlib.Path(name)) for seed in seeds]
        _show(options, found)
        runs += found
    return runs


def _show(options: Options, runs: list[Run]) -> None:
    """Prints the runs of one number of games."""
    title = f"preset {options.preset}, {runs[0].games:,} games: cold, whole process, seconds"
    table = Table(title=title)
    headings = ("seed", "started", "unbeatable", "perfect", "process", "iterations")
    later = ("losing lines in 100 more",) if options.stability else ()
    for heading in (*headings, "search blunders", *later):
        table.add_column(heading, justify="right")
    for run in runs:
        row = [f"{run.seed}", f"{run.started:.1f}", *map(_seconds, (run.unbeatable, run.perfect))]
        row += [f"{run.seconds:.1f}", f"{run.iterations}", f"{run.search_blunders}"]
        table.add_row(*row, *([f"{run.losing_lines_later}"] if options.stability else []))
    names = ("started", "unbeatable", "perfect", "seconds")
    medians = [_seconds(_median([getattr(run, name) for run in runs])) for name in names]
    table.add_section()
    table.add_row("median", *medians)
    console.print_rich(table)
    within = sum(run.perfect is not None and run.perfect <= 120 for run in runs)
    print(f"perfect within 120 s: {within} of {len(runs)}")


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}"


def _median(values: list[float | None]) -> float | None:
    """The median, a run that never got there counting as slower than all others."""
    middle = statistics.median_high([float("inf") if v is None else v for v in values])
    return None if middle == float("inf") else middle


def time_verification(options: Options, repeats: int = 15) -> dict[str, float]:
    """Times iterations and verifications in turn, and prints the medians."""
    config, mesh = presets.get(options.preset), train.make_mesh()
    iterate: Any = train.make_iteration(config, mesh)
    abstract = train.abstract_state(config, mesh)
    iterate = iterate.lower(abstract).compile(train.compiler_options())
    judge = make_proof(config, train.make_parts(config), mesh).judge
    state, times = train.make_state(config, mesh), {"iteration": [], "verification": []}
    for _ in range(repeats + 1):
        start = time.perf_counter()
        state, measured = jax.block_until_ready(iterate(state))
        middle = time.perf_counter()
        jax.block_until_ready(judge(train.one_copy(state.learner.average)))
        times["iteration"].append(middle - start)
        times["verification"].append(time.perf_counter() - middle)
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    share = medians["verification"] / medians["iteration"]
    print(
        f"one iteration {medians['iteration'] * 1e3:.0f} ms, its verification "
        f"{medians['verification'] * 1e3:.1f} ms: {share:.1%}"
    )
    return medians | {"share": share}
