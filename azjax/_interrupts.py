"""How a program ends early: Ctrl-C that is heard at once, and output that nobody reads.

Python tells its main thread alone of a signal, and only between two steps of Python, never
while JAX compiles or computes. So a thread listens, and ends the process. It needs the standard
library alone, so that a program listens before its heavy imports.
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
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LATE = 1.0  # Seconds, after which the thread that listens has heard of a signal.
_AT_ONCE = 0.1  # Seconds. GNU's `timeout` signals a process, and its group right after.


@dataclasses.dataclass
class _Now:
    """What the program is at.

    Attributes:
      outcome: what to say if it is interrupted now; None: nothing, or another process says it.
      patient: whether it stops by itself, however long that takes, after the next Ctrl-C.
      listens: whether a thread hears of signals.
      started: the `time.time()` when the program began, before its heavy imports.
    """

    outcome: str | None = "not started"
    patient: bool = False
    listens: bool = False
    started: float = dataclasses.field(default_factory=time.time)


now = _Now()


def listen() -> None:
    """Makes this process ready to be interrupted; for programs, before their heavy imports."""
    for stream in (sys.stdout, sys.stderr):  # What is printed is out at once, and nothing fails.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # Of a process in the background, which Ctrl-C is not for.
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda number, frame: None)  # The thread does what is to be done.
    now.listens = True
    threading.Thread(target=_watch, args=(receiver,), daemon=True).start()


def _watch(receiver: int) -> None:
    """Ends the process after Ctrl-C, if it does not stop by itself; then after the second."""
    heard = -_AT_ONCE
    while True:
        if os.read(receiver, 1)[0] not in _SIGNALS:
            continue
        if now.patient:
            now.patient, heard = False, time.monotonic()
        elif time.monotonic() - heard >= _AT_ONCE:
            _end()


def _end() -> None:
    """Ends the process as it is, and leaves a terminal as it was."""
    if os.environ.get("TERM") not in ("dumb", "unknown"):
        for descriptor in filter(os.isatty, (1, 2)):
            _write(descriptor, _SHOW_CURSOR)
    _write(2, _sentence().encode(errors="backslashreplace"))
    os._exit(130)


def _write(descriptor: int, text: bytes) -> None:
    with contextlib.suppress(OSError):  # Nobody is there to be told.
        os.write(descriptor, text)


def _sentence() -> str:
    """What is to be said of an interruption, once, on a line below the ^C of a terminal."""
    outcome, now.outcome = now.outcome, None
    return f"{chr(10) * os.isatty(2)}interrupted: {outcome}\n" if outcome else ""


def say() -> None:
    """Says that the program was interrupted and what came of it."""
    print(_sentence(), end="", file=sys.stderr, flush=True)


class Request:
    """Turns the first Ctrl-C or SIGTERM in its `with` block into a request to stop.

    Attributes:
      made: whether somebody made it.
    """

    made = False

    def __enter__(self):
        """Listens to both signals."""
        self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        now.patient = True
        return self

    def _handle(self, number, frame):
        if not self.made:
            self.made, self._heard = True, time.monotonic()
        elif time.monotonic() - self._heard >= _AT_ONCE:
            self._restore()
            signal.raise_signal(number)

    def __exit__(self, *exception):
        """Leaves the signals to whom they were before."""
        deadline = time.monotonic() + _LATE
        while self.made and now.listens and now.patient and time.monotonic() < deadline:
            time.sleep(0.001)  # Else the thread, which may be late, would end the process.
        now.patient = False
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def discard_output() -> None:
    """Sends to the null device what the streams that nobody reads still hold."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
