"""Relays what native code prints in one of several processes, as whole lines.

If another process dies, JAX's coordination service prints a C++ stack and aborts this process.
A third program must therefore replace the stack by a sentence: this file, run as a script. It also
drops the greetings of Gloo, JAX's communication library on CPUs.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import TextIO

VARIABLES = (
    "outside SLURM, Open MPI, Kubernetes and Cloud TPU, set JAX_COORDINATOR_ADDRESS to HOST:PORT "
    "of process 0, with a free port, JAX_NUM_PROCESSES to the number of processes, and "
    "JAX_PROCESS_ID to 0, 1 and so on"
)
_ABORT = "JAX distributed service detected fatal errors"
_ENDED = "azjax: these processes ended:"  # Precedes the numbers from `end`.
# Threads of Gloo write at the same time, which can put a number on a separate line.
_GREETING = re.compile(r"(.*\[Gloo\].*|\d*)\n")
_HELD = re.compile(rf"[EF]\d{{4}} .*(coordination_service|{_ABORT})|{_ENDED}")


def start(run_dir: str, named: str) -> tuple[int, int]:
    """Sends the output of native code to a relay; Python's streams keep their destinations.

    Returns the descriptors of the original stdout and stderr. `named` are the run's options.
    """
    reader, writer = os.pipe()
    script = [sys.executable, "-I", "-S", __file__, run_dir, named]
    # In a new session, because a Ctrl-C must not end it before this process.
    subprocess.Popen(script, stdin=reader, stdout=subprocess.DEVNULL, start_new_session=True)
    original = os.dup(1), os.dup(2)
    for name, descriptor, number in zip(("stdout", "stderr"), original, (1, 2), strict=True):
        old = getattr(sys, name)
        old.flush()
        new = os.fdopen(descriptor, "w", buffering=1, encoding=old.encoding, errors=old.errors)
        setattr(sys, name, new)
        os.dup2(writer, number)
    os.close(writer)
    os.close(reader)
    return original


def end(ended: Iterable[int]) -> None:
    """Ends this process with status 2, and the relay prints which processes ended before it."""
    os.write(2, f"\n{_ENDED} {' '.join(map(str, ended))}\n".encode())
    os._exit(2)


def describe(text: str, run_dir: str, named: str) -> str:
    """Returns the sentence that replaces the messages of the coordination service in a text."""
    if "RegisterTask" in text:
        return f"error: the processes did not connect in time: {VARIABLES}\n"
    listed = re.search(rf"heartbeats\):\n(.*?)\nThe tasks|{_ENDED}(.*)", text, re.DOTALL)
    numbers = re.findall(r"\d+$", listed[1] or listed[2], re.MULTILINE) if listed else []
    if not numbers and "leader task" in text:  # Process 0 runs the service.
        numbers = ["0"]
    plural = "es" if len(numbers) > 1 else ""
    who = f"process{plural} {' and '.join(numbers)}" if numbers else "another process"
    resume = f" with --resume {named}" if os.path.exists(f"{run_dir}/config.json") else ""
    return (
        f"error: {who} ended before the others (its output has the reason, unless it was killed): "
        f"start all processes again{resume}\n"
    )


def _relay(native: TextIO, out: TextIO, run_dir: str, named: str) -> None:
    held = ""
    for line in native:
        if held or _HELD.match(line):
            held += line
        elif not _GREETING.fullmatch(line):
            print(line, end="", file=out, flush=True)
    if _ABORT in held or _ENDED in held:
        held = describe(held, run_dir, named)
    print(held, end="", file=out)


if __name__ == "__main__":
    with open(0, errors="replace") as native, open(2, "w", errors="backslashreplace") as out:
        _relay(native, out, *sys.argv[1:])
