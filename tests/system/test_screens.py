"""What a person sees: the final screens of programs in a terminal, compared with golden text.

`screens.txt` has the screens. Numbers are written as #, and their columns are not compared. To
renew it after a change, and then read the difference:

    AZJAX_WRITE_SCREENS=1 python -m pytest tests/system/test_screens.py
"""

import json
import os
import pathlib
import re
import sysconfig

from terminal import Terminal
from trained import process_environment

GOLDEN = pathlib.Path(__file__).with_name("screens.txt")
DONE = "[done]"

# Runs programs one after the other in a process; a line of input starts the next one. Certificates
# are of the network alone, because searches compile slowly.
PROGRAMS = """
import importlib, json, sys
from azjax import _interrupts as interrupts
interrupts.listen()
from azjax.proof import certificate
certificate.policy = lambda player, search, states: player.evaluate(states)
for name, *arguments in json.loads(sys.argv[1]):
    status = importlib.import_module(f"azjax.cli.{name}").main(arguments)
    input(f"status {status} [done]")
"""


def normalize(screen):
    """Replaces numbers by #, and what depends on their widths or on the machine."""
    screen = re.sub(r"memory on each of.*", "memory", screen)
    screen = re.sub(r"│ versions [^╰]*", "│ versions │\n", screen)
    screen = re.sub(r"[-+]?\b\d[\d.,]*\b", "#", screen)
    screen = re.sub(r" {2,}", " ", re.sub(r"─{2,}", "──", screen))
    return "\n".join(line.strip() for line in screen.splitlines()).strip("\n") + "\n"


def read_golden():
    texts = re.split(r"^=== (.+)\n", GOLDEN.read_text(), flags=re.MULTILINE)
    return dict(zip(texts[1::2], texts[2::2], strict=True))


def compare(name, screen):
    shown = normalize(screen)
    if os.environ.get("AZJAX_WRITE_SCREENS"):
        texts = (read_golden() if GOLDEN.exists() else {}) | {name: shown}
        GOLDEN.write_text("".join(f"=== {name}\n{text}" for name, text in texts.items()))
    assert shown == read_golden()[name], f"{name}\n{screen}"


def test_screens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "LINES"):  # They would replace the size of the terminal.
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}:/usr/bin:/bin")
    small, run = ["--smoke", "--network.kind=mlp", "--until=perfect"], ["--run-dir", "run"]
    programs = [
        ["train", *small, *run, "--max-iterations", "3"],
        ["train", "--resume", *run, "--max-iterations", "5", "--no-report"],
        ["verify", *run, "--limit", "0"],
        ["play", *run, "--o", "random"],
        ["arena", "random", "perfect", "--games", "20"],
        ["train", "--game", "chess"],
        ["play", *run, "--o", "random"],
    ]

    def finish(name, status=0):
        """Compares the screen of the program that ends now; then starts the next one."""
        terminal.wait_for(DONE)
        compare(name, terminal.shown.replace(f"status {status} {DONE}", ""))
        terminal.display.reset()
        terminal.resize(80, 40)
        os.write(terminal.master, b"\n")

    command = ["-W", "error", "-c", PROGRAMS, json.dumps(programs)]
    with Terminal(command, os.environ | process_environment(), 100, 40) as terminal:
        finish("train, 100 columns", status=1)
        finish("train, 80 columns", status=1)
        finish("verify, 80 columns", status=1)
        for line in (b"d4", b"help", b"quit"):
            terminal.type(line)
        finish("play, 80 columns")
        finish("arena, 80 columns")
        finish("error, 80 columns", status=2)
        terminal.type(b"\x03")
        assert terminal.finish() == 130
        compare("play, interrupted", terminal.shown)
