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


def test_a_process_prints_its_first_line_before_it_imports_jax(tmp_path):
    (tmp_path / "jax.py").write_text("import os\nos.write(2, b'import jax\\n')\nos._exit(0)\n")
    command = [sys.executable, "-m", "azjax", "verify"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "azjax verify: starting…\nimport jax\n")


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
