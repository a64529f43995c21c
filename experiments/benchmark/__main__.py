"""Runs the chosen measurements, prints tables and writes JSON."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.benchmark.__main__")

import importlib
import json
import platform
from collections.abc import Callable

import jax

from azjax import _processes as processes
from azjax._files import check_folder
from azjax.cli import console
from azjax.proof import certificate as certificates
from azjax.runs.config import count_devices
from experiments.benchmark.iterations import time_batches, time_verification
from experiments.benchmark.options import Options
from experiments.benchmark.training import time_first_iteration, time_to_perfect


def measure(options: Options) -> dict:
    """Runs the measurements; returns the results for JSON."""
    count = jax.device_count()
    machine = f"{processes.cores()} CPU cores, {platform.machine()}, {certificates.device_name()}"
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


_RUN: dict[str, Callable[[Options], list[dict]]] = {
    # Speed needs pgx, an optional package.
    "speed": lambda options: importlib.import_module("experiments.benchmark.speed").run(options),
    "batch": time_batches,
    "first_iteration": time_first_iteration,
    "time_to_perfect": time_to_perfect,
    "verification": time_verification,
}


def run(options: Options) -> int:
    """Measures and writes the results; returns the exit status."""
    check_folder(options.out)
    number = count_devices(processes.cores(), *options.divided())
    processes.set_cpu_devices(number)  # They divide all games and shards.
    results = measure(options)
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print(f"results: {options.out}")
    return 0


main = console.make_main(run, Options, "experiments.benchmark", "the results were not written")
