"""A process in a real terminal, for tests of what the terminal shows."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pyte

_PATIENCE = 200  # Seconds after which a test fails because its process hangs.

# Makes the terminal the controlling terminal of the process, so that Ctrl-C and the end of the
# terminal reach it even if the tests ignore them, as in the background of a script or under nohup.
_OWN = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Terminal:
    """Python in a new terminal; a context manager that ends the process."""

    def __init__(self, command, environment, columns=100, rows=60):
        self.master, self.terminal = pty.openpty()
        self.display = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.display)
        self.resize(columns, rows)
        self.settings = termios.tcgetattr(self.terminal)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN, *command],
            env=environment,
            start_new_session=True,
            **dict.fromkeys(["stdin", "stdout", "stderr"], self.terminal),
        )
        self.raw, self._read = b"", 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        for descriptor in filter(None, (self.master, self.terminal)):
            os.close(descriptor)

    def type(self, text, after="your move: "):
        """Types a line, or one control character, once the program has shown something."""
        self.wait_for(after)
        os.write(self.master, text if text in (b"\x03", b"\x04") else text + b"\n")

    def wait_for(self, text):
        deadline = time.monotonic() + _PATIENCE
        while (found := self.screen.find(text, self._read)) < 0:
            assert time.monotonic() < deadline and self.process.poll() is None, self.screen
            self._take()
        self._read = found + len(text)

    def resize(self, columns, rows):
        """Changes the size; the program receives SIGWINCH."""
        self.display.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def _take(self):
        """Reads what has arrived within 0.2 s; returns whether there can be more."""
        if not select.select([self.master], [], [], 0.2)[0]:
            return True
        try:
            piece = os.read(self.master, 65536)
        except OSError:  # Everything was read, and no process has the terminal open.
            return False
        self.raw += piece
        self._stream.feed(piece)
        return bool(piece)

    @property
    def shown(self):
        """What the screen shows, after all cursor movements."""
        return "\n".join(map(str.rstrip, self.display.display))

    @property
    def screen(self):
        plain = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", self.raw)
        return plain.decode(errors="replace").replace("\r\n", "\n")

    def finish(self):
        """Waits for the end and returns the exit status; checks that the terminal is restored."""
        deadline = time.monotonic() + _PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.screen
            self._take()
        assert termios.tcgetattr(self.terminal) == self.settings
        os.close(self.terminal)  # Reading the output now ends.
        self.terminal = None
        while self._take():
            assert time.monotonic() < deadline, self.screen
        assert self.raw.rfind(b"\x1b[?25h") >= self.raw.rfind(b"\x1b[?25l")  # The cursor is back.
        assert "Traceback" not in self.screen and "Warning" not in self.screen
        return self.process.returncode
