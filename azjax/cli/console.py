"""What the programs say: notes, errors, certificates and tables."""

import contextlib
import io
import os
import pathlib
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tyro
from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress
from rich.table import Table
from rich.text import Text
from tyro import _strings  # Nothing public joins the lines of a setting's text, to be wrapped.

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._commands import command
from azjax._commands import write_note as note
from azjax._settings import did_you_mean
from azjax.drawing import check_folder
from azjax.games import solver
from azjax.games.base import Game
from azjax.proof.certificate import Certificate, certificate_table
from azjax.runs import checkpoint
from azjax.training.memory import describe_bytes

# What programs raise for what is no defect of theirs; the message is the sentence to say.
_MISTAKES = (ValueError, OSError, checkpoint.CheckpointError)
_MISTAKES += (processes.OtherProcessError, FloatingPointError)


def announce_solving(game: Game) -> None:
    """Says what it takes to solve a game, unless that is next to nothing."""
    if not game.is_small:
        needed = f"{describe_bytes(solver.most_bytes(game))}, on the way twice that"
        note(f"solving {game.name}: at most {game.most_positions:,} positions, {needed}")


def run(program: Callable[[], int], interrupted: str) -> int:
    """Runs a program; returns its exit status, and says in one sentence how it failed.

    Args:
      program: returns its own status.
      interrupted: what to say came of it after Ctrl-C, unless `interrupts.now` knows better.

    Returns:
      What `program` does; 2 after a mistake, 130 after Ctrl-C and 141 if nobody reads what it
      prints, as if the signals of these had ended it.
    """
    interrupts.now.outcome = interrupted
    try:
        return _run(program)
    except KeyboardInterrupt:
        interrupts.say()
        return 130
    except BrokenPipeError:
        pass
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # That is what rich makes of it.
            raise
    finally:
        interrupts.now.outcome = None
    interrupts.discard_output()
    return 141


def _run(program: Callable[[], int]) -> int:
    try:
        return program()
    except BrokenPipeError:
        raise
    except _MISTAKES as error:
        if isinstance(error, OSError) and error.strerror:
            error = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        note(f"error: {error}")
        return 2


def make_main(
    program: Callable[[Any], int], cls: Any, prog: str, interrupted: str, description: str = ""
) -> Callable[..., int]:
    """Makes `main(arguments=None) -> exit status`, the whole of a program.

    Args:
      program: what it does with its options; returns the exit status.
      cls: the dataclass of the options.
      prog: the program's name.
      interrupted: what to say came of it after Ctrl-C.
      description: the rest of the help.
    """
    description = f"{cls.__doc__}\n\n{description}".rstrip()

    def main(arguments: list[str] | None = None) -> int:
        return run(
            lambda: program(parse(cls, arguments, prog, description=description)), interrupted
        )

    return main


@contextlib.contextmanager
def no_mistakes() -> Iterator[None]:
    """Tells, of a ValueError inside its `with` block, that it is no user's mistake."""
    try:
        yield
    except ValueError as error:
        raise RuntimeError("this is a defect of azjax, not of its settings") from error


def parse(cls: Any, arguments: list[str] | None, prog: str, **settings: Any) -> Any:
    """Reads a command line into a dataclass with tyro; help is as wide as the terminal.

    Raises:
      ValueError: with one sentence in place of the boxes that tyro prints.
    """
    _strings.remove_single_line_breaks = lambda text: re.sub(r"\n +", " ", text)
    said = io.StringIO()
    told = io.TextIOWrapper(io.BytesIO(), sys.stdout.encoding, "backslashreplace")
    is_help = {"-h", "--help"} & {*(sys.argv[1:] if arguments is None else arguments)}
    width = contextlib.nullcontext() if is_help else _wide_terminal()
    try:
        with width, contextlib.redirect_stderr(said), contextlib.redirect_stdout(told):
            return tyro.cli(
                cls,
                args=arguments,
                prog=prog,
                config=(tyro.conf.AvoidSubcommands,),  # See `options._choose_kinds`.
                **settings,
            )
    except SystemExit as stop:
        if stop.code:
            raise ValueError(_unbox(said.getvalue(), prog)) from None
        told.seek(0)
        for line in told.read().splitlines():  # Tyro wraps some of them, but not all.
            print(textwrap.fill(line, shutil.get_terminal_size().columns))
        raise


@contextlib.contextmanager
def _wide_terminal() -> Iterator[None]:
    """Has boxes printed as wide as their text, so that no path or command in it is cut in two."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


def _unbox(box: str, prog: str) -> str:
    """Turns one of tyro's boxes, a title and paragraphs between rules, into a sentence."""
    text = re.sub(r"[│|╭╮╰╯]", "", Text.from_ansi(box).plain)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n?[ +]*[─-]{3,}.*\n", text)]
    said = [paragraph for paragraph in paragraphs[1:] if paragraph] or [" ".join(text.split())]
    sentence = re.sub(r"^Error parsing (?!--)\S+: ", "", said[0]).rstrip(".")
    if ": use " in sentence or ": add " in sentence:
        return sentence
    if choice := re.search(r"invalid choice '(.*)' for .* one of \((.*)\)", sentence):
        sentence += did_you_mean(choice[1], re.findall(r"'([^']*)'", choice[2])).rstrip("?")
    similar = [re.findall(r"--[\w.-]*\w", part) for part in said if part.startswith("Perhaps")]
    names = [name for name in dict.fromkeys(similar[0] if similar else ()) if name != "--help"]
    meant = f", perhaps you meant {' or '.join(names)}" if names else ""
    return f"{sentence}{meant}: {command(*prog.split(), '--help')} lists what is allowed"


def busy(what: str):
    """Shows, on a terminal and until its `with` block ends, what takes a while."""
    return Console().status(what)


@contextlib.contextmanager
def busy_with_report() -> Iterator[Callable[[str, int, int], None]]:
    """Shows how far a report is, until its `with` block ends; yields its function `notify`.

    On a terminal that is one line, and elsewhere a line for each match that begins.
    """
    terminal = Console()
    with terminal.status("writing the report…") as status:

        def notify(opponent: str, played: int, games: int) -> None:
            status.update(f"writing the report: {played} of {games} games against {opponent}…")
            if not terminal.is_terminal and not played:
                note(f"for the report: at most {games} games against {opponent}")

        yield notify


def progress() -> Progress:
    """Shows progress on a terminal, and elsewhere nothing."""
    terminal = Console(stderr=True)
    return Progress(console=terminal, transient=True, disable=not terminal.is_terminal)


def check_plot(path: pathlib.Path) -> None:
    """Refuses, before the work, a picture that could not be drawn.

    Raises:
      ValueError: if its folder is missing, or its name does not end in .svg.
    """
    check_folder(path)
    if path.suffix != ".svg":
        raise ValueError(f"--plot is {path}: use a name that ends in .svg, as an SVG file is drawn")


def show_certificate(certificate: Certificate) -> None:
    """Prints a certificate as a table, under a title that says what it proves."""
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
    """Prints a table, the first columns of which are names, and the others numbers.

    Where it is wider than the terminal, names are folded, and headings and numbers stay whole.
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


def print_rich(content) -> None:
    """Prints a rich object, as wide as the terminal, or 100 columns into a pipe."""
    stdout = Console()
    (stdout if stdout.is_terminal else Console(width=100)).print(content)
