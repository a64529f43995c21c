"""Shared parts of all programs: exit status, notes, progress and tables."""

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._commands import write_note
from azjax.cli import parsing
from azjax.games import solver
from azjax.games.base import Game
from azjax.proof.certificate import Certificate, certificate_table
from azjax.runs import checkpoint

# Exceptions whose message is for the user; a ValueError of JAX looks the same. All others are
# defects and have a traceback.
_USER_ERRORS = (ValueError, OSError, FloatingPointError)
_USER_ERRORS += (checkpoint.CheckpointError, processes.OtherProcessError)
_PAUSE = 30.0  # Seconds between two lines about one computation in a pipe; later a tenth more.


# A whole program.


def make_main(
    program: Callable[[Any], int], cls: Any, prog: str, interrupted: str, description: str = ""
) -> Callable[..., int]:
    """Makes `main(arguments=None)`, which parses options `cls` and runs a program; see `run`."""
    return lambda arguments=None: run(
        lambda: program(parsing.parse(cls, arguments, prog, description)), interrupted
    )


def run(program: Callable[[], int], interrupted: str) -> int:
    """Runs a program and returns its exit status; prints one sentence if it fails.

    After Ctrl-C it prints `interrupted`, such as "nothing was written", unless the program sets
    `interrupts.now.outcome`. `docs/reference/commands.md` lists the statuses.
    """
    interrupts.now.outcome, interrupts.now.signal = interrupted, signal.SIGINT
    status = 141
    try:
        try:
            return program()
        except BrokenPipeError:
            raise
        except _USER_ERRORS as error:
            if isinstance(error, OSError) and error.strerror:
                error = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            write_note(f"error: {error}")
            return 2
    except KeyboardInterrupt:
        interrupts.print_outcome()
        status = 128 + interrupts.now.signal
    except OSError:  # Of stdout or stderr.
        pass
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # Rich exits if a pipe is broken.
            raise
    finally:
        interrupts.now.outcome = None
    interrupts.discard_output()
    return status


# Notes and progress, on stderr.


def track(items: Collection[Any], what: str) -> Iterator[Any]:
    """Yields the items, and shows how many are done; see `progress`."""
    with progress() as bar:
        task = bar.add_task(what, total=len(items))
        for item in items:
            yield item
            bar.advance(task)


def solve(game: Game) -> solver.Solution:
    """Solves a game, and shows a message while it does."""
    with busy(f"solving {game.name}…"):
        return solver.solve(game)


@contextlib.contextmanager
def busy(what: str) -> Iterator[None]:
    """Shows a message, such as `compiling…`, until the `with` block ends."""
    terminal = Console(stderr=True)
    shown = terminal.status(Text(what)) if terminal.is_terminal else _lines(lambda: what)
    with shown:
        yield


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Shows a progress bar for the tasks of a `with` block; in a pipe, lines about the last one."""
    terminal = Console(stderr=True)
    bar = Progress(console=terminal, transient=True, disable=not terminal.is_terminal)

    def describe() -> str:
        if not bar.tasks:
            return "working"
        task = bar.tasks[-1]
        of = "" if task.total is None else f" of {task.total:,.0f}"
        return f"{task.description}: {task.completed:,.0f}{of}"

    with _lines(describe) if bar.disable else bar:
        yield bar


@contextlib.contextmanager
def _lines(describe: Callable[[], str]) -> Iterator[None]:
    """Prints what `describe` returns after some seconds, and again less and less often."""
    ended, start = threading.Event(), time.monotonic()

    def print_lines() -> None:
        with contextlib.suppress(BrokenPipeError):  # The main thread notices it as well.
            while not ended.wait(max(_PAUSE, (time.monotonic() - start) / 10)):
                write_note(f"{describe()}, {time.monotonic() - start:.0f} s")

    thread = threading.Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# Tables, on stdout.


def show_certificate(certificate: Certificate) -> None:
    """Prints a certificate as a table whose title is what it proves."""
    title, rows = certificate_table(certificate.as_json())
    verdict, colon, meaning = title.partition(":")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    is_bound = certificate.unbeatable or certificate.largest_loss is not None
    style = "green" if certificate.perfect else "yellow" if is_bound else "red"
    title = verdict.upper() + colon + meaning
    panel = Panel(table, title=title, border_style=style, expand=False)
    Console(width=_terminal_width()).print(panel)


def print_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1, title: str = ""
) -> None:
    """Prints a table; the first `names` columns hold names, and the others numbers.

    If the table is wider than the terminal, names stand above their numbers.
    """
    if title:
        print(title)
    lines = [tuple(titles), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_wide = names > 0 and sum(widths) + len(widths) - 1 > _terminal_width()
    for number, line in enumerate(lines):
        cells = [
            text.ljust(width) if column < names else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        if is_wide and number:
            print(" – ".join(line[:names]))
        print(" ".join(cells[names:] if is_wide else cells).rstrip())


def _terminal_width() -> int:
    """Returns the columns of the terminal, or 100 into a pipe."""
    return shutil.get_terminal_size((100, 24)).columns
