"""Medians of what runs in turn, and tables of what was found."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax

from azjax.cli import console


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


def show(title: str, rows: list[dict], missing: str = "") -> list[dict]:
    """Prints rows with the same headings as a table, `missing` for None; returns the rows."""
    texts = [[missing if cell is None else _text(cell) for cell in row.values()] for row in rows]
    names = sum(isinstance(cell, str) for cell in rows[0].values())
    console.print_table(tuple(rows[0]), texts, names, title)
    return rows


def _text(cell: str | float) -> str:
    """Words as they are; of numbers three digits, and all those before the point."""
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 100 else f"{cell:.3g}"
