"""Early termination of a program: after a signal, or when the reader of its output has exited.

Python runs signal handlers in the main thread, between two bytecode instructions. It runs none
while JAX compiles or computes. A second thread therefore waits for signals and ends the process.
This module imports only the standard library, so that a program can install it before its heavy
imports.
"""

import contextlib
import dataclasses
import io
import os
import signal
import sys
import threading
import time

_SHOW_CURSOR = b"\x1b[?25h"
# Ctrl-C, a request of the system, and a closed terminal. Windows has no SIGHUP.
_NAMES = "SIGINT", "SIGTERM", "SIGHUP"
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
_MAX_DELAY = 1.0  # Longest time to wait until the thread receives a signal, in seconds.
# Signals within this many seconds count as one: GNU's `timeout` signals a process, then its group.
_SAME = 0.1


@dataclasses.dataclass
class _Now:
    """The state of the program."""

    outcome: str | None = "not started"  # To print if it is interrupted now.
    patient: bool = False  # Whether it stops by itself after the next signal, after any time.
    signal: int = signal.SIGINT  # The one that stops it; its exit status is then 128 + `signal`.
    listens: bool = False  # Whether the thread waits for signals.
    started: float = dataclasses.field(default_factory=time.monotonic)  # Before heavy imports.


now = _Now()


def listen() -> None:
    """Starts the thread that ends this process after Ctrl-C, and sets up the output streams.

    Programs call it before their heavy imports.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # It was closed, and a file would take its place.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "w"))
    # Each line is printed immediately; characters outside the encoding become escapes.
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # Shells make background processes ignore Ctrl-C.
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda number, frame: None)  # The thread handles it.
    now.listens = True
    threading.Thread(target=_watch, args=(receiver,), daemon=True).start()


def _watch(receiver: int) -> None:
    """Ends the process after a Ctrl-C; if `now.patient`, after a Ctrl-C that follows a signal."""
    last = -_SAME
    while True:
        number = os.read(receiver, 1)[0]
        if number not in _SIGNALS:
            continue
        if now.patient:
            now.patient, last = False, time.monotonic()
        elif number == signal.SIGINT and time.monotonic() - last >= _SAME:
            _end()


def _end() -> None:
    """Ends the process immediately, and restores the cursor of a terminal."""
    sentence, outputs = _sentence(), [os.dup(1), os.dup(2)]
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)  # A spinner of the main thread may hide the cursor after this.
    said = [(outputs[1], sentence.encode(errors="backslashreplace"))]
    if os.environ.get("TERM") not in ("dumb", "unknown"):
        said = [(descriptor, _SHOW_CURSOR) for descriptor in filter(os.isatty, outputs)] + said
    for descriptor, text in said:
        with contextlib.suppress(OSError):  # The reader may be closed.
            os.write(descriptor, text)
    os._exit(130)


def _sentence() -> str:
    """Returns the outcome as a line, below the ^C of a terminal; empty on later calls."""
    outcome, now.outcome = now.outcome, None
    return f"{chr(10) * os.isatty(2)}interrupted: {outcome}\n" if outcome else ""


def print_outcome() -> None:
    """Prints that the program was interrupted, and its outcome."""
    with contextlib.suppress(OSError):  # The terminal may be closed.
        print(_sentence(), end="", file=sys.stderr, flush=True)


class Request:
    """Turns the first signal in its `with` block into a request to stop, which sets `made`.

    After it, only Ctrl-C ends the process immediately: the system may repeat the other signals, and
    closing a terminal sends several. Signals that are ignored, as by `nohup`, stay ignored.
    """

    made = False

    def __enter__(self):
        """Installs the handler of the signals."""
        handled = [n for n in _SIGNALS if signal.getsignal(n) not in (signal.SIG_IGN, None)]
        self._previous = {number: signal.signal(number, self._handle) for number in handled}
        now.patient = True
        return self

    def _handle(self, number, frame):
        if not self.made:
            self.made, self._time, now.signal = True, time.monotonic(), number
        elif number == signal.SIGINT and time.monotonic() - self._time >= _SAME:
            self._restore()
            signal.raise_signal(number)

    def __exit__(self, *exception):
        """Restores the previous handlers."""
        deadline = time.monotonic() + _MAX_DELAY
        # The thread must read the signal while `patient` is set; otherwise it ends the process.
        while self.made and now.listens and now.patient and time.monotonic() < deadline:
            time.sleep(0.001)
        now.patient = False
        self._restore()
        if self.made and now.listens:  # The program ends now: the system may repeat its signal.
            for number in self._previous.keys() - {signal.SIGINT}:
                signal.signal(number, signal.SIG_IGN)

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def discard_output() -> None:
    """Discards the output to streams that are closed: their terminal, or the reader of a pipe."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
