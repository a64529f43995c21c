"""A headless Firefox, controlled by WebDriver BiDi, for the tests that run in Chromium.

Playwright only controls its own build of Firefox, and Debian has no geckodriver.
"""

import contextlib
import itertools
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

import websocket

_SECONDS = 60  # Timeout of the start, and of every command.


class Tab:
    """A tab of Firefox; `errors` are the messages of errors on its pages."""

    def __init__(self, address):
        self._socket = websocket.create_connection(address, timeout=_SECONDS, suppress_origin=True)
        self._numbers = itertools.count()
        self.errors = []
        self._send("session.new", capabilities={})
        self._send("session.subscribe", events=["log.entryAdded"])
        self._context = self._send("browsingContext.getTree")["contexts"][0]["context"]

    def goto(self, url):
        """Opens an address, and waits until it is loaded."""
        self._send("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, function):
        """Calls a JavaScript function; the result is converted by JSON."""
        call = f"({function})()"
        result = self._send(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await {call}))()",
            target={"context": self._context},
            awaitPromise=True,
        )
        if result["type"] == "exception":
            raise RuntimeError(result["exceptionDetails"]["text"])
        return json.loads(result["result"].get("value", "null"))

    def wait_for(self, condition):
        """Waits until a JavaScript expression is true."""
        later = "new Promise((done) => setTimeout(done, 10))"
        self.evaluate(f"async () => {{ while (!({condition})) await {later}; }}")

    def close(self):
        """Closes Firefox."""
        self._send("browser.close")
        self._socket.close()

    def _send(self, method, **params):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.errors.append(message["params"]["text"])
            if message.get("id") == number:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['message']}")
                return message["result"]


@contextlib.contextmanager
def open_firefox():
    """Starts Firefox and yields its tab; closes it at the end.

    Raises:
      ValueError: if there is no Firefox.
    """
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        raise ValueError("Firefox is not installed (Debian: apt-get install firefox-esr)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [path, "--headless", "--no-remote", "--remote-debugging-port", "0"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([*command, "--profile", profile], **quiet) as process:
            try:
                tab = Tab(_address(pathlib.Path(profile), process))
                yield tab
                tab.close()
            finally:
                process.kill()


def _address(profile, process):
    """Reads the address on which Firefox listens from a file in its profile."""
    path, end = profile / "WebDriverBiDiServer.json", time.monotonic() + _SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            server = json.loads(path.read_text())
            return f"ws://{server['ws_host']}:{server['ws_port']}/session"
        time.sleep(0.02)
    raise RuntimeError(f"Firefox did not start within {_SECONDS} seconds")
