"""The command `azjax`, with one module per program: `azjax train` or `python -m azjax train`."""

import contextlib
import importlib
import os
import sys
from typing import NoReturn

from azjax import _interrupts as interrupts

PROGRAMS = {
    "train": "train a network by self-play, in small games until it is proved perfect",
    "verify": "verify a trained network in every position, or against every reply",
    "play": "play against any player in the terminal",
    "arena": "run matches and tournaments between players of any kind",
    "report": "write the report of a training run",
    "explain": "write a page that explains a trained player and its search",
    "export": "write a trained player to a file for JAX, which runs without azjax",
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


def run_program(module: str) -> NoReturn:
    """Runs the `main` of a module and exits with its status.

    Importing the module takes seconds. Ctrl-C is handled, and a line is printed, before the import.
    """
    interrupts.listen()
    name = module.replace("azjax.cli.", "azjax ").removesuffix(".__main__")
    is_first = os.environ.get("JAX_PROCESS_ID", "0") == "0"
    if is_first and not {"-h", "--help", "--json"} & {*sys.argv}:
        with contextlib.suppress(OSError):
            print(f"{name}: starting…", file=sys.stderr, flush=True)
    sys.exit(importlib.import_module(module).main())
