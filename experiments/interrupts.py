"""How a program ends early: Ctrl-C that is heard at once, and output that nobody reads.

Python tells its main thread alone of a signal, and only between two steps of Python, never
while JAX compiles or computes. So a thread listens as well: the main thread has a moment to end
by itself, and then the thread ends the process. It needs the standard library alone, so that a
program listens before its heavy imports.
"""

import atexit
import contextlib
import dataclasses
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator

_GRACE = 1.0  # Seconds that the main thread has to end by itself.
_SHOW_CURSOR = b"\x1b[?25h"


@dataclasses.dataclass
class _Now:
    """What the main thread is at.

    Attributes:
      outcome: what to say if it is interrupted now; None: nothing, another process says it.
      running: whether it expects a KeyboardInterrupt; otherwise the process just ends.
      patient: whether it stops by itself, however long that takes, after the first Ctrl-C.
      asked: whether somebody wants it to stop.
      raised: whether it got its KeyboardInterrupt.
      said: whether the sentence is out.
    """

    outcome: str | None = "not started"
    running: bool = False
    patient: bool = False
    asked: bool = False
    raised: bool = False
    said: bool = False


now = _Now()
_saying = threading.Lock()  # Whoever says the sentence; never released by what ends the process.


def listen() -> None:
    """Makes this process ready to be interrupted; for programs, before their heavy imports."""
    _open_streams()
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # Of a process in the background, which Ctrl-C is not for.
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _raise_once)
    sys.unraisablehook = _show_unraisable
    threading.Thread(target=_watch, args=(receiver,), daemon=True).start()
    atexit.register(_skip_destructors)  # As the first, so that it is called as the last.


def _open_streams() -> None:
    """Puts the null device in the place of closed streams, so that no file gets their numbers.

    What is printed is out at once, so that nothing is lost when the process ends, and with
    escapes for what cannot be printed.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or open(os.devnull, "w")  # noqa: SIM115
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
        setattr(sys, name, stream)


def _raise_once(number, frame) -> None:
    """Interrupts the main thread; all else is up to the thread that watches."""
    if now.running and not now.raised:
        now.raised = True
        raise KeyboardInterrupt


def _show_unraisable(problem) -> None:
    """Hides interruptions that fell where Python cannot raise them; the watch ends the process."""
    if not issubclass(problem.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(problem)


def _skip_destructors() -> None:
    """Ends an interrupted process, where XLA may still compile what its destructors destroy."""
    if now.said:
        _end()


def _watch(receiver: int) -> None:
    """Ends the process after a second Ctrl-C, or when the main thread has had its time."""
    seconds = None
    while select.select([receiver], [], [], seconds)[0]:
        number = os.read(receiver, 1)[0]
        if number == signal.SIGINT and (now.asked or not now.running):
            break
        if number in (signal.SIGINT, signal.SIGTERM):  # Of SIGTERM Python hears when it trains.
            now.asked, seconds = True, None if now.patient else _GRACE
    _end()


def _end() -> None:
    """Ends the process as it is, and leaves a terminal as it was."""
    _saying.acquire(timeout=_GRACE)
    if os.environ.get("TERM") not in ("dumb", "unknown"):
        for descriptor in filter(os.isatty, (1, 2)):
            _write(descriptor, _SHOW_CURSOR)
    _write(2, _sentence().encode(errors="backslashreplace"))
    os._exit(130)


def _write(descriptor: int, text: bytes) -> None:
    with contextlib.suppress(OSError):  # Nobody is there to be told.
        os.write(descriptor, text)


def _sentence() -> str:
    """What is to be said of an interruption, on a line below the ^C of a terminal."""
    if now.said or now.outcome is None:
        return ""
    return f"{chr(10) * os.isatty(2)}interrupted: {now.outcome}\n"


def say() -> None:
    """Says, once, that the program was interrupted and what came of it."""
    with _saying:
        print(_sentence(), end="", file=sys.stderr, flush=True)
        now.said = True


@contextlib.contextmanager
def running(outcome: str) -> Iterator[None]:
    """Lets Ctrl-C raise a KeyboardInterrupt inside the `with` block.

    Args:
      outcome: what to say of an interruption, until `now.outcome` is changed.
    """
    now.outcome, now.said, now.running = outcome, False, True
    try:
        yield
        now.outcome = "at the very end"
    finally:
        now.running = False


class Request:
    """Turns the first Ctrl-C or SIGTERM in its `with` block into a request to stop.

    Attributes:
      made: whether somebody made it.
    """

    made = False

    def __enter__(self):
        """Listens to both signals."""
        signals = (signal.SIGINT, signal.SIGTERM)
        self._previous = {number: signal.signal(number, self._handle) for number in signals}
        now.patient = True
        return self

    def _handle(self, number, frame):
        self.made = True
        self._restore()

    def __exit__(self, *exception):
        """Leaves the signals to whom they were before."""
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
