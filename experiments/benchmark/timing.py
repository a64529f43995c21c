"""Clocks: medians of runs made in turn, and the parts of a compilation."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
from jax.experimental.compilation_cache import compilation_cache


class CompileTimes(NamedTuple):
    """Seconds of the three parts of compiling one program."""

    trace: float
    lower: float
    compile: float


def median_seconds(repeats: int, **runs: Callable[[], Any]) -> dict[str, float]:
    """The median seconds of each of several functions, run in turn, after one run of each."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def compile_cold(
    function: Any, *args: Any, options: dict[str, Any] | None = None
) -> tuple[Callable[..., Any], CompileTimes]:
    """Compiles a jitted function as a new process would, without anything kept from before.

    Args:
      function: from `jax.jit`.
      *args: for it.
      options: for the compiler.

    Returns:
      The compiled function, and the seconds that its making took.
    """
    jax.clear_caches()
    with _without_cache():
        marks = [time.perf_counter()]
        traced = function.trace(*args)
        marks.append(time.perf_counter())
        lowered = traced.lower()
        marks.append(time.perf_counter())
        compiled = lowered.compile(options)
        marks.append(time.perf_counter())
    return compiled, CompileTimes(*(b - a for a, b in zip(marks, marks[1:], strict=False)))


@contextlib.contextmanager
def _without_cache() -> Iterator[None]:
    """Leaves the compilation cache on disk alone for a while."""
    before = jax.config.jax_enable_compilation_cache  # pyright: ignore[reportAttributeAccessIssue]
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # JAX looks at the setting only once.
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()
