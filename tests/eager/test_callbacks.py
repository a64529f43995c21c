"""The training loop and its callbacks: their order, and matches during training."""

import contextlib
import errno
import functools
import pathlib
import signal
import threading
import time
import types
from unittest.mock import Mock

import numpy as np
import pytest

import azjax as az
import azjax.program
from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax.runs import CheckpointError
from azjax.runs.config import Plan
from azjax.training.loop import Callback, Loop
from azjax.training.step import Metrics
from refusals import assert_refused


class Log(Callback):
    """Records the calls."""

    def __init__(self, notes, name):
        self.notes, self.name = notes, name

    def on_start(self, loop):
        self.notes.append((self.name, "start", loop.iteration))

    def on_iteration(self, loop):
        self.notes.append((self.name, "iteration", loop.iteration, dict(loop.record.extra)))
        loop.add(**{self.name: float(loop.iteration)})

    def on_end(self, loop):
        self.notes.append((self.name, "end", loop.iteration))

    def close(self):
        self.notes.append((self.name, "close"))

    def __len__(self):
        return 0  # It is falsy.


def after(iteration, act):
    """Returns a callback that calls a function after this iteration."""
    callback = Callback()
    callback.on_iteration = lambda loop: act(loop) if loop.iteration == iteration else None
    return callback


def make_loop(last, *callbacks, loss=1.0):
    """Returns a loop whose state is the number of iterations."""

    class State(int):
        iteration = property(int)

    def step(state):
        return State(state + 1), Metrics({"loss": np.float32(loss)}, np.float32(0))

    return Loop(None, State(0), step, last, time.monotonic(), callbacks=callbacks)


@pytest.mark.parametrize("change", ["stop", "interrupted"])
def test_a_callback_ends_the_loop_after_the_iteration(change):
    """Callbacks run in order and see earlier metrics."""
    notes, end = [], after(2, lambda loop: setattr(loop, change, True))
    loop = make_loop(9, Log(notes, "a"), end, Log(notes, "b"))
    with pytest.raises(KeyboardInterrupt) if change == "interrupted" else contextlib.nullcontext():
        loop.run()
    assert notes == [
        *[("a", "start", 0), ("b", "start", 0)],
        *[("a", "iteration", 1, {}), ("b", "iteration", 1, {"a": 1.0})],
        *[("a", "iteration", 2, {}), ("b", "iteration", 2, {"a": 2.0})],
        *([("a", "end", 2), ("b", "end", 2)] if change == "stop" else []),
        *[("b", "close"), ("a", "close")],
    ]


def list_callbacks(*custom, **plan):
    """Lists the callbacks of a run that began at 0 seconds."""
    others = {"verification": None, "evaluation": Callback(), "certification": None}
    run = Mock(plan=Plan(**plan), started=0.0, run_dir=pathlib.Path(), **others)
    azjax.program.Run.train(run, custom, display=False)
    return run.loop.callbacks


def test_every_callback_is_called():
    """Also one that is falsy, or whose method was set on the instance."""
    notes, plain, empty = [], Callback(), Log([], "empty")
    plain.on_iteration = lambda loop: notes.append(loop.iteration)
    listed = list_callbacks(plain, empty)
    make_loop(2, *(each for each in listed if each in (plain, empty))).run()
    assert notes == [1, 2] and empty.notes[-1] == ("empty", "close")


@pytest.mark.parametrize(("limit", "iterations"), [(1, 1), (68.5, 2), (70.5, 3), (84, 4), (86, 5)])
def test_training_leaves_time_for_what_follows(limit, iterations, monkeypatch):
    """As much as it took to start, 30 seconds, and the longest iteration."""
    times = [30, 34, 35, 37, 46, 47]  # After each iteration.
    clock = types.SimpleNamespace(monotonic=lambda: times[loop.iteration])
    monkeypatch.setattr(azjax.callbacks, "time", clock)
    loop = make_loop(5, list_callbacks(max_minutes=limit / 60)[0])
    loop.run()
    assert loop.iteration == iterations


