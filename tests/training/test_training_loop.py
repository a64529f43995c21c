"""The training loop: records, order of callbacks, and its end."""

import contextlib
import dataclasses
import errno
import functools
import itertools
import os
import re
import signal
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.program
from azjax import _interrupts as interrupts
from azjax import training
from azjax.callbacks import Interrupts, Output
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.training.loop import Callback, Loop, iterate
from azjax.training.metrics import JsonLines, make_record, rank, read_records
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
    record = dataclasses.replace(record, blunders=11, errors={"error/few": 0.5}).add(elo=3.0)
    assert (record.blunders, record.as_dict()["error/few"]) == (11, 0.5)
    assert record.extra == {"elo": 3.0} and record.as_dict()["elo"] == 3.0


@pytest.mark.parametrize("known", [True, False])
def test_checkpoints_rank_by_blunders_then_loss(known):
    def ranked(blunders, loss, always_examined=True):
        measured = MEASURED._replace(losses=LOSSES | {"loss": jnp.float32(loss)})
        record = make_record(1, measured, time.monotonic(), time.monotonic())
        record = dataclasses.replace(record, blunders=blunders if known else None)
        return rank(record, always_examined)

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


NUMBERS = [3, 0.5, True, np.int8(2), np.float32(0.5), np.float64(2.0), np.array(3), np.bool_(1)]
NUMBERS += [jnp.float32(0.25), jnp.bfloat16(0.5), jnp.array(7), jnp.array(True)]
NOT_ADDED = [
    ({"elo": "high"}, ValueError, "elo is of type str: add one number"),
    ({"elo": None}, ValueError, "elo is of type NoneType"),
    ({"elo": [1.0]}, ValueError, "elo is of type list"),
    ({"elo": np.ones(1)}, ValueError, "elo is of type ndarray with shape (1,)"),
    ({"elo": jnp.ones((2, 3))}, ValueError, "with shape (2, 3): add one number"),
    ({"elo": 1j}, ValueError, "elo is of type complex"),
    ({"elo": np.complex64(1)}, ValueError, "elo is of type complex64"),
    ({"elo": np.datetime64(1, "s")}, ValueError, "elo is of type datetime64"),
    ({"elo": jax.random.key(0)}, ValueError, "with shape ()"),
    ({"elo": 10**400}, FloatingPointError, "elo became 1000"),
    (
        {"elo": np.float64("nan")},
        FloatingPointError,
        "leave this metric out of iterations in",
    ),
    *[({name: 1.0}, ValueError, f"has a metric {name} already") for name in ("loss", "another")],
    *[({name: 1}, ValueError, "by another name") for name in ("iteration", "seconds", "games")],
    *[({name: 1}, ValueError, "by another name") for name in ("extra", "losses", "blunders")],
    ({"error/few": 1}, ValueError, "has a metric error/few already"),
]


def test_only_scalars_with_new_names_are_added(tmp_path):
    loop = make_loop(2)
    loop.record = make_record(1, MEASURED, 0.0, 0.0)
    loop.update(errors={"error/few": 0.5})
    for metrics, error, sentence in NOT_ADDED:
        with pytest.raises(error, match=re.escape(sentence)):
            dataclasses.replace(loop).add(**metrics)
    loop.add(**{f"number_{index}": number for index, number in enumerate(NUMBERS)})
    assert {type(number) for number in loop.record.extra.values()} == {int, float}
    assert list(loop.record.extra.values()) == [float(number) for number in NUMBERS]
    sink = JsonLines(tmp_path / "metrics.jsonl")
    sink(loop.record)
    sink.close()
    assert read_records(tmp_path / "metrics.jsonl") == [loop.record.as_dict()]


class Misspelled(Callback):
    def on_iterations(self, loop):
        pass


class Argumentless(Callback):
    def on_end(self):
        pass


NO_CALLBACKS = [
    (Log([], "a"), "callbacks is of type Log: give a list"),
    ([Log([], "a"), Callback], "callbacks[1] is the class Callback: give an instance"),
    ([print], "callbacks[0] is print: give an instance of a subclass of Callback"),
    ([{"on_iteration": print}], "callbacks[0] is dict: "),
    ([Misspelled()], "Misspelled.on_iterations is not an event of the training loop; did you mean"),
    ([Argumentless()], "Argumentless.on_end cannot be called: define on_end(self, loop)"),
]


def test_callbacks_are_checked_before_anything_is_compiled(monkeypatch):
    monkeypatch.setattr(azjax.program, "open_run", None)
    for callbacks, sentence in NO_CALLBACKS:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            azjax.train("tic_tac_toe", callbacks=callbacks)
