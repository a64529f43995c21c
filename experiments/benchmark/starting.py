"""How long a fresh training process takes to the end of its first iteration."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

from rich.progress import track

from experiments import console
from experiments.benchmark.options import Options
from experiments.benchmark.table import make_table
from experiments.benchmark.training import read_records

_REPEATS = 3
_BATCH = 1024
_SIZES = (1, 8)  # Moves a game, and optimiser steps, of the iteration.


class Start(NamedTuple):
    """Processes of one kind.

    Attributes:
      moves: of each game in the iteration, and its optimiser steps.
      cold: seconds from the process's start to the iteration's end, the compilation cache
        being empty; one number for each process.
      warm: the same, with the cache as the cold process left it.
    """

    moves: int
    cold: list[float]
    warm: list[float]


def time_first_iteration(options: Options) -> list[dict]:
    """Runs the processes, and prints the medians."""
    starts = [time_start(options, moves, _REPEATS) for moves in _SIZES]
    title = (
        f"first iteration of a training process, {options.channels} channels, {options.blocks} "
        f"blocks, {options.simulations} simulations, {options.games:,} games, batch {_BATCH:,}"
    )
    headings = ("moves a game", "optimiser steps", "cold, s", "warm cache, s")
    table = make_table(title, *headings)
    for start in starts:
        medians = (f"{statistics.median(column):.1f}" for column in (start.cold, start.warm))
        table.add_row(f"{start.moves}", f"{start.moves}", *medians)
    console.print_rich(table)
    return [start._asdict() for start in starts]


def time_start(options: Options, moves: int, repeats: int) -> Start:
    """Runs pairs of processes: one with an empty cache, then one with what it left."""
    cold, warm = [], []
    for _ in track(range(repeats), f"starting, {moves} moves a game", transient=True):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            cold.append(_start(options, moves, folder, "cold"))
            warm.append(_start(options, moves, folder, "warm"))
    return Start(moves, cold, warm)


def arguments(options: Options, moves: int, run_dir: pathlib.Path) -> list[str]:
    """The command line of `experiments.train` for one iteration."""
    settings = {
        "preset": "paper",
        "network.channels": options.channels,
        "network.blocks": options.blocks,
        "search.algorithm": "gumbel",
        "search.num-simulations": options.simulations,
        "selfplay.games": options.games,
        "selfplay.plies": moves,
        "replay.capacity": max(32_768, options.games * moves),
        "learner.batch-size": _BATCH,
        "learner.steps": moves,
        "until": "never",
        "max-iterations": 1,
        "run-dir": run_dir,
    }
    if options.cpu_devices:
        settings["cpu-devices"] = options.cpu_devices
    flags = [part for name, value in settings.items() for part in (f"--{name}", f"{value}")]
    return [*flags, "--no-report"]


def _start(options: Options, moves: int, folder: pathlib.Path, name: str) -> float:
    """Seconds of one process, as it counts them itself, imports included."""
    cache = {"JAX_COMPILATION_CACHE_DIR": f"{folder / 'cache'}"}
    cache["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # Small programs, too.
    environment = os.environ | cache
    command = [sys.executable, "-m", "experiments.train"]
    command += arguments(options, moves, folder / name)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"training failed: {done.stderr.strip()}")
    (record,) = read_records(folder / name)
    return record["seconds"]
