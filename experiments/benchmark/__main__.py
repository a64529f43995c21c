"""Runs the chosen measurements, prints tables and writes JSON."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.benchmark.__main__")

import importlib
import json
import math
import platform
from collections.abc import Callable

import jax

from azjax.cli import console, launch, parsing
from azjax.drawing import check_folder
from azjax.proof import certificate as certificates
from experiments.benchmark.cost import choose_sizes, count_costs
from experiments.benchmark.iterations import time_batches, time_verification
from experiments.benchmark.options import Options
from experiments.benchmark.training import time_first_iteration, time_to_perfect


def measure(options: Options) -> dict:
    """Runs the measurements; returns the results for JSON."""
    count = jax.device_count()
    machine = f"{launch.cores()} CPU cores, {platform.machine()}, {certificates.device_name()}"
    machine += f", {count} device{'s' if count > 1 else ''}"
    for number in options.divided():
        if number % count:
            raise ValueError(
                f"{number} games or shards cannot be divided evenly among {count} devices: use "
                f"multiples of {count}"
            )
    print(f"{machine}; jax {jax.__version__}, python {platform.python_version()}")
    results = {name: _RUN[name](options) for name in options.measures}
    return {"machine": machine, "devices": count, "versions": certificates.versions()} | results


def _time_speed(options: Options) -> list[dict]:
    """Measures speed, which needs pgx, an optional package."""
    return importlib.import_module("experiments.benchmark.speed").time_speed(options)


_RUN: dict[str, Callable[[Options], list[dict]]] = {
    "speed": _time_speed,
    "batch": time_batches,
    "first_iteration": time_first_iteration,
    "time_to_perfect": time_to_perfect,
    "verification": time_verification,
    "cost": count_costs,
    "cards": choose_sizes,
}


def split_cpu(options: Options) -> None:
    """Splits the CPU into a number of devices that divides all games and shards.

    This must come before JAX's first computation.
    """
    launch.spread(0, math.gcd(*options.divided()))


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status.

    Args:
      arguments: the command line. None: that of this process. Only then is the CPU split into
        devices, since JAX may have started already in other programs.
    """
    return console.run(lambda: _run(arguments), interrupted="the results were not written")


def _run(arguments: list[str] | None) -> int:
    options = parsing.parse(Options, arguments, "experiments.benchmark")
    check_folder(options.out)
    if arguments is None:
        split_cpu(options)
    results = measure(options)
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print(f"results: {options.out}")
    return 0
