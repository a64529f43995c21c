"""The training loop: one iteration after the other, and the callbacks that listen to it.

run.on_start -> [iteration -> on_iteration -> (on_checkpoint)] ... -> on_end
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax.sharding import Mesh

from azjax import _processes as processes
from azjax.training.metrics import Record, make_record
from azjax.training.parts import Parts
from azjax.training.sharding import compiled, make_iteration, make_mesh, make_state, one_copy
from azjax.training.step import Metrics, TrainState


def iterate(
    parts: Parts, key: jax.Array, mesh: Mesh | None = None
) -> Iterator[tuple[TrainState, Metrics]]:
    """Trains without end: yields the state and the metrics after each iteration.

    The next iteration overwrites the buffers of the state that was yielded last: copy what you
    keep, for instance `one_copy(state.learner.ema_params)`.

    Args:
      parts: what is trained.
      key: of the run, a single typed key.
      mesh: the devices that share the games; all, by default.

    Raises:
      ValueError: if the parts contradict each other or the number of devices.
    """
    mesh = make_mesh() if mesh is None else mesh
    state = make_state(parts, key, mesh)
    step = compiled(make_iteration(parts, mesh), state)
    while True:
        state, metrics = step(state)
        yield state, metrics


class Callback:
    """Listens to a training loop. Subclasses define the methods that they need.

    The loop calls the callbacks in their order: what one adds to `loop.record`, those after it
    find there. Of several processes, process 0 alone calls them, unless `everywhere` is True.
    """

    everywhere = False

    def on_start(self, loop: "Loop") -> None:
        """Is called before the first iteration, with the state to start from."""

    def on_iteration(self, loop: "Loop") -> None:
        """Is called after each iteration, with its state and record."""

    def on_checkpoint(self, loop: "Loop") -> None:
        """Is called after a checkpoint was saved."""

    def on_end(self, loop: "Loop") -> None:
        """Is called after the last iteration, unless an exception or Ctrl-C ended the training."""

    def close(self) -> None:
        """Releases what the callback holds; is called however the training ends."""


@dataclasses.dataclass
class Loop:
    """A training in progress, as callbacks see it.

    Attributes:
      parts: what is trained.
      state: after the last iteration. The next one overwrites its buffers.
      step: one iteration, compiled: `state -> (state, Metrics)`.
      max_iterations: the training stops after this iteration at the latest.
      started: the `time.time()` from which the run's seconds count.
      record: of the last iteration, empty before the first; callbacks add to it by `add`.
      stop: set by a callback to end the training after this iteration.
      interrupted: set by a callback to end it with `KeyboardInterrupt`.
      callbacks: in the order in which they are called.
    """

    parts: Parts
    state: TrainState
    step: Callable[[TrainState], tuple[TrainState, Metrics]]
    max_iterations: int
    started: float
    record: Record = Record(iteration=0, seconds=0.0, games=0, games_per_second=0.0, losses={})
    stop: bool = False
    interrupted: bool = False
    callbacks: Sequence[Callback] = ()

    @property
    def iteration(self) -> int:
        """The number of iterations made."""
        return int(self.state.iteration)

    @property
    def average(self) -> Any:
        """The averaged parameters, on one device of this process."""
        return one_copy(self.state.learner.ema_params)

    @property
    def is_last(self) -> bool:
        """Whether the training ends after this iteration."""
        return self.stop or self.interrupted or self.iteration >= self.max_iterations

    def add(self, **metrics: Any) -> None:
        """Adds metrics to the record of this iteration.

        Raises:
          FloatingPointError: if one is NaN or infinite.
        """
        self.record = self.record.add(**metrics)
        self.record.check_finite()

    def run(self) -> None:
        """Trains until `stop` is set or `max_iterations` are made.

        Raises:
          FloatingPointError: if a metric is NaN or infinite.
          KeyboardInterrupt: if a callback set `interrupted`, after the callbacks of that iteration.
        """
        with contextlib.ExitStack() as stack:
            for callback in self.callbacks:
                stack.callback(callback.close)
            self.tell("on_start")
            while not self.is_last:
                before = time.time()
                self.state, measured = self.step(self.state)
                self.record = make_record(self.iteration, measured, before, self.started)
                self.record.check_finite()
                self.tell("on_iteration")
            if self.interrupted:
                raise KeyboardInterrupt
            self.tell("on_end")

    def tell(self, event: str) -> None:
        """Calls a method of every callback."""
        for callback in self.callbacks:
            method: Any = getattr(callback, event)
            if callback.everywhere:
                method(self)
            elif getattr(type(callback), event) is not getattr(Callback, event):
                processes.in_first(lambda method=method: method(self))
