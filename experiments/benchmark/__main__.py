"""Runs the measurements that were asked for, and prints and writes what they found."""

import dataclasses
import json
import os
import platform
import sys

import jax

from azjax import certificate as certificates
from azjax.drawing import check_folder
from experiments import console
from experiments.benchmark.matches import time_arena
from experiments.benchmark.options import Options
from experiments.benchmark.stepping import time_explorer
from experiments.benchmark.training import time_to_perfect, time_verification


def measure(options: Options) -> dict:
    """Measures; returns the results for JSON."""
    machine = f"{os.cpu_count()} CPU cores, {platform.machine()}, {certificates.device_name()}"
    print(f"{machine}; jax {jax.__version__}, python {platform.python_version()}")
    results: dict = {"machine": machine, "versions": certificates.versions()}
    if options.speed:
        from experiments.benchmark.speed import time_speed  # It needs pgx, an extra.

        results["speed"] = time_speed(options)
    if options.verification:
        results["verification"] = time_verification(options)
    if options.arena:
        results["arena"] = time_arena()
    if options.explorer:
        results["explorer"] = time_explorer()
    if options.time_to_perfect:
        results["time_to_perfect"] = [dataclasses.asdict(run) for run in time_to_perfect(options)]
    return results


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    try:
        options = console.parse(Options, arguments, "experiments.benchmark")
        if options.out:
            check_folder(options.out)
    except ValueError as error:
        return console.fail(error)
    results = measure(options)
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
