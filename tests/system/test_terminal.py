"""Programs as processes, and in real terminals: imports, input, and Ctrl-C."""

import os
import subprocess
import sys

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
        lines = b"", b"\xff\xfe", "²".encode(), b"\x1b[A", b"hint", b"undo", b"a1", b"a1", b"\x04"
        for line in lines:
            terminal.type(line)
        assert terminal.finish() == 0
    screen = terminal.screen
    for message in (
        "'²' is not a legal move",
        "perfect is choosing a move",
        "perfect would play a1",
        "You have no move to take back.",
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


# Executes some lines of Python, and then runs a program.
PROGRAM = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # Even if the tests ignore it.
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
LINES
from azjax.cli import run_program
run_program("azjax.cli.NAME")
"""

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


def program(name, lines=""):
    return PROGRAM.replace("LINES", lines).replace("NAME", name)


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
