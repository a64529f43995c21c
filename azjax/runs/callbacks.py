"""Callbacks of a run: metrics, checkpoints and Ctrl-C."""

import contextlib
import errno
import signal
from collections.abc import Callable
from typing import Any

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._files import Path
from azjax.runs import checkpoint
from azjax.training.loop import Callback, Loop
from azjax.training.metrics import Record


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
        if self._sink is not None:
            self._sink.close()
            self._sink = None


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
        """Configures where and how often to save.

        Args:
          run_dir: the run directory.
          every: number of iterations between checkpoints.
          keep: number of newest checkpoints to keep, in addition to the best one.
          rank: score of a record; higher is better.
        """
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
