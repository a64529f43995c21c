"""Times of whole training processes, including start-up, imports and compilation."""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from azjax.cli import console
from azjax.runs import presets
from experiments.benchmark.options import Options, show


def run_training(run_dir: pathlib.Path, settings: dict[str, Any], **variables: str) -> list[dict]:
    """Runs the training program; returns the records of its iterations."""
    flags = [f"--{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "experiments.train", f"--run-dir={run_dir}", *flags]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: the goal was not reached, which is a result.
        errors = [line for line in done.stderr.splitlines() if not line.endswith("…")]
        raise ValueError(f"training failed: {' '.join(errors)}")
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def time_first_iteration(options: Options) -> list[dict]:
    """Times pairs of processes: the first fills a compilation cache, and the second reads it."""
    times: dict[str, list[float]] = {"cold, s": [], "warm cache, s": []}
    for _ in console.track(range(options.repeats), "starting"):
        with tempfile.TemporaryDirectory() as name:
            cache = {"JAX_COMPILATION_CACHE_DIR": name}
            cache["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # Caches small programs.
            for kind, seconds in times.items():
                run_dir = pathlib.Path(name) / kind
                (record,) = run_training(run_dir, first_settings(options), **cache)
                seconds.append(record["seconds"])
    title = f"first iteration of a process, {options.sizes}, {options.games:,} games, 1 move each"
    return show(title, [{kind: statistics.median(seconds) for kind, seconds in times.items()}])


def first_settings(options: Options) -> dict[str, Any]:
    """Settings of a process that trains one iteration."""
    return {
        "preset": "paper",
        "network.width": options.channels,
        "network.blocks": options.blocks,
        "search.algorithm": "gumbel",
        "search.num-simulations": options.simulations,
        "selfplay.games": options.games,
        "selfplay.unroll-length": 1,
        "replay.capacity": max(32_768, options.games),
        "learner.batch-size": 1024,
        "learner.steps": 1,
        "until": "never",
        "max-iterations": 1,
    }


def time_to_perfect(options: Options) -> list[dict]:
    """Trains from every seed with every number of games, and prints the tables.

    The networks take turns, so that changes in the machine's speed affect all of them.
    """
    rows = []
    for games in options.train_games:
        seeds = console.track(range(options.seeds), f"training, {games:,} games")
        kinds = options.train_networks
        runs = [train_once(options, games, seed, kind) for seed in seeds for kind in kinds]
        title = "preset default: cold, whole process"
        show(title, [*runs, *(_medians(runs, kind) for kind in kinds)], missing="never")
        for kind in kinds:
            times = [row["perfect, s"] or math.inf for row in runs if row["network"] == kind]
            within = sum(time <= 120 for time in times)
            print(f"{kind}: perfect within 120 s: {within} of {len(times)}")
        rows += runs
    return rows


def _medians(rows: list[dict], kind: str) -> dict:
    """Returns a row with the medians of one kind of network."""
    rows = [row for row in rows if row["network"] == kind]
    names = ("unbeatable, s", "perfect, s", "process, s", "iterations")
    medians = {name: _median([row[name] for row in rows]) for name in names}
    return dict.fromkeys(rows[0], "") | {"network": kind, "seed": "median"} | medians


def train_once(options: Options, games: int, seed: int, kind: str) -> dict:
    """Trains in a new process until the player is verified perfect."""
    default = presets.get("default")
    settings = {
        "network.kind": kind,
        "seed": seed,
        "max-iterations": options.max_iterations,
        "selfplay.games": games,
        "replay.capacity": max(default.replay.capacity, games * default.selfplay.unroll_length),
    }
    with tempfile.TemporaryDirectory() as name:
        run_dir = pathlib.Path(name) / "run"
        started = time.perf_counter()
        records = run_training(run_dir, settings, JAX_ENABLE_COMPILATION_CACHE="false")
        seconds = time.perf_counter() - started
        certificate = json.loads((run_dir / "certificate.json").read_text())
    return {
        "network": kind,
        "games": games,
        "seed": seed,
        "unbeatable, s": _first(records, "losing_lines_first", "losing_lines_second"),
        "perfect, s": _first(records, "blunders"),
        "process, s": seconds,
        "iterations": len(records),
        "search blunders": sum(search["blunders"] for search in certificate["searches"]),
    }


def _first(records: list[dict], *mistakes: str) -> float | None:
    """Returns the seconds until the first iteration without these mistakes, or None."""
    return next((r["seconds"] for r in records if not any(r[name] for name in mistakes)), None)


def _median(values: list[float | None]) -> float | None:
    """Returns the median; None counts as slower than all other values."""
    middle = statistics.median_high([math.inf if value is None else value for value in values])
    return None if middle == math.inf else middle
