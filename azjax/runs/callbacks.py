"""Callbacks of a run: its metrics, its checkpoints, and Ctrl-C."""

import contextlib
from collections.abc import Callable
from typing import Any

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._files import Path
from azjax.runs import checkpoint
from azjax.training.loop import Callback, Loop
from azjax.training.metrics import Record


class Sink(Callback):
    """Hands every record to a function, such as a display or a file."""

    def __init__(self, open_sink: Callable[[Loop], Any]):
        """Takes `Loop -> sink`, called when the loop starts; a sink takes records, and closes."""
        self._open, self._sink = open_sink, None

    def on_start(self, loop: Loop) -> None:
        """Opens the sink."""
        self._sink = self._open(loop)

    def on_iteration(self, loop: Loop) -> None:
        """Hands over the record."""
        assert self._sink is not None
        self._sink(loop.record)

    def close(self) -> None:
        """Closes the sink, if it was opened."""
        if self._sink is not None:
            self._sink.close()


class Checkpoints(Callback):
    """Saves the state now and then, and after the last iteration."""

    everywhere = True

    def __init__(self, run_dir: Path, every: int, keep: int, rank: Callable[[Record], float]):
        """Saves into a run directory.

        Args:
          run_dir: the run directory.
          every: iterations between two checkpoints.
          keep: how many of the newest to keep, in addition to the best one.
          rank: of a record; the checkpoint with the highest is the best one.
        """
        self._run_dir, self._every, self._keep, self._rank = run_dir, every, keep, rank

    def on_iteration(self, loop: Loop) -> None:
        """Saves the state, if it is time."""
        if loop.is_last or loop.iteration % self._every == 0:
            checkpoint.save(self._run_dir, loop.state, self._rank(loop.record), self._keep)
            loop.tell("on_checkpoint")


class Interrupts(Callback):
    """Lets the iteration after Ctrl-C be the last one, in all processes."""

    everywhere = True

    def __init__(self):
        """Listens once the loop starts."""
        self._held = contextlib.ExitStack()

    def on_start(self, loop: Loop) -> None:
        """Listens."""
        self._request = self._held.enter_context(interrupts.Request())

    def on_iteration(self, loop: Loop) -> None:
        """Tells the loop."""
        (loop.interrupted,) = processes.any_of(self._request.made)

    def on_end(self, loop: Loop) -> None:
        """Leaves Ctrl-C to whatever comes after the training."""
        self.close()

    def close(self) -> None:
        """Leaves Ctrl-C to others."""
        self._held.close()
