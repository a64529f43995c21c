"""What a training run says of each iteration, and where that goes: a file, and the screen."""

import contextlib
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
from rich.console import Console

from azjax import metrics, processes, train
from azjax.verify import Verdict


def make_record(
    iteration: int, measured: train.Metrics, verdict: Verdict | None, before: float, started: float
) -> metrics.Record:
    """Waits for an iteration's numbers and puts them together.

    Args:
      iteration: its number.
      measured: what it reported.
      verdict: on its network, where the game can be enumerated.
      before: `time.time()` when it began.
      started: the `time.time()` from which the run's seconds count.
    """
    measured, verdict = jax.device_get((measured, verdict))
    now, losses = time.time(), measured.losses
    proof = {}
    if verdict is not None:
        proof = {
            "blunders": int(verdict.blunders),
            "losing_lines_first": int(verdict.losing_lines[0]),
            "losing_lines_second": int(verdict.losing_lines[1]),
            "value_sign_errors": int(verdict.value_sign_errors),
            "value_error": float(verdict.value_error),
        }
    return metrics.Record(
        iteration=iteration,
        seconds=now - started,
        games=int(measured.games),
        games_per_second=float(measured.games) / (now - before),
        loss=float(losses.total),
        value_loss=float(losses.value),
        policy_loss=float(losses.policy),
        policy_kl=float(losses.policy_kl),
        l2=float(losses.l2),
        grad_norm=float(losses.grad_norm),
        **proof,
    )


def score(record: metrics.Record) -> float:
    """Ranks checkpoints; higher is better: fewest blunders, then lowest loss."""
    return -record.loss if record.blunders is None else -record.blunders - record.loss / 1e3


@contextlib.contextmanager
def open_sinks(
    run_dir: pathlib.Path, after: int, max_iterations: int, goal: str
) -> Iterator[list[Callable[[metrics.Record], None]]]:
    """Where process 0 puts the records; the other processes put them nowhere.

    Args:
      run_dir: of the run.
      after: the iteration that the run starts from; later records in its file are dropped.
      max_iterations: of the run.
      goal: of the run, for the screen.
    """
    sinks = []
    with contextlib.ExitStack() as stack:

        def fill():
            sinks.extend(_make_sinks(stack, run_dir, after, max_iterations, goal))

        processes.in_first(fill)
        yield sinks


def _make_sinks(stack, run_dir, after, max_iterations, goal) -> Iterator[Any]:
    """The JSON-lines file, and a live table on a terminal or plain lines elsewhere."""
    lines = metrics.JsonLines(run_dir / "metrics.jsonl", after)
    yield stack.enter_context(contextlib.closing(lines))
    terminal, screen = Console(), metrics.Plain(sys.stdout)
    if terminal.is_terminal:
        screen = metrics.Display(terminal, max_iterations, goal)
    yield stack.enter_context(contextlib.closing(screen))
