"""Runs the measurements that were asked for, and prints and writes what they found."""

from experiments import interrupts

if __name__ == "__main__":
    interrupts.listen()

import dataclasses
import json
import platform
import sys
from collections.abc import Callable
from typing import Any

import jax

from azjax import certificate as certificates
from experiments import console, launch
from experiments.benchmark.batch import time_batches
from experiments.benchmark.devices import check_devices, split_cpu
from experiments.benchmark.matches import time_arena
from experiments.benchmark.options import Options
from experiments.benchmark.scale import model_scale
from experiments.benchmark.starting import time_first_iteration
from experiments.benchmark.stepping import time_explorer
from experiments.benchmark.training import time_to_perfect, time_verification


def measure(options: Options) -> dict:
    """Measures; returns the results for JSON."""
    count = jax.device_count()
    machine = f"{launch.cores()} CPU cores, {platform.machine()}, {certificates.device_name()}"
    machine += f", {count} device{'s' if count > 1 else ''}"
    print(f"{machine}; jax {jax.__version__}, python {platform.python_version()}")
    results: dict = {"machine": machine, "devices": count, "versions": certificates.versions()}
    return results | {name: _RUN[name](options) for name in options.measures}


def _speed(options: Options) -> list[dict]:
    from experiments.benchmark.speed import time_speed  # It needs pgx, an extra.

    return time_speed(options)


def _profile(options: Options) -> str:
    from experiments.benchmark.profiling import write_profile  # It needs pgx, too.

    return write_profile(options)


def _time_to_perfect(options: Options) -> list[dict]:
    return [dataclasses.asdict(run) for run in time_to_perfect(options)]


_RUN: dict[str, Callable[[Options], Any]] = {
    "speed": _speed,
    "batch": time_batches,
    "scale": model_scale,
    "first_iteration": time_first_iteration,
    "profile": _profile,
    "time_to_perfect": _time_to_perfect,
    "verification": time_verification,
    "arena": lambda options: time_arena(),
    "explorer": lambda options: time_explorer(),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status.

    Args:
      arguments: of the command line; None for those of this process, whose CPU is then split
        into devices. Inside other programs JAX may be running already.
    """
    return console.run(lambda: _run(arguments), interrupted="the results were not written")


def _run(arguments: list[str] | None) -> int:
    options = console.parse(Options, arguments, "experiments.benchmark")
    options.check_files()
    if arguments is None:
        split_cpu(options)
    check_devices(options, jax.device_count())
    with console.no_mistakes():
        results = measure(options)
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print(f"results: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
