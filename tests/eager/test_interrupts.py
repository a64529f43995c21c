"""Signals and closed streams within a program."""

import io
import os
import signal
import sys
import threading
import time
import types

import pytest

from azjax import _interrupts as interrupts
from azjax.cli import console

# Signals while a program can stop by itself, in the order of their arrival; then its exit status.
ARRIVALS = [
    ([signal.SIGINT], 130),
    ([signal.SIGTERM], 143),
    ([signal.SIGTERM, signal.SIGTERM, signal.SIGHUP], 143),  # As of a system that shuts down.
    ([signal.SIGHUP, signal.SIGHUP, signal.SIGTERM], 129),  # As of a terminal that is closed.
]


@pytest.fixture
def handlers(monkeypatch):
    """The handlers with which programs start, even if the tests ignore signals."""
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    monkeypatch.setattr(interrupts, "now", interrupts._Now())
    monkeypatch.setattr(interrupts, "_SAME", 0.02)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_program_that_stops_by_itself_reports_the_first_signal(handlers, capfd):
    for numbers, status in ARRIVALS:

        def program(numbers=numbers):
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
        ends, (receiver, sender) = [], os.pipe()
        monkeypatch.setattr(interrupts, "now", interrupts._Now(patient=patient))
        monkeypatch.setattr(interrupts, "_SAME", same)
        monkeypatch.setattr(interrupts, "_end", lambda ends=ends: ends.append(1))
        os.write(sender, arriving)
        os.close(sender)
        with pytest.raises(IndexError):  # After the last signal.
            interrupts._watch(receiver)
        os.close(receiver)
        assert len(ends) == count and not interrupts.now.patient


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
    written, descriptors = [], iter(range(11, 14))
    system = types.SimpleNamespace(
        dup=lambda number: next(descriptors),
        open=lambda path, flags: next(descriptors),
        dup2=lambda number, place: None,
        isatty=lambda number: True,
        write=lambda number, text: written.append((number, text)),
        _exit=written.append,
        environ={"TERM": name},
        **{constant: getattr(os, constant) for constant in ("devnull", "O_WRONLY")},
    )
    monkeypatch.setattr(interrupts, "os", system)
    interrupts._end()
    cursors = [(number, interrupts._SHOW_CURSOR) for number in (11, 12)][:shown]
    assert written == [*cursors, (12, b"\ninterrupted: not started\n"), 130]


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
        time.sleep(0.1)
        heard.append(now.patient)
        now.patient = False

    with interrupts.Request() as request:
        thread = threading.Thread(target=listen)
        thread.start()
        signal.raise_signal(signal.SIGTERM)
    thread.join()
    assert request.made and heard == [True]
