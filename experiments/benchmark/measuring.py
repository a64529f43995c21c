"""Median times of functions that run in turn, and tables of results."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax

from azjax.cli import console


def median_seconds(repeats: int, **runs: Callable[[], Any]) -> dict[str, float]:
    """Returns median seconds of functions that run in turn, after one warm-up run of each."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def show(title: str, rows: list[dict], missing: str = "") -> list[dict]:
    """Prints rows with the same keys as a table, `missing` for None; returns the rows."""
    texts = [[missing if cell is None else _text(cell) for cell in row.values()] for row in rows]
    names = sum(isinstance(cell, str) for cell in rows[0].values())
    console.print_table(tuple(rows[0]), texts, names, title)
    return rows


def _text(cell: str | float) -> str:
    """Formats numbers with three significant digits and a complete integer part."""
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 100 else f"{cell:.3g}"
