"""Devices and processes of a training, without starting any; signals and streams."""

import dataclasses
import io
import os
import signal
import sys
import threading
import time
import types
from unittest.mock import Mock, call

import jax
import numpy as np
import pytest
from jax._src.distributed import global_state  # See `is_first`.

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax import program
from azjax.cli import console
from azjax.runs import Config, make_parts, presets
from azjax.training import LearnerConfig, SelfPlayConfig
from refusals import assert_refused


def test_jax_has_the_index_of_a_process_in_its_private_state():
    """No public function returns it before JAX starts."""
    assert global_state.process_id == 0


def test_processes_with_unequal_numbers_of_devices_are_rejected(monkeypatch):
    devices = [types.SimpleNamespace(process_index=index) for index in (0, 0, 1)]
    monkeypatch.setattr(jax, "devices", lambda: devices)
    assert_refused((processes.check_devices, "have [1, 2] devices: give each the same"))


@pytest.fixture
def others(monkeypatch):
    """Makes this the first of two processes; the other one has the given text and flag."""
    others = types.SimpleNamespace(text="", flag=False, sent=None)

    def gather(values):
        others.sent = values
        if values.dtype == bool:
            return np.stack([values, others.flag])
        text = others.text.encode().ljust(values.size, b"\0")
        return np.stack([values, np.frombuffer(text, np.uint8)])

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(processes.multihost_utils, "process_allgather", gather)
    return others


def test_requests_and_errors_reach_all_processes(others):
    assert not processes.any_of(False)
    others.flag = True
    assert processes.any_of(False)
    assert processes.in_all(lambda: 3) == 3
    others.text = "no room"
    with pytest.raises(processes.OtherProcessError, match="^no room$"):
        processes.in_all(lambda: 3)
    others.text = ""
    for error, sent in [(ValueError(), "ValueError"), (KeyError("name"), "'name'")]:
        with pytest.raises(type(error)):
            processes.in_all(Mock(side_effect=error))
        assert bytes(others.sent).rstrip(b"\0").decode() == sent
    assert processes.gather("i" + "ä" * 2000)[0] == "i" + "ä" * 511


def test_only_the_first_process_acts(others, monkeypatch):
    acted = []
    for index in (1, 0):
        monkeypatch.setattr(jax, "process_index", lambda index=index: index)
        processes.in_first(lambda: acted.append(jax.process_index()))
    assert acted == [0]


def test_options_that_differ_are_named(others, monkeypatch):
    texts = []
    monkeypatch.setattr(processes, "gather", lambda text: texts.append(text) or texts[-2:])
    processes.check_same({"seed": 3, "selfplay": "the same"})
    processes.check_same({"seed": 3, "selfplay": "the same"})
    with pytest.raises(ValueError, match="^selfplay of process 1 is not that of process 0: start"):
        processes.check_same({"seed": 3, "selfplay": "other"})


def test_a_lost_connection_ends_a_process_among_several(others):
    refused = pytest.raises(processes.OtherProcessEnded, match="another process ended")
    with refused as ended, processes.connected():
        raise RuntimeError("Gloo all-reduce failed")
    assert not isinstance(ended.value, Exception)
    with pytest.raises(KeyError), processes.connected():
        raise KeyError("a defect")


def test_the_others_wait_less_for_a_process_that_failed(monkeypatch, capfd):
    waits, fail = [], Mock(side_effect=KeyError("a defect"))
    thread = Mock(join=waits.append, is_alive=bool)
    monkeypatch.setattr(processes, "threading", Mock(Thread=lambda **given: thread))
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    programs = (lambda: 0), (lambda: 1), (lambda: 2), fail
    assert [*map(processes.run, programs)] == [0, 1, 2, 1]
    assert waits == [processes._LEAVES] * 2 + [processes._FAILS] * 2
    assert "a defect" in capfd.readouterr().err


# CPU devices.


def test_a_flag_or_variable_of_the_user_sets_the_number_of_cpu_devices(monkeypatch):
    fake = Mock()
    monkeypatch.setattr(processes, "jax", fake)
    flag = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    for number, variables in enumerate(({}, flag, {"JAX_NUM_CPU_DEVICES": "4"})):
        monkeypatch.setattr(processes.os, "environ", variables)
        processes.set_cpu_devices(number)
    assert fake.config.update.mock_calls == [call("jax_num_cpu_devices", 0)]


def test_shards_fit_the_devices_unless_they_are_fixed(monkeypatch, capfd):
    """The preset `mlp` has two shards."""
    devices = jax.local_devices()[:3]
    monkeypatch.setattr(jax, "devices", lambda: devices)

    def fit(fixed=False, **sections):
        config = dataclasses.replace(presets.get("mlp"), **sections)
        fitted, parts, mesh = program.fit_devices(config, make_parts(config), fixed)
        assert fitted.replay.shards == parts.replay.shards
        return fitted.replay.shards, mesh.size, capfd.readouterr().err

    *numbers, note = fit(fixed=True)
    assert numbers == [2, 2] and note.startswith("2 of 3 devices are used: no larger number")
    many = {"selfplay": SelfPlayConfig(games=48, unroll_length=4)}
    assert fit(**many, learner=LearnerConfig(batch_size=32))[:2] == (2, 2)  # 3 divides 48 only.
    many["learner"] = LearnerConfig(batch_size=96)
    assert fit(**many) == (3, 3, "3 devices: replay.shards 3 instead of 2\n")
    # Several processes use all devices, also for a resumed run, whose settings they must divide.
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    assert_refused((lambda: fit(fixed=True, **many), "replay.shards is 2"))


