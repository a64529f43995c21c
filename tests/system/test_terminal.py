"""Programs as processes, and in real terminals: imports, input, Ctrl-C, and final screens.

`screens.txt` has the screens. Numbers are written as #, and their columns are not compared. To
renew it after a change, and then read the difference:

    AZJAX_WRITE_SCREENS=1 python -m pytest tests/system/test_terminal.py -k screens
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

from source import ROOT, trees
from terminal import Terminal
from trained import process_environment


def test_importing_is_light_and_does_not_initialize_devices():
    # JAX cannot change the number of devices once they are initialized.
    modules = [f[: -len(".py")].replace("/", ".") for f in trees() if f.startswith("azjax/")]
    modules = [name.removesuffix(".__init__") for name in modules if "__main__" not in name]
    program = f"""
import importlib, sys
import azjax
assert not {{"jax", "numpy", "flax", "mctx", "optax", "rich"}} & {{*sys.modules}}
for name in {modules}:
    importlib.import_module(name)
import jax
jax.config.update("jax_num_cpu_devices", 3)
assert jax.device_count() == 3
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "PYTHONPATH")}
    command, environment["PYTHONPATH"] = [sys.executable, "-c", program], str(ROOT)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def environment(**variables):
    return os.environ | process_environment() | variables


def test_any_input_at_a_real_terminal_has_an_answer():
    command = ["-W", "error", "-m", "azjax", "play", "--o", "perfect"]
    with Terminal(command, environment(COLUMNS="80", PYTHONUTF8="1")) as terminal:
        lines = b"", b"\xff\xfe", "²".encode(), b"\x1b[A", b"hint", b"a1", b"a1", b"\x04"
        for line in lines:
            terminal.type(line)
        assert terminal.finish() == 0
    screen = terminal.screen
    for message in (
        "'²' is not a legal move",
        "perfect is choosing a move",
        "perfect would play a1",
        "'a1' is not a legal move",  # The cell is occupied.
    ):
        assert message in screen, message
    assert screen.count("is not a legal move") == 5
    assert screen.endswith("your move: \nThe input has ended. Goodbye.\n")
    lines = [line.split("\r")[-1] for line in screen.split("\n")]
    # The list of all nine cells wraps at a comma.
    assert all(len(line) <= 80 or "is not a legal move" in line for line in lines)
    assert b"\x1b[1;36mX" in terminal.raw


# Ctrl-C.


# Computes forever, outside of Python.
ENDLESS = """
import jax
from azjax import _interrupts as interrupts
jax.config.update("jax_cpu_enable_async_dispatch", False)  # Compute in the main thread.
endless = jax.jit(lambda x: jax.lax.while_loop(lambda x: x >= 0, lambda x: (x + 1) % 7, x))
endless(-1)  # Compiles, and ends immediately.
def announce():
    time.sleep(0.2)  # By then the main thread has left Python.
    os.write(1, b"computing\\n")  # Not through rich.
def compute(*arguments):
    threading.Thread(target=announce, daemon=True).start()
    endless(0)
"""


def program(name, lines):
    """A program that executes some lines of Python first."""
    return f"""
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # Even if the tests ignore it.
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
{lines}
from azjax.cli import run_program
run_program("azjax.cli.{name}")
"""


IMPORTING = """
class Interrupt:
    def find_spec(name, *rest):
        if name == "jax":
            interrupt()
sys.meta_path.insert(0, Interrupt)
"""


def test_ctrl_c_during_the_imports():
    command = [sys.executable, "-c", program("train", IMPORTING)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "azjax train: starting…\ninterrupted: not started\n"


def test_ctrl_c_while_a_compiled_program_runs_leaves_the_terminal_as_it_was():
    lines = ENDLESS + "from azjax.players import arena\narena.round_robin = compute"
    command = ["-c", program("arena", lines), "random", "perfect"]
    with Terminal(command, environment()) as terminal:
        terminal.type(b"\x03", after="computing\n")
        assert terminal.finish() == 130
    assert b"\x1b[?25l" in terminal.raw  # There was a progress bar, which hides the cursor.
    assert terminal.screen.endswith("\ninterrupted: nothing was written\n")


# Closed readers.


def test_a_closed_reader_ends_a_program_silently():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "azjax", "play", "--x", "random", "--o", "random"]
    given = {"env": environment(), "stdout": writer, "stderr": subprocess.PIPE, "text": True}
    done = subprocess.run(command, timeout=300, **given)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "azjax play: starting…\n")


# What a person sees, compared with golden text.

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
    with Terminal(command, environment(), 100, 40) as terminal:
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
