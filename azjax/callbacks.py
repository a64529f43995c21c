"""The callbacks of a run; those of other modules are imported, so that all are in one place."""

import contextlib
import errno
import json
import math
import pathlib
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._commands import write_note
from azjax._files import Path
from azjax.proof.callbacks import Certification, LabelledEvaluation, Verification
from azjax.runs import checkpoint
from azjax.runs.player import Player
from azjax.training import metrics
from azjax.training.loop import Callback, Loop
from azjax.training.metrics import Record
from azjax.viz import animation
from azjax.viz.report import write_report

__all__ = ["Callback", "Certification", "Checkpoints", "Interrupts", "LabelledEvaluation"]
__all__ += ["Printer", "Records", "Report", "Snapshots", "TimeLimit", "Verification"]
_EVERY, _PAUSE = 10, 60.0  # By default: iterations and seconds between two checkpoints.


class Records(Callback):
    """Appends every record to a file, one JSON object per line."""

    def __init__(self, path: pathlib.Path):
        """Takes the path; records after the checkpoint that training starts from are dropped."""
        self._path, self._file = path, None

    def on_start(self, loop: Loop) -> None:
        self._file: Any = metrics.open_records(self._path, after=loop.iteration)

    def on_iteration(self, loop: Loop) -> None:
        self._file.write(json.dumps(loop.record.as_dict()) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Printer(Callback):
    """Passes every record to a function that prints; training loses nothing if it cannot print.

    If the reader of its pipe has exited, training ends after this iteration, as after Ctrl-C. If
    its terminal is closed, training continues: SIGHUP ends it, unless the user has prevented that.
    """

    def __init__(self, show: Callable[[Record], None]):
        self._show = show

    def on_iteration(self, loop: Loop) -> None:
        try:
            self._show(loop.record)
        except OSError as error:
            interrupts.discard_output()
            if error.errno != errno.EIO:
                loop.interrupted, interrupts.now.signal = True, signal.SIGPIPE


class Checkpoints(Callback):
    """Saves a checkpoint every few iterations, and after the last one.

    A thread writes a copy of the state while training goes on; the last checkpoint is complete
    before training ends. An error of the thread is raised at the next checkpoint.
    """

    everywhere = True

    def __init__(self, run_dir: Path, every: int, keep: int):
        """Keeps the newest ones; `every` 0: every 10 iterations, but at most one a minute."""
        self._run_dir, self._every, self._keep = run_dir, every, keep
        self._thread, self._started = ThreadPoolExecutor(1), -math.inf
        self._written: Future | None = None

    def on_iteration(self, loop: Loop) -> None:
        if not (loop.is_last or self._is_due(loop.iteration)):
            return
        self._wait(loop)
        self._started, contents = time.monotonic(), checkpoint.copy(loop.state)
        self._written = self._thread.submit(checkpoint.write, self._run_dir, contents, self._keep)
        if loop.is_last:
            self._wait(loop)

    def _is_due(self, iteration: int) -> bool:
        if iteration % (self._every or _EVERY):
            return False
        is_early = time.monotonic() - self._started < _PAUSE
        return self._every > 0 or not processes.any_of(is_early)

    def _wait(self, loop: Loop) -> None:
        written, self._written = self._written, None
        if written is not None:
            processes.in_all(written.result)
            loop.tell("on_checkpoint")

    def close(self) -> None:
        """Waits for the thread; training has failed if it still writes."""
        self._thread.shutdown()
        if self._written is not None and (error := self._written.exception()):
            write_note(str(error))


class Interrupts(Callback):
    """Ends training after the current iteration in all processes: on Ctrl-C, SIGTERM or SIGHUP."""

    everywhere = True

    def __init__(self):
        self._held = contextlib.ExitStack()

    def on_start(self, loop: Loop) -> None:
        self._request = self._held.enter_context(interrupts.Request())

    def on_iteration(self, loop: Loop) -> None:
        loop.interrupted = processes.any_of(loop.interrupted or self._request.made)

    def on_end(self, loop: Loop) -> None:
        self.close()

    def close(self) -> None:
        self._held.close()


class TimeLimit(Callback):
    """Ends training in time for what follows the last iteration: the certificate and the report.

    They take about as long as what precedes the first iteration: both compile. An iteration may
    take as long as the longest one. There is at least one. Place it before `Verification` and
    `LabelledEvaluation`, which evaluate the last network.
    """

    everywhere = True

    def __init__(self, started: float, seconds: float):
        """Takes the `time.monotonic()` at which the session began, and how long it may last."""
        self._started, self._deadline, self._longest = started, started + seconds, 0.0

    def on_start(self, loop: Loop) -> None:
        self._last = time.monotonic()
        self._reserve = self._last - self._started

    def on_iteration(self, loop: Loop) -> None:
        now = time.monotonic()
        self._longest, self._last = max(self._longest, now - self._last), now
        loop.stop |= processes.any_of(now + self._longest + self._reserve > self._deadline)


class Snapshots(Callback):
    """Saves in which positions the network blunders, after every verification."""

    def __init__(self, verification: Verification, run_dir: Path):
        """Takes the verification, which must be called first."""
        self._verification, self._run_dir = verification, run_dir

    def on_start(self, loop: Loop) -> None:
        animation.drop_blunders(self._run_dir, after=loop.iteration)
        self.on_iteration(loop)

    def on_iteration(self, loop: Loop) -> None:
        verdict = self._verification.verdict
        if verdict is not None:
            is_blunder = np.asarray(verdict.is_blunder)
            animation.save_blunders(self._run_dir, loop.iteration, is_blunder)


class Report(Callback):
    """Writes `report.html` after the last iteration."""

    def __init__(self, run_dir: pathlib.Path, verification: Verification | None, display: bool):
        self._run_dir, self._verification, self._display = run_dir, verification, display

    def on_start(self, loop: Loop) -> None:
        self._first = loop.iteration

    def on_end(self, loop: Loop) -> None:
        if loop.iteration == self._first and (self._run_dir / "report.html").exists():
            return
        if self._display:
            write_note("writing the report")
        solution = self._verification and self._verification.solution
        player = Player(loop.parts, loop.parts.network.fold(loop.average), loop.iteration)
        write_report(self._run_dir, player, solution)
