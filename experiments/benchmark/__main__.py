"""Runs the measurements that were asked for, and prints and writes what they found."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.benchmark.__main__")

import json
import math
import platform
from collections.abc import Callable

import jax

from azjax.cli import console, launch
from azjax.drawing import check_folder
from azjax.proof import certificate as certificates
from experiments.benchmark.cost import choose_sizes, count_costs
from experiments.benchmark.following import time_lines
from experiments.benchmark.iterations import time_batches, time_many_seeds, time_verification
from experiments.benchmark.options import Options
from experiments.benchmark.products import time_products
from experiments.benchmark.solving import time_solve
from experiments.benchmark.stepping import time_explorer
from experiments.benchmark.training import time_first_iteration, time_to_perfect


def measure(options: Options) -> dict:
    """Measures; returns the results for JSON."""
    count = jax.device_count()
    machine = f"{launch.cores()} CPU cores, {platform.machine()}, {certificates.device_name()}"
    machine += f", {count} device{'s' if count > 1 else ''}"
    for number in options.shared():
        if number % count:
            raise ValueError(
                f"{number} games or shards cannot be dealt out to {count} devices alike: use "
                f"multiples of {count}"
            )
    print(f"{machine}; jax {jax.__version__}, python {platform.python_version()}")
    results = {name: _RUN[name](options) for name in options.measures}
    return {"machine": machine, "devices": count, "versions": certificates.versions()} | results


def _speed(options: Options) -> list[dict]:
    from experiments.benchmark.speed import time_speed  # It needs pgx, an extra.

    return time_speed(options)


def _large(options: Options) -> list[dict]:
    from experiments.benchmark.large import time_large  # It needs pgx, too.

    return time_large(options)


_RUN: dict[str, Callable[[Options], list[dict]]] = {
    "speed": _speed,
    "batch": time_batches,
    "first_iteration": time_first_iteration,
    "time_to_perfect": time_to_perfect,
    "many_seeds": time_many_seeds,
    "verification": time_verification,
    "lines": lambda options: time_lines(options.repeats),
    "explorer": lambda options: time_explorer(),
    "products": time_products,
    "solve": time_solve,
    "large": _large,
    "cost": count_costs,
    "cards": choose_sizes,
}


def split_cpu(options: Options) -> None:
    """Splits the CPU into devices that divide what is dealt out, before JAX's first computation."""
    launch.spread(0, math.gcd(*options.shared()))


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status.

    Args:
      arguments: of the command line; None for those of this process, whose CPU is then split
        into devices. Inside other programs JAX may be running already.
    """
    return console.run(lambda: _run(arguments), interrupted="the results were not written")


def _run(arguments: list[str] | None) -> int:
    options = console.parse(Options, arguments, "experiments.benchmark")
    check_folder(options.out)
    if arguments is None:
        split_cpu(options)
    results = measure(options)
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print(f"results: {options.out}")
    return 0
