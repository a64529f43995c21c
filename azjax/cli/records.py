"""What a training run says of each iteration, and where that goes: a file, and the screen."""

import contextlib
import pathlib
import sys
import time
from collections.abc import Callable

import jax
from rich.console import Console

from azjax import _processes as processes
from azjax import training
from azjax.proof.verify import Verdict
from azjax.training import metrics


def make_record(
    iteration: int,
    measured: training.Metrics,
    verdict: Verdict | None,
    errors: dict[str, float],
    before: float,
    started: float,
) -> metrics.Record:
    """Waits for an iteration's numbers and puts them together.

    Args:
      iteration: its number.
      measured: what it reported.
      verdict: on its network, where the game can be enumerated.
      errors: of its network in labelled positions, where there are some and it was judged.
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
        losses={name: float(losses[name]) for name in _in_order(losses)},
        errors=errors,
        **proof,
    )


def score(record: metrics.Record, always_examined: bool = True) -> float:
    """Ranks checkpoints; higher is better: fewest blunders, where known, then lowest loss.

    Args:
      record: of the iteration.
      always_examined: whether blunders are counted in every iteration, if they are at all.
    """
    loss = record.losses["loss"]
    if record.blunders is None or not always_examined:
        return -loss
    return -record.blunders - loss / 1e3


def _in_order(losses: training.Losses) -> list[str]:
    """The names of losses; compiled programs return them in the order of the alphabet."""
    first = ["loss", "value_loss", "policy_loss", "policy_kl", "l2", "grad_norm"]
    return [*(n for n in first if n in losses), *sorted(losses.keys() - set(first))]


def open_sinks(
    stack: contextlib.ExitStack, run_dir: pathlib.Path, after: int, max_iterations: int, goal: str
) -> list[Callable[[metrics.Record], None]]:
    """Opens what process 0 puts the records into; in the other processes there is nothing.

    That is the JSON-lines file, and a live table on a terminal or plain lines elsewhere.

    Args:
      stack: closes them.
      run_dir: of the run.
      after: the iteration that the run starts from; later records in its file are dropped.
      max_iterations: of the run.
      goal: of the run, for the screen.
    """
    sinks = []

    def open_both():
        terminal, screen = Console(), metrics.Plain(sys.stdout)
        sinks.append(metrics.JsonLines(run_dir / "metrics.jsonl", after))
        if terminal.is_terminal:
            screen = metrics.Display(terminal, max_iterations, goal)
        sinks.append(screen)

    processes.in_first(open_both)
    for sink in sinks:
        stack.enter_context(contextlib.closing(sink))
    return sinks