def test_training_stops_in_all_processes(monkeypatch):
    monkeypatch.setattr(processes, "any_of", lambda stop: True)  # Another one has set it.
    loop = make_loop(9)
    loop.run()
    assert loop.iteration == 1


def test_metrics_that_are_not_finite_stop_the_loop_before_callbacks():
    notes, loop = [], make_loop(2)
    loop.run()
    assert_refused(
        (make_loop(2, Log(notes, "a"), loss=np.nan).run, "loss became nan in iteration 1, "),
        (functools.partial(loop.add, elo=float("inf")), "elo became inf"),
        (functools.partial(loop.add, elo=10**400), "elo became 1000"),
        error=FloatingPointError,
    )
    assert notes == [("a", "start", 0), ("a", "close")]


def test_a_closed_pipe_ends_training_and_a_closed_terminal_does_not(monkeypatch):
    monkeypatch.setattr(interrupts, "now", interrupts._Now())
    for number, ends in ((errno.EIO, False), (errno.EPIPE, True)):
        loop = types.SimpleNamespace(record=None, interrupted=False)
        az.callbacks.Printer(Mock(side_effect=OSError(number, "closed"))).on_iteration(loop)
        assert loop.interrupted == ends == (interrupts.now.signal == signal.SIGPIPE)


# Checkpoints.


@pytest.fixture
def saved(monkeypatch):
    """Stands for the files of checkpoints; writing waits until it is `free`, or raises `error`."""
    saved = types.SimpleNamespace(names=[], error=None, free=threading.Event())
    saved.free.set()

    def write(run_dir, iteration, keep):
        assert saved.free.wait(60)
        if saved.error:
            raise saved.error
        saved.names.append(iteration)

    monkeypatch.setattr(azjax.callbacks.checkpoint, "copy", int)
    monkeypatch.setattr(azjax.callbacks.checkpoint, "write", write)
    return saved


def saving(every):
    return az.callbacks.Checkpoints("run", every, 3)


@pytest.mark.parametrize("ends", ["stop", "interrupted"])
def test_training_goes_on_while_a_checkpoint_is_written_and_ends_after_the_last(saved, ends):
    saved.free.clear()
    names, at_end = [], []

    def release(loop):
        names.extend(saved.names)
        saved.free.set()

    def end(loop):
        saved.free.clear()
        setattr(loop, ends, True)
        threading.Timer(0.2, saved.free.set).start()

    ending = after(5, end)
    ending.on_end = lambda loop: at_end.extend(saved.names)
    loop = make_loop(9, after(3, release), ending, saving(2))
    with pytest.raises(KeyboardInterrupt) if ends == "interrupted" else contextlib.nullcontext():
        loop.run()
    assert names == [] and saved.names == [2, 4, 5]
    assert at_end == ([2, 4, 5] if ends == "stop" else [])


def test_errors_of_the_thread_are_raised_or_printed(saved, capfd):
    saved.error = CheckpointError("the disk is full")
    loop = make_loop(9, saving(2))
    with pytest.raises(CheckpointError, match="the disk is full"):
        loop.run()
    assert loop.iteration <= 4 and capfd.readouterr().err == ""
    saved.free.clear()
    release = after(3, lambda loop: saved.free.set())
    fail = after(3, Mock(side_effect=FloatingPointError("the loss became nan")))
    with pytest.raises(FloatingPointError):
        make_loop(9, release, fail, saving(2)).run()
    assert capfd.readouterr().err == "the disk is full\n" and saved.names == []


def test_by_default_there_is_at_most_one_checkpoint_a_minute(saved, monkeypatch):
    now = types.SimpleNamespace(monotonic=lambda: 2.5 * loop.iteration)
    monkeypatch.setattr(azjax.callbacks, "time", now)
    loop = make_loop(75, saving(0))
    loop.run()
    assert saved.names == [10, 40, 70, 75]
    monkeypatch.setattr(processes, "any_of", lambda is_early: True)  # It is in another process.
    assert not saving(0)._is_due(10) and saving(10)._is_due(10)
