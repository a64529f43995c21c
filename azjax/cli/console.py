"""Shared parts of all programs: exit status, notes, progress and tables."""

import contextlib
import inspect
import pathlib
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress
from rich.status import Status
from rich.table import Table

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._commands import write_note
from azjax.cli import parsing
from azjax.drawing import check_folder
from azjax.games import solver
from azjax.games.base import Game
from azjax.proof.certificate import Certificate, certificate_table
from azjax.runs import checkpoint
from azjax.training.memory import describe_bytes

# Exceptions whose message is for the user. Any other exception is a defect and has a traceback.
_USER_ERRORS = (ValueError, OSError, checkpoint.CheckpointError)
_USER_ERRORS += (processes.OtherProcessError, FloatingPointError)
# The library's errors name these arguments in backticks; programs print them as options.
_ARGUMENTS = "run_dir|resume|until|max_iterations|simulations|cpu_devices"


# A whole program.


def make_main(
    program: Callable[[Any], int], cls: Any, prog: str, interrupted: str, description: str = ""
) -> Callable[..., int]:
    """Makes `main(arguments=None) -> exit status`, which parses the options and runs a program.

    Args:
      program: takes the options and returns the exit status.
      cls: the dataclass of the options.
      prog: the program's name.
      interrupted: what to print after Ctrl-C, such as "nothing was written".
      description: added to the help, after the docstring of `cls`.
    """
    description = f"{inspect.getdoc(cls)}\n\n{description}".rstrip()

    def main(arguments: list[str] | None = None) -> int:
        return run(
            lambda: program(parsing.parse(cls, arguments, prog, description=description)),
            interrupted,
        )

    return main


def run(program: Callable[[], int], interrupted: str) -> int:
    """Runs a program and returns its exit status; prints one sentence if it fails.

    Args:
      program: returns its exit status.
      interrupted: what to print after Ctrl-C, unless the program sets `interrupts.now.outcome`.

    Returns:
      The status of `program`; 2 after a user error; after a signal, what shells report for it, such
      as 130 for Ctrl-C; 141, as for SIGPIPE, if the reader of stdout or stderr is closed.
    """
    interrupts.now.outcome, interrupts.now.signal = interrupted, signal.SIGINT
    status = 141
    try:
        return _run(program)
    except KeyboardInterrupt:
        interrupts.print_outcome()
        status = 128 + interrupts.now.signal
    except OSError:  # Of stdout or stderr: `_run` reports all others.
        pass
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # Rich exits if a pipe is broken.
            raise
    finally:
        interrupts.now.outcome = None
    interrupts.discard_output()
    return status


def _run(program: Callable[[], int]) -> int:
    try:
        return program()
    except BrokenPipeError:
        raise
    except _USER_ERRORS as error:
        if isinstance(error, OSError) and error.strerror:
            error = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        note(f"error: {error}")
        return 2


def check_plot(path: pathlib.Path) -> None:
    """Checks that a plot can be written; called before the computation, to fail early.

    Raises:
      ValueError: if the folder does not exist, or the name does not end in .svg.
    """
    check_folder(path)
    if path.suffix != ".svg":
        raise ValueError(f"--plot is {path}: use a name that ends in .svg")


# Notes and progress, on stderr.


def note(sentence: str) -> None:
    """Prints one sentence to stderr, with the library's arguments spelled as options.

    For example, it prints `resume=True` as --resume, and `until="never"` as --until never.
    """

    def spell(argument: re.Match[str]) -> str:
        name, value = argument.groups()
        option = f"--{name.replace('_', '-')}"
        return option if value in (None, "True") else f"{option} {value.strip(chr(34))}"

    write_note(re.sub(f"`({_ARGUMENTS})(?:=([^`]*))?`", spell, sentence))


def announce_solving(game: Game) -> None:
    """Prints the memory that solving a game takes, unless the game is small."""
    if not game.is_small:
        needed = f"{describe_bytes(solver.most_bytes(game))}, and temporarily twice that"
        note(f"solving {game.name}: at most {game.most_positions:,} positions, {needed}")


def busy(what: str) -> Status:
    """Shows a message on a terminal, such as `compiling…`, until the `with` block ends."""
    return Console(stderr=True).status(what)


def progress() -> Progress:
    """Makes a progress bar for a `with` block, which adds tasks to it.

    It is shown on a terminal until the block ends. Piped output has none.
    """
    terminal = Console(stderr=True)
    return Progress(console=terminal, transient=True, disable=not terminal.is_terminal)


@contextlib.contextmanager
def report_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Shows the progress of a report until the `with` block ends; yields `notify` for the report.

    A terminal has a progress bar. Piped output has a line for each match that begins.
    """
    with progress() as bar:
        task = bar.add_task("writing the report", total=None)

        def notify(opponent: str, played: int, games: int) -> None:
            what = f"writing the report: games against {opponent}"
            bar.update(task, description=what, completed=played, total=games)
            if bar.disable and not played:
                note(f"for the report: at most {games} games against {opponent}")

        yield notify


# Tables, on stdout.


def show_certificate(certificate: Certificate) -> None:
    """Prints a certificate as a table whose title is what it proves."""
    title, rows = certificate_table(certificate.as_json())
    verdict, colon, meaning = title.partition(":")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    style = "green" if certificate.perfect else "yellow" if certificate.unbeatable else "red"
    title = verdict.upper() + colon + meaning
    print_rich(Panel(table, title=title, border_style=style, expand=False))


def print_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1, title: str | None = None
) -> None:
    """Prints a table; the first `names` columns hold names, and the others numbers.

    If the table is wider than the terminal, names are folded, but not headings or numbers.
    """
    table = Table(box=None, padding=(0, 1, 0, 0), title=title, title_justify="left")
    for column, heading in enumerate(titles):
        is_name = column < names
        table.add_column(
            heading,
            justify="left" if is_name else "right",
            overflow="fold",
            no_wrap=not is_name,
            min_width=len(heading),
        )
    for row in rows:
        table.add_row(*row)
    print_rich(table)


def print_rich(content: Any) -> None:
    """Prints a rich object as wide as the terminal, or with 100 columns into a pipe."""
    stdout = Console()
    (stdout if stdout.is_terminal else Console(width=100)).print(content)
