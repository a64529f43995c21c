"""Ctrl-C at any moment, closed readers of the output, and unprintable names."""

import os
import signal
import subprocess
import sys
import threading
import time

import jax
import pytest

from azjax import _interrupts as interrupts
from azjax import runs
from azjax.cli import console
from terminal import Terminal

PROGRAMS = ["train", "seeds", "verify", "play", "arena", "explain", "report", "lecture"]
PROGRAMS += ["benchmark", "export"]

# Executes some lines of Python, and then runs a program like `python -m`.
PROGRAM = """
import os, runpy, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # Even if the tests ignore it.
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
LINES
runpy.run_module("experiments.NAME", run_name="__main__", alter_sys=True)
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
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        "TERM": "xterm-256color",
        **variables,
    }


def program(name, lines=""):
    return PROGRAM.replace("LINES", lines).replace("NAME", name)


def run(*command, **options):
    """Runs Python; returns its exit status and its output."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    done = subprocess.run(
        [sys.executable, *command], env=environment(), text=True, timeout=300, **pipes
    )
    return done.returncode, done.stdout, done.stderr


# Ctrl-C.

IMPORTING = """
class Interrupt:
    def find_spec(name, *rest):
        if name == "jax":
            interrupt()
sys.meta_path.insert(0, Interrupt)
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c_during_the_imports(name):
    status, out, err = run("-c", program(name, IMPORTING))
    first, *others = err.splitlines()
    assert first.endswith(f"{name}: starting…")
    assert (status, out, others) == (130, "", ["interrupted: not started"])


@pytest.mark.slow
def test_ctrl_c_while_a_compiled_program_runs_leaves_the_terminal_as_it_was():
    lines = ENDLESS + "from azjax.players import arena\narena.round_robin = compute"
    command = ["-c", program("arena", lines), "random", "perfect"]
    with Terminal(command, environment()) as terminal:
        terminal.type(b"\x03", after="computing\n")
        assert terminal.finish() == 130
    assert b"\x1b[?25l" in terminal.raw  # There was a progress bar, which hides the cursor.
    assert terminal.screen.endswith("\ninterrupted: nothing was written\n")


# Interrupts the first iteration of a training, and then executes the line NEXT.
TRAINING = """
from azjax import _interrupts as interrupts
from azjax.training import loop
make_record = loop.make_record
def interrupted(*arguments):
    interrupt()
    while interrupts.now.patient:
        time.sleep(0.01)
    NEXT
    return make_record(*arguments)
