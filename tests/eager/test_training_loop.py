"""The training loop: the order of callbacks, and its end."""

import contextlib
import functools
import time

import numpy as np
import pytest

import azjax.program
from azjax.training.loop import Callback, Loop
from azjax.training.step import Metrics
from refusals import assert_refused


class Log(Callback):
    """Records the calls, and can change the loop."""

    def __init__(self, notes, name, at=None, **changes):
        self.notes, self.name, self.at, self.changes = notes, name, at, changes

    def on_start(self, loop):
        self.notes.append((self.name, "start", loop.iteration))

    def on_iteration(self, loop):
        self.notes.append((self.name, "iteration", loop.iteration, dict(loop.record.extra)))
        loop.add(**{self.name: float(loop.iteration)})
        if loop.iteration == self.at:
            for name, value in self.changes.items():
                setattr(loop, name, value)

    def on_end(self, loop):
        self.notes.append((self.name, "end", loop.iteration))

    def close(self):
        self.notes.append((self.name, "close"))


def make_loop(last, *callbacks, loss=1.0):
    """Returns a loop whose state is the number of iterations."""

    class State(int):
        iteration = property(int)

    def step(state):
        return State(state + 1), Metrics({"loss": np.float32(loss)}, np.float32(0), np.float32(0))

    return Loop(None, State(0), step, last, time.monotonic(), callbacks=callbacks)


@pytest.mark.parametrize("change", ["stop", "interrupted"])
def test_a_callback_ends_the_loop_after_the_iteration(change):
    """Callbacks run in order and see earlier metrics."""
    notes = []
    loop = make_loop(9, Log(notes, "a", 2, **{change: True}), Log(notes, "b"))
    with pytest.raises(KeyboardInterrupt) if change == "interrupted" else contextlib.nullcontext():
        loop.run()
    assert notes == [
        *[("a", "start", 0), ("b", "start", 0)],
        *[("a", "iteration", 1, {}), ("b", "iteration", 1, {"a": 1.0})],
        *[("a", "iteration", 2, {}), ("b", "iteration", 2, {"a": 2.0})],
        *([("a", "end", 2), ("b", "end", 2)] if change == "stop" else []),
        *[("b", "close"), ("a", "close")],
    ]


def test_metrics_that_are_not_finite_stop_the_loop_before_callbacks():
    notes, loop = [], make_loop(2)
    loop.run()
    assert_refused(
        (make_loop(2, Log(notes, "a"), loss=np.nan).run, "loss became nan in iteration 1, "),
        (functools.partial(loop.add, elo=float("inf")), "elo became inf"),
        (functools.partial(loop.add, elo=10**400), "elo became 1000"),
        (functools.partial(loop.update, value_error=np.nan), "value_error became nan"),
        error=FloatingPointError,
    )
    assert notes == [("a", "start", 0), ("a", "close")]


class Misspelled(Callback):
    def on_iterations(self, loop):
        pass


def test_callbacks_are_checked_before_anything_is_compiled(monkeypatch):
    monkeypatch.setattr(azjax.program, "open_run", None)
    wrong = [
        (Log([], "a"), "callbacks is of type Log: give a list"),
        ([Log([], "a"), Callback], "callbacks[1] is Callback: give an instance"),
        ([Misspelled()], "Misspelled.on_iterations is not an event...; did you mean on_iteration"),
    ]
    train = functools.partial(azjax.train, "tic_tac_toe")
    assert_refused(*((functools.partial(train, callbacks=given), said) for given, said in wrong))
