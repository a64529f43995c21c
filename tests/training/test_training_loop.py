"""The training loop: records, order of callbacks, and its end."""

import contextlib
import errno
import functools
import itertools
import os
import signal
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import _interrupts as interrupts
from azjax import training
from azjax.runs import presets
from azjax.runs.callbacks import Interrupts, Output
from azjax.runs.config import make_parts
from azjax.training.loop import Callback, Loop, iterate
from azjax.training.metrics import make_record, rank
from azjax.training.step import Metrics

NAMES = ("loss", "value_loss", "policy_loss", "policy_kl", "l2", "grad_norm", "another")
LOSSES = dict(sorted(zip(NAMES, jnp.arange(1.0, 8.0), strict=True)))  # In the order of XLA.
MEASURED = Metrics(LOSSES, games=jnp.float32(40), moves=jnp.float32(90))
PARTS = make_parts(presets.smoke(presets.get("default")))


def test_a_record_has_every_metric():
    now = time.monotonic()
    record = make_record(9, MEASURED, before=now - 2, started=now - 30)
    assert list(record.losses.items()) == list(zip(NAMES, range(1, 8), strict=True))
    assert (record.iteration, record.games) == (9, 40)
    assert 15 < record.games_per_second <= 20 and 30 <= record.seconds < 40
    record = record.add(blunders=11, errors={"error/few": 0.5}).add(elo=3.0)
    assert (record.blunders, record.as_dict()["error/few"]) == (11, 0.5)
    assert record.extra == {"elo": 3.0} and record.as_dict()["elo"] == 3.0


@pytest.mark.parametrize("known", [True, False])
def test_checkpoints_rank_by_blunders_then_loss(known):
    def ranked(blunders, loss, always_examined=True):
        measured = MEASURED._replace(losses=LOSSES | {"loss": jnp.float32(loss)})
        record = make_record(1, measured, time.monotonic(), time.monotonic())
        return rank(record.add(blunders=blunders if known else None), always_examined)

    assert ranked(0, 0.5) > ranked(0, 0.6)
    assert (ranked(0, 9.0) > ranked(1, 0.1)) == known
    assert ranked(0, 9.0, False) < ranked(1, 0.1, False)


class Log(Callback):
    """Records the calls, and can end the loop."""

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
        losses = {"loss": jnp.float32(loss)}
        return State(state + 1), Metrics(losses, jnp.float32(0), jnp.float32(0))

    return Loop(PARTS, State(0), step, last, time.monotonic(), callbacks=callbacks)


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
    if change == "stop":
        loop.run()
    else:
        with pytest.raises(KeyboardInterrupt):
            loop.run()
    assert ("b", "iteration", 3, {"a": 3.0}) in notes and loop.iteration == 3
    assert (("b", "end", 3) in notes) == (change == "stop")
    assert notes[-2:] == [("b", "close"), ("a", "close")]


def test_a_clock_that_is_set_back_or_stands_still_changes_nothing(monkeypatch):
    backward = itertools.count(time.time(), -3600)
    monkeypatch.setattr(time, "time", lambda: next(backward))
    loop = make_loop(2)
    loop.run()
    assert loop.record.seconds >= 0 and loop.record.games_per_second >= 0
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    record = make_record(1, MEASURED, before=7.0, started=7.0)
    assert record.seconds == 0 and np.isfinite(record.games_per_second)


def test_output_that_is_closed_loses_no_iteration(monkeypatch):
    """A pipe whose reader has exited ends the training; a closed terminal does not."""
    monkeypatch.setattr(interrupts, "now", now := interrupts._Now())
    for number, ends in ((errno.EPIPE, True), (errno.ENOSPC, True), (errno.EIO, False)):

        def fail(record, number=number):
            raise OSError(number, os.strerror(number))

        fail.close = functools.partial(fail, None)
        notes = []
        loop = make_loop(3, Output(lambda loop, fail=fail: fail), Interrupts(), Log(notes, "saved"))
        with pytest.raises(KeyboardInterrupt) if ends else contextlib.nullcontext():
            loop.run()
        assert ("saved", "iteration", loop.iteration, {}) in notes
        assert (loop.iteration, now.signal) == ((1, signal.SIGPIPE) if ends else (3, signal.SIGINT))
        now.signal = signal.SIGINT


def test_metrics_that_are_not_finite_stop_the_loop_before_callbacks():
    notes = []
    said = "loss became nan in iteration 1, .*: start a new run with a lower learner.learning_rate"
    with pytest.raises(FloatingPointError, match=said):
        make_loop(2, Log(notes, "a"), loss=jnp.nan).run()
    assert notes == [("a", "start", 0), ("a", "close")]
    loop = make_loop(2)
    loop.record = make_record(1, MEASURED, 0.0, 0.0)
    with pytest.raises(FloatingPointError, match="elo became inf"):
        loop.add(elo=float("inf"))


def test_iterate_makes_the_same_iterations():
    mesh = training.make_mesh(jax.devices()[:1])
    state = training.make_state(PARTS, jax.random.key(3), mesh)
    step = training.compiled(training.make_iteration(PARTS, mesh), state)
    iterations = iterate(PARTS, jax.random.key(3), mesh)
    for number in (1, 2):
        found, metrics = next(iterations)
        state, expected = step(state)
        assert found.iteration == number
        jax.tree.map(np.testing.assert_array_equal, metrics, expected)
        jax.tree.map(np.testing.assert_array_equal, found.learner, state.learner)
