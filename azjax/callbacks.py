"""The callbacks of a run: records, checkpoints, Ctrl-C, snapshots and the report.

Those of other modules are imported here, so that all are in one namespace.
"""

import contextlib
import errno
import pathlib
import signal
from collections.abc import Callable
from typing import Any

import numpy as np

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._files import Path
from azjax.proof.callbacks import Certification, LabelledEvaluation, Verification
from azjax.runs import checkpoint
from azjax.runs.player import Player
from azjax.runs.strength import Strength
from azjax.training.loggers import TensorBoard, WeightsAndBiases
from azjax.training.loop import Callback, Loop
from azjax.training.metrics import Record
from azjax.viz import animation, report

__all__ = [
    "Callback",
    "Certification",
    "Checkpoints",
    "Interrupts",
    "LabelledEvaluation",
    "Report",
    "Sink",
    "Snapshots",
    "Strength",
    "TensorBoard",
    "Verification",
    "WeightsAndBiases",
]
Note = Callable[[str], None]


class Sink(Callback):
    """Passes every record to a sink, such as a display or a file."""

    def __init__(self, open_sink: Callable[[Loop], Any]):
        """Takes `Loop -> sink`, called at the start. The sink is called with each record."""
        self._open, self._sink = open_sink, None

    def on_start(self, loop: Loop) -> None:
        """Opens the sink."""
        self._sink = self._open(loop)

    def on_iteration(self, loop: Loop) -> None:
        """Passes on the record."""
        assert self._sink is not None
        self._sink(loop.record)

    def on_end(self, loop: Loop) -> None:
        """Closes the sink: later callbacks print results, and a terminal has one writer."""
        self.close()

    def close(self) -> None:
        """Closes the sink, if it is open."""
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()


class Output(Sink):
    """Passes every record to a sink that prints; training loses nothing if it cannot print.

    If the reader of its pipe has exited, training ends after this iteration, as after Ctrl-C. If
    its terminal is closed, training continues: SIGHUP ends it, unless the user has prevented that.
    """

    def on_iteration(self, loop: Loop) -> None:
        """Passes on the record, if possible."""
        try:
            super().on_iteration(loop)
        except OSError as error:
            interrupts.discard_output()
            if error.errno != errno.EIO:
                loop.interrupted, interrupts.now.signal = True, signal.SIGPIPE

    def close(self) -> None:
        """Closes the sink."""
        with contextlib.suppress(OSError):
            super().close()


class Checkpoints(Callback):
    """Saves a checkpoint every few iterations, and after the last one."""

    everywhere = True

    def __init__(self, run_dir: Path, every: int, keep: int, rank: Callable[[Record], float]):
        """Saves every few iterations, and keeps the newest ones and that of the highest rank."""
        self._run_dir, self._every, self._keep, self._rank = run_dir, every, keep, rank

    def on_iteration(self, loop: Loop) -> None:
        """Saves the state if a checkpoint is due."""
        if loop.is_last or loop.iteration % self._every == 0:
            checkpoint.save(self._run_dir, loop.state, self._rank(loop.record), self._keep)
            loop.tell("on_checkpoint")


class Interrupts(Callback):
    """Ends training after the current iteration in all processes: on Ctrl-C, SIGTERM or SIGHUP."""

    everywhere = True

    def __init__(self):
        """Does not handle signals until the loop starts."""
        self._held = contextlib.ExitStack()

    def on_start(self, loop: Loop) -> None:
        """Starts to handle the signals."""
        self._request = self._held.enter_context(interrupts.Request())

    def on_iteration(self, loop: Loop) -> None:
        """Sets `loop.interrupted` if it is set, or a signal was received, in any process."""
        (loop.interrupted,) = processes.any_of(loop.interrupted or self._request.made)

    def on_end(self, loop: Loop) -> None:
        """Restores the previous signal handler."""
        self.close()

    def close(self) -> None:
        """Restores the previous signal handler."""
        self._held.close()


class Snapshots(Callback):
    """Saves in which positions the network blunders, after every verification."""

    def __init__(self, verification: Verification, run_dir: Path, note: Note):
        """Takes the verification, which must be called first; failures to write are only noted."""
        self._verification, self._run_dir, self._note = verification, run_dir, note

    def on_start(self, loop: Loop) -> None:
        """Saves the blunders of the initial network."""
        self.on_iteration(loop)

    def on_iteration(self, loop: Loop) -> None:
        """Saves the blunders of an iteration, if it was verified."""
        verdict = self._verification.verdict
        if verdict is None:
            return
        try:
            is_blunder = np.asarray(verdict.is_blunder)
            animation.save_blunders(self._run_dir, loop.iteration, is_blunder)
        except OSError as error:
            self._note(
                f"the snapshot of iteration {loop.iteration} was not written: {error.strerror}"
            )


class Report(Callback):
    """Writes `report.html` at the end of training; a failure does not affect the run."""

    path: pathlib.Path | None = None  # Where the page is, once it is written.
    failed: str | None = None  # The reason if it could not be written.

    def __init__(
        self,
        run_dir: Path,
        solution: Any = None,
        announce: Note = lambda sentence: None,
    ):
        """Takes the solution of a game that can be enumerated.

        `announce` is called with a sentence before the page is written, which takes a while.
        """
        self._run_dir, self._solution = pathlib.Path(run_dir), solution
        self._announce, self._trained = announce, False

    def on_iteration(self, loop: Loop) -> None:
        """Records that the run has changed."""
        self._trained = True

    def on_end(self, loop: Loop) -> None:
        """Writes the page, unless a finished run already has one."""
        if not self._trained and (self._run_dir / "report.html").exists():
            return
        player = make_player(loop)
        self._announce("writing the report")
        try:
            self.path = report.write_report(self._run_dir, player, self._solution)
        except (OSError, ValueError) as error:
            self.failed = f"the report was not written: {error}"


def make_player(loop: Loop) -> Player:
    """Returns the averaged network of a training loop as a player."""
    return Player(loop.parts, loop.parts.network.fold(loop.average), loop.iteration)
