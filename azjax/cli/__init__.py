"""The command `azjax`, one program a file: `azjax train`, or `python -m azjax train`."""

import importlib
import sys
from typing import NoReturn

from azjax import _interrupts as interrupts

PROGRAMS = {
    "train": "train a network by self-play until it is proved perfect",
    "verify": "examine a trained network in every position, or against every reply",
    "play": "play against any player at the terminal",
    "arena": "play matches and tournaments between players of any kind",
    "report": "write a page about a training run",
    "explain": "write a page that explains a trained player and its search",
    "seeds": "train many players at once, one for each seed",
}


def main() -> NoReturn:
    """Runs the program that the command line names first, and exits with its status."""
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in PROGRAMS:
        sys.argv = [f"azjax {name}", *arguments]
        run_program(f"azjax.cli.{name}")
    listed = [f"  {program:8} {purpose}" for program, purpose in PROGRAMS.items()]
    usage = "\n".join(["usage: azjax PROGRAM [OPTIONS]", "", *listed, "", "azjax PROGRAM --help"])
    if name in ("-h", "--help"):
        print(usage)
        sys.exit(0)
    print(f"error: there is no program {name!r}: use {', '.join(PROGRAMS)}", file=sys.stderr)
    sys.exit(2)


def run_program(module: str) -> NoReturn:
    """Runs the `main` of a module and exits with its status.

    The process listens for Ctrl-C before it imports the module, which may take seconds.
    """
    interrupts.listen()
    sys.exit(importlib.import_module(module).main())