loop.make_record = interrupted
"""


TERM = "os.kill(os.getpid(), signal.SIGTERM)"


@pytest.mark.parametrize(
    ("then", "saved"), [("pass", [1]), ("interrupt()", [1]), (TERM, [1]), ("compute()", [])]
)
@pytest.mark.slow
def test_the_first_ctrl_c_ends_the_iteration_and_the_second_the_process(then, saved, tmp_path):
    run_dir = tmp_path / "run"
    lines = program("train", ENDLESS + TRAINING.replace("NEXT", then))
    process = subprocess.Popen(
        [sys.executable, "-c", lines, "--smoke", "--no-report", "--run-dir", str(run_dir)],
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            if "computing\n" in process.stdout:  # Otherwise it has ended already.
                process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=100)[1]
        finally:
            process.kill()
    said = f"azjax train: starting…\ninterrupted: continue with --resume --run-dir {run_dir}\n"
    assert (process.returncode, err) == (130, said)
    assert runs.iterations(run_dir) == saved


def test_a_background_process_ignores_ctrl_c():
    lines = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    lines += "from azjax import _interrupts as interrupts; interrupts.listen()\n"
    lines += "signal.raise_signal(signal.SIGINT); print('done')"
    assert run("-c", lines) == (0, "done\n", "")


# Signals while a program can stop by itself, in the order of their arrival; then its exit status.
ARRIVALS = [
    ([signal.SIGINT], 130),
    ([signal.SIGTERM], 143),
    ([signal.SIGHUP], 129),
    ([signal.SIGTERM, signal.SIGTERM, signal.SIGHUP], 143),  # As of a system that shuts down.
    ([signal.SIGHUP, signal.SIGHUP, signal.SIGTERM], 129),  # As of a terminal that is closed.
]


@pytest.fixture
def handlers(monkeypatch):
    """The handlers with which programs start, even if the tests ignore signals."""
    before = {number: signal.getsignal(number) for [number], _ in ARRIVALS[:3]}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    monkeypatch.setattr(interrupts, "now", interrupts._Now())
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_program_that_stops_by_itself_reports_the_first_signal(handlers, capfd):
    for numbers, status in ARRIVALS:

        def program(numbers=numbers):
            with interrupts.Request() as request:
                for number in numbers:
                    signal.raise_signal(number)
                    time.sleep(interrupts._SAME)
            assert request.made
            raise KeyboardInterrupt

        assert console.run(program, "saved") == status
        assert capfd.readouterr().err == "interrupted: saved\n"


def test_a_second_ctrl_c_does_not_wait(handlers):
    with pytest.raises(KeyboardInterrupt), interrupts.Request():
        signal.raise_signal(signal.SIGHUP)
        time.sleep(interrupts._SAME)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it waited")


def test_ignored_signals_stay_ignored_and_repeated_ones_do_not_end_a_program_that_ends(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # As `nohup` does.
    with interrupts.Request() as request:
        signal.raise_signal(signal.SIGHUP)
    assert not request.made and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    interrupts.now.listens = True
    with interrupts.Request() as request:
        signal.raise_signal(signal.SIGTERM)
        interrupts.now.patient = False  # As the thread does.
    signal.raise_signal(signal.SIGTERM)
    assert request.made and signal.getsignal(signal.SIGINT) == signal.default_int_handler


# Closed readers.


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_closed_reader_ends_a_program_silently(name):
    reader, writer = os.pipe()
    os.close(reader)
    status, _, err = run("-m", f"experiments.{name}", "--help", stdout=writer)
    os.close(writer)
    assert (status, err) == (141, "")


def test_closed_streams_are_replaced():
    lines = "import os, sys; from azjax import _interrupts as interrupts; interrupts.listen(); "
    lines += "print(sys.stdout.name, sys.stderr.name, file=open(sys.argv[1], 'w')); print('lost')"
    path = "/dev/fd/3"
    command = f'exec "$0" -c "$1" {path} 3>&1 1>&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, lines], env=environment(), capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, b"1 2\n")


@pytest.mark.parametrize("show", [print, console.print_rich, console.note])
def test_every_kind_of_output_ends_silently(show, monkeypatch):
    def printing():
        show("said")
        return 0

    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1) as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        monkeypatch.setattr(sys, "stderr", nobody)
        assert console.run(printing, interrupted="nothing was written") == 141


# Names.


def test_unprintable_characters_are_printed_with_escapes():
    lines = "import sys; from azjax import _interrupts as interrupts; interrupts.listen()\n"
    lines += "print(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", lines, b"l\xe4ufe l\xc3\xa4ufe"],
        env=environment(PYTHONIOENCODING="ascii"),
        capture_output=True,
    )
    assert (done.stdout, done.stderr) == (rb"l\udce4ufe l\xe4ufe" + b"\n", b"")


NAMED = """
import sys
from azjax import _interrupts as interrupts
interrupts.listen()
from azjax.cli import explain, play, report, train, verify
folder = sys.argv[1]
assert train.main(["--smoke", "--run-dir", folder]) == 0
assert train.main(["--resume", "--run-dir", folder, "--max-iterations", "4"]) == 0
assert verify.main(["--run-dir", folder]) == 1
assert report.main(["--run-dir", folder]) == 0
assert explain.main(["--run-dir", folder, "--out", folder + ".html"]) == 0
assert play.main(["--o", f"network@{folder}"]) == 0
"""


@pytest.mark.slow
def test_every_program_accepts_a_folder_with_an_unprintable_name(tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"l\xe4ufe")
    done = subprocess.run(
        [sys.executable, "-c", NAMED, folder],
        env=environment(PYTHONIOENCODING="ascii"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    announced = [line.split()[0] for line in done.stderr.splitlines()]
    assert announced == [b"verifying", b"writing"] * 2, done.stderr
    assert done.stdout.isascii() and b"run directory: " in done.stdout
    assert runs.iterations(os.fsdecode(folder)) == [3, 4]
    assert {b"report.html", b"certificate.json"} <= set(os.listdir(folder))


def test_a_program_that_stops_by_itself_waits_for_the_signal_thread(monkeypatch):
    """The thread may receive the signal late, and would then end the process."""
    now, heard = interrupts._Now(listens=True), []
    monkeypatch.setattr(interrupts, "now", now)

    def listen():
        time.sleep(0.2)
        heard.append(now.patient)
        now.patient = False

    with interrupts.Request() as request:
        thread = threading.Thread(target=listen)
        thread.start()
        signal.raise_signal(signal.SIGTERM)
    thread.join()
    assert request.made and heard == [True]