# Opening a run.


def test_a_run_uses_its_seed(monkeypatch):
    training, parts = Mock(), Mock(**{"game.enumerable": False})
    monkeypatch.setattr(program, "training", training)
    for seed in (7, 8):
        program._compile(dataclasses.replace(Config(), seed=seed), parts, None, 0, None)
    compiled = training.make_iteration.return_value.lower.return_value.compile.return_value
    assert program._compile(Config(), parts, None, 0, "restored") == ("restored", compiled, None)
    keys = [made.args[1] for made in training.make_state.mock_calls]
    assert keys == [jax.random.key(7), jax.random.key(8)]


# Signals and closed streams within a program.


@pytest.fixture
def handlers(monkeypatch):
    """The handlers with which programs start, even if the tests ignore signals."""
    first = dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    first[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in first.items()}
    monkeypatch.setattr(interrupts, "now", interrupts._Now())
    monkeypatch.setattr(interrupts, "_SAME", 0.02)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("numbers", "status"),
    [
        ([signal.SIGINT], 130),
        ([signal.SIGTERM], 143),
        ([signal.SIGTERM, signal.SIGTERM, signal.SIGHUP], 143),  # As of a system that shuts down.
        ([signal.SIGHUP, signal.SIGHUP, signal.SIGTERM], 129),  # As of a terminal that is closed.
    ],
)
def test_a_program_that_stops_by_itself_reports_the_first_signal(numbers, status, handlers, capfd):
    def program():
        with interrupts.Request() as request:
            for number in numbers:
                signal.raise_signal(number)
                time.sleep(interrupts._SAME)
        assert request.made
        raise KeyboardInterrupt

    assert console.run(program, "saved") == status
    assert capfd.readouterr().err == "interrupted: saved\n"


def test_a_second_ctrl_c_does_not_wait_but_one_signal_that_arrives_twice_does(handlers):
    with pytest.raises(KeyboardInterrupt), interrupts.Request():
        signal.raise_signal(signal.SIGHUP)
        time.sleep(interrupts._SAME)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it waited")
    interrupts._SAME = 60.0  # Restored with the fixture.
    try:
        with interrupts.Request() as request:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pytest.fail("it did not wait")
    assert request.made


def test_the_thread_ends_the_process_on_ctrl_c_unless_it_stops_by_itself(monkeypatch):
    """GNU's `timeout` sends a signal twice."""
    interrupt, request = bytes([signal.SIGINT]), bytes([signal.SIGTERM])
    for patient, same, arriving, count in (
        (False, 0.0, interrupt, 1),
        (False, 0.0, request, 0),
        (True, 0.0, interrupt, 0),
        (True, 0.0, 2 * request, 0),
        (True, 0.0, request + interrupt, 1),
        (True, 60.0, 2 * interrupt, 0),
    ):
        end, (receiver, sender) = Mock(), os.pipe()
        monkeypatch.setattr(interrupts, "now", interrupts._Now(patient=patient))
        monkeypatch.setattr(interrupts, "_SAME", same)
        monkeypatch.setattr(interrupts, "_end", end)
        os.write(sender, arriving)
        os.close(sender)
        with pytest.raises(IndexError):  # After the last signal.
            interrupts._watch(receiver)
        os.close(receiver)
        assert end.call_count == count and not interrupts.now.patient


def test_ignored_signals_stay_ignored_and_repeated_ones_do_not_end_a_program_that_ends(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # As `nohup` does.
    with interrupts.Request() as request:
        signal.raise_signal(signal.SIGHUP)
    assert not request.made and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    interrupts.now.listens = True
    with interrupts.Request() as request:
        signal.raise_signal(signal.SIGTERM)
        interrupts.now.patient = False  # As the thread does.
    signal.raise_signal(signal.SIGTERM)
    assert request.made and signal.getsignal(signal.SIGINT) == signal.default_int_handler


@pytest.mark.parametrize(("name", "shown"), [("xterm", 2), ("dumb", 0)])
def test_a_terminal_that_has_a_cursor_gets_it_back(handlers, monkeypatch, name, shown):
    system = Mock(environ={"TERM": name}, isatty=bool, dup=lambda number: 10 + number)
    monkeypatch.setattr(interrupts, "os", system)
    interrupts._end()
    cursors = [call(number, interrupts._SHOW_CURSOR) for number in (11, 12)][:shown]
    assert system.write.mock_calls == [*cursors, call(12, b"\ninterrupted: not started\n")]
    assert system.mock_calls[-1] == call._exit(130)


def test_an_outcome_is_printed_once(handlers, capfd):
    interrupts.print_outcome()
    interrupts.print_outcome()
    assert capfd.readouterr().err == "interrupted: not started\n"


def test_unprintable_characters_are_escaped(handlers, monkeypatch):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # No thread starts.
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    interrupts.listen()
    print("l\udce4ufe…")
    assert stream.buffer.getvalue() == rb"l\udce4ufe\u2026" + b"\n"


def test_a_program_that_stops_by_itself_waits_for_the_signal_thread(monkeypatch):
    """The thread may receive the signal late, and would then end the process."""
    now, heard = interrupts._Now(listens=True), []
    monkeypatch.setattr(interrupts, "now", now)

    def listen():
        heard.append(now.patient)
        now.patient = False

    with interrupts.Request() as request:
        thread = threading.Timer(0.1, listen)
        thread.start()
        signal.raise_signal(signal.SIGTERM)
    thread.join()
    assert request.made and heard == [True]
