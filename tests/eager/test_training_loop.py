"""The training loop: the order of callbacks, and its end."""

import contextlib
import functools
import time

import numpy as np
import pytest

import azjax.program
from azjax.training.loop import Callback, Loop, check_callbacks
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


def test_callbacks_run_in_order_and_see_earlier_metrics():
    notes = []
    make_loop(2, Log(notes, "a"), Log(notes, "b")).run()
    assert notes == [
        *[("a", "start", 0), ("b", "start", 0)],
        *[("a", "iteration", 1, {}), ("b", "iteration", 1, {"a": 1.0})],
        *[("a", "iteration", 2, {}), ("b", "iteration", 2, {"a": 2.0})],
        *[("a", "end", 2), ("b", "end", 2), ("b", "close"), ("a", "close")],
    ]


@pytest.mark.parametrize("change", ["stop", "interrupted"])
def test_a_callback_ends_the_loop_after_the_iteration(change):
    notes = []
    loop = make_loop(9, Log(notes, "a", 3, **{change: True}), Log(notes, "b"))
    with pytest.raises(KeyboardInterrupt) if change == "interrupted" else contextlib.nullcontext():
        loop.run()
    assert ("b", "iteration", 3, {"a": 3.0}) in notes and loop.iteration == 3
    assert (("b", "end", 3) in notes) == (change == "stop")
    assert notes[-2:] == [("b", "close"), ("a", "close")]


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


class Argumentless(Callback):
    def on_end(self):
        pass


def test_callbacks_are_checked_before_anything_is_compiled(monkeypatch):
    monkeypatch.setattr(azjax.program, "open_run", None)
    wrong = [
        (Log([], "a"), "callbacks is of type Log: give a list"),
        ([Log([], "a"), Callback], "callbacks[1] is the class Callback: give an instance"),
        ([print], "callbacks[0] is print: give an instance of a subclass of Callback"),
        ([{"on_iteration": print}], "callbacks[0] is dict: "),
        ([Misspelled()], "Misspelled.on_iterations is not an event...; did you mean on_iteration"),
        ([Argumentless()], "Argumentless.on_end cannot be called: define on_end(self, loop)"),
    ]
    train = functools.partial(azjax.train, "tic_tac_toe")
    assert_refused(*((functools.partial(train, callbacks=given), said) for given, said in wrong))
    check_callbacks([Log([], "a"), Callback()])
