"""The training loop and its callbacks.

The loop calls `on_start`, then `on_iteration` after each iteration, `on_end` after the last
iteration, and `close` in any case. `callbacks.Checkpoints` calls `on_checkpoint`.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax.sharding import Mesh

from azjax import _processes as processes
from azjax._settings import did_you_mean
from azjax.training.mesh import compiled, make_iteration, make_mesh, make_state, one_copy
from azjax.training.metrics import Record, make_record
from azjax.training.parts import Parts
from azjax.training.step import Metrics, TrainState


def iterate(
    parts: Parts, key: jax.Array, mesh: Mesh | None = None
) -> Iterator[tuple[TrainState, Metrics]]:
    """Trains indefinitely: yields the state and the metrics after each iteration.

    The state is donated to the next iteration, which overwrites its arrays. Copy what you keep, for
    example with `jax.tree.map(jnp.copy, state.learner.average)`. The mesh has all devices by
    default.
    """
    mesh = make_mesh() if mesh is None else mesh
    state = make_state(parts, key, mesh)
    step = compiled(make_iteration(parts, mesh), state)
    while True:
        state, metrics = step(state)
        yield state, metrics


class Callback:
    """Base class of callbacks; override the methods that you need.

    A callback reads `loop.record` and `loop.state`, adds metrics with `loop.add`, and ends training
    with `loop.stop = True`. The loop calls the callbacks in order, so later ones see the metrics of
    earlier ones. With several processes, only process 0 calls them, unless `everywhere` is True.

    Example:
      >>> class StopBelow(Callback):
      ...     def __init__(self, threshold):
      ...         self.threshold = threshold
      ...
      ...     def on_iteration(self, loop):
      ...         loop.add(excess=loop.record.losses["loss"] - self.threshold)
      ...         if loop.record.extra["excess"] < 0:
      ...             loop.stop = True
    """

    everywhere = False

    def on_start(self, loop: "Loop") -> None:
        """Runs before the first iteration; `loop.state` is the initial or restored state."""

    def on_iteration(self, loop: "Loop") -> None:
        """Runs after each iteration."""

    def on_checkpoint(self, loop: "Loop") -> None:
        """Runs once a checkpoint is saved, which may be some iterations later."""

    def on_end(self, loop: "Loop") -> None:
        """Runs after the last iteration, but not after an exception or Ctrl-C."""

    def close(self) -> None:
        """Releases resources; always runs at the end, even after an exception."""


def check_callbacks(callbacks: Sequence[Callback]) -> None:
    """Refuses callbacks that the loop would not call, before anything compiles."""
    events = [name for name in vars(Callback) if name.startswith("on_")]
    for index, callback in enumerate(callbacks):
        if not isinstance(callback, Callback):
            raise ValueError(f"callbacks[{index}] is {callback!r}: give an instance of a Callback")
        for method in {name for name in dir(callback) if name.startswith("on_")} - {*events}:
            if meant := did_you_mean(method, events):
                kind = type(callback).__name__
                raise ValueError(f"{kind}.{method} is not an event of the training loop{meant}")


@dataclasses.dataclass
class Loop:
    """A training run in progress, as passed to callbacks."""

    parts: Parts  # The components of training.
    # The state after the last iteration. It is donated to the next one: copy what you keep.
    state: TrainState
    # One compiled iteration, `state -> (state, Metrics)`.
    step: Callable[[TrainState], tuple[TrainState, Metrics]]
    max_iterations: int  # Number of the last iteration.
    started: float  # The `time.monotonic()` from which `record.seconds` counts.
    # Metrics of the last iteration; callbacks add to it with `add`.
    record: Record = Record(iteration=0, seconds=0.0, games=0, games_per_second=0.0, losses={})
    stop: bool = False  # Set it to True to end training after this iteration.
    interrupted: bool = False  # Set it to True to end training with a `KeyboardInterrupt`.
    callbacks: Sequence[Callback] = ()  # The callbacks, in the order in which they are called.

    @property
    def iteration(self) -> int:
        """The number of completed iterations."""
        return int(self.state.iteration)

    @property
    def average(self) -> Any:
        """The averaged variables, on one device of this process; part of `state`, not a copy."""
        return one_copy(self.state.learner.average)

    @property
    def is_last(self) -> bool:
        """Whether training ends after this iteration."""
        return self.stop or self.interrupted or self.iteration >= self.max_iterations

    def add(self, **metrics: Any) -> None:
        """Adds metrics to the record: finite scalars of Python, NumPy or JAX, by name."""
        self.record = self.record.add(**metrics)
        self.record.check_finite()

    def run(self) -> None:
        """Trains until a callback sets `stop`, or for `max_iterations`."""
        with contextlib.ExitStack() as stack:
            for callback in self.callbacks:
                stack.callback(callback.close)
            self.tell("on_start")
            while not self.is_last:
                before = time.monotonic()
                with processes.connected():
                    self.state, measured = self.step(self.state)
                    self.record = make_record(self.iteration, measured, before, self.started)
                self.record.check_finite()
                self.tell("on_iteration")
                self.stop = processes.any_of(self.stop)  # Process 0 may have set it.
            if self.interrupted:
                raise KeyboardInterrupt
            self.tell("on_end")

    def tell(self, event: str) -> None:
        """Calls a method of every callback that overrides it."""
        for callback in self.callbacks:
            method: Any = getattr(callback, event)
            if callback.everywhere:
                method(self)
            elif getattr(method, "__func__", method) is not getattr(Callback, event):
                processes.in_first(lambda method=method: method(self))
