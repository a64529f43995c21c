"""Programs as processes, and in real terminals: first lines, whole games, and Ctrl-C."""

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest

from azjax.games.square import cell_names
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


@pytest.fixture
def start():
    with contextlib.ExitStack() as stack:

        def make(*arguments):
            environment = os.environ | process_environment() | {"COLUMNS": "80", "PYTHONUTF8": "1"}
            command = ["-W", "error", "-m", "azjax", "play", *arguments]
            return stack.enter_context(Terminal(command, environment))

        yield make


def best_moves(solution):
    """The names of the first player's moves against the perfect player."""
    row, moves = 0, []
    while not solution.over[row]:
        action = int(np.argmax(solution.optimal[row]))
        if solution.player[row] == 0:
            moves.append(cell_names(3, 3)[action])
        row = solution.children[row, action]
    return moves


def test_a_game_at_a_real_terminal(start, solution):
    terminal = start("--o", "perfect")
    first, *others = best_moves(solution)
    for line in (b"", b"\xff\xfe", "²".encode(), b"\x1b[A", b"hint", b"undo"):
        terminal.type(line)
    terminal.type(first.encode())
    terminal.type(first.encode())  # The cell is occupied.
    terminal.type(b"undo")
    for move in (first, *others):
        terminal.type(move.encode())
    assert terminal.finish() == 0
    screen = terminal.screen
    for message in (
        "'²' is not a legal move",
        "perfect is choosing a move",
        "perfect would play a1",
        "You have no move to take back.",
        f"'{first}' is not a legal move",
    ):
        assert message in screen, message
    assert screen.count("is not a legal move") == 5
    assert screen.endswith("A draw.\n")
    lines = [line.split("\r")[-1] for line in screen.split("\n")]
    # The list of all nine cells wraps at a comma.
    assert all(len(line) <= 80 or "is not a legal move" in line for line in lines)
    assert b"\x1b[1;36mX" in terminal.raw


def test_ctrl_c_and_ctrl_d_at_a_real_terminal(start):
    interrupted, ended = start("--x", "random", "--o", "uct:1000000"), start("--o", "perfect")
    interrupted.type(b"\x03", after="plays")
    assert interrupted.finish() == 130
    # A spinner may end its line at the same time.
    said = interrupted.screen.rstrip("\n")
    assert said.endswith("\ninterrupted: the game was not finished")
    ended.type(b"\x04")
    assert ended.finish() == 0
    assert ended.screen.endswith("your move: \nThe input has ended. Goodbye.\n")


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


def environment(**variables):
    return os.environ | process_environment() | variables


def program(name, lines=""):
    return PROGRAM.replace("LINES", lines).replace("NAME", name)


def run(*command, **options):
    """Runs Python; returns its exit status and its output."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment()} | options
    done = subprocess.run([sys.executable, *command], timeout=300, **pipes)
    return done.returncode, done.stdout, done.stderr


# Ctrl-C.

IMPORTING = """
class Interrupt:
    def find_spec(name, *rest):
        if name == "jax":
            interrupt()
sys.meta_path.insert(0, Interrupt)
"""


def test_ctrl_c_during_the_imports():
    status, out, err = run("-c", program("train", IMPORTING), text=True)
    assert (status, out) == (130, "")
    assert err == "azjax train: starting…\ninterrupted: not started\n"


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
    status, _, err = run("-m", "azjax", "play", "--x", "random", "--o", "random", stdout=writer)
    os.close(writer)
    assert (status, err.decode()) == (141, "azjax play: starting…\n")
