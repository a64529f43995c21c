"""The command `azjax`, with one module per program: `azjax train` or `python -m azjax train`."""

import contextlib
import hashlib
import importlib
import os
import pathlib
import platform
import re
import sys
import warnings
from typing import NoReturn

from azjax import _interrupts as interrupts

PROGRAMS = {
    "train": "train a network by self-play, in small games until it is proved perfect",
    "verify": "verify a trained network in every position, or against every reply",
    "play": "play against any player in the terminal",
    "arena": "run matches and tournaments between players of any kind",
    "report": "write the report of a training run",
    "explain": "write a page that explains a trained player and its search",
    "doctor": "find what keeps a training run from learning",
    "compare": "compare settings by exact error, over many seeds",
}


def main() -> NoReturn:
    """Runs the program that the first argument names and exits with its status."""
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in PROGRAMS:
        sys.argv = [f"azjax {name}", *arguments]
        run_program(f"azjax.cli.{name}")
    if name in ("-h", "--help"):
        programs = "\n".join(f"  {program:8} {purpose}" for program, purpose in PROGRAMS.items())
        print(f"usage: azjax PROGRAM [OPTIONS]\n\n{programs}\n\nazjax PROGRAM --help")
        sys.exit(0)
    print(f"error: unknown program {name!r}: use {', '.join(PROGRAMS)}", file=sys.stderr)
    sys.exit(2)


def keep_compiled() -> None:
    """Lets JAX keep compiled programs in the user's cache folder, unless a variable names another.

    Call it before JAX is imported. JAX_ENABLE_COMPILATION_CACHE=0 switches the cache off.
    """
    # An entry that is damaged or cannot be written costs a compilation, not a warning.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    cpu = platform.processor()
    with contextlib.suppress(OSError):  # Linux.
        text = pathlib.Path("/proc/cpuinfo").read_text()
        cpu = sorted({*re.findall(r"^(?:model name|flags|Features)\s.*", text, re.MULTILINE)})
    # Compiled programs use the instructions of the CPU; several computers may share the folder.
    kind = hashlib.sha256(repr(cpu).encode()).hexdigest()[:8]
    with contextlib.suppress(OSError, RuntimeError):  # No home, or one that cannot be written.
        base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        folder = pathlib.Path(base, "azjax", f"{platform.machine()}-{kind}")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)


def run_program(module: str) -> NoReturn:
    """Runs the `main` of a module and exits with its status.

    Importing the module takes seconds. Ctrl-C is handled, and a line is printed, before the import.
    """
    interrupts.listen()
    if module.startswith("azjax."):  # Experiments measure how long compiling takes.
        keep_compiled()
    name = module.replace("azjax.cli.", "azjax ").removesuffix(".__main__")
    is_first = os.environ.get("JAX_PROCESS_ID", "0") == "0"
    if is_first and not {"-h", "--help"} & {*sys.argv}:
        with contextlib.suppress(OSError):
            print(f"{name}: starting…", file=sys.stderr, flush=True)
    sys.exit(importlib.import_module(module).main())
