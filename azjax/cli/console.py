"""Shared parts of all programs: option parsing, exit status, notes, progress and tables."""

import ast
import contextlib
import dataclasses
import functools
import inspect
import io
import itertools
import os
import pathlib
import re
import shutil
import sys
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress
from rich.status import Status
from rich.table import Table
from rich.text import Text
from tyro.constructors import StructConstructorSpec, StructFieldSpec, StructTypeInfo

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._commands import command, write_note
from azjax._settings import did_you_mean
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
    description = f"{cls.__doc__}\n\n{description}".rstrip()

    def main(arguments: list[str] | None = None) -> int:
        return run(
            lambda: program(parse(cls, arguments, prog, description=description)), interrupted
        )

    return main


def run(program: Callable[[], int], interrupted: str) -> int:
    """Runs a program and returns its exit status; prints one sentence if it fails.

    Args:
      program: returns its exit status.
      interrupted: what to print after Ctrl-C, unless the program sets `interrupts.now.outcome`.

    Returns:
      The status of `program`; 2 after a user error; 130 after Ctrl-C; 141 if the reader of stdout
      or stderr is closed. The last two are what shells report for SIGINT and SIGPIPE.
    """
    interrupts.now.outcome = interrupted
    try:
        return _run(program)
    except KeyboardInterrupt:
        interrupts.print_outcome()
        return 130
    except BrokenPipeError:
        pass
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # Rich turns one into the other.
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
    except _USER_ERRORS as error:
        if isinstance(error, OSError) and error.strerror:
            error = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        note(f"error: {error}")
        return 2


# Options.


def parse(cls: Any, arguments: list[str] | None, prog: str, **settings: Any) -> Any:
    """Parses a command line into a dataclass with tyro.

    Raises:
      ValueError: with one sentence in place of tyro's box.
    """
    errors = io.StringIO()
    help_text = io.TextIOWrapper(io.BytesIO(), sys.stdout.encoding, "backslashreplace")
    is_help = {"-h", "--help"} & {*(sys.argv[1:] if arguments is None else arguments)}
    width = contextlib.nullcontext() if is_help else _wide_terminal()
    try:
        with width, contextlib.redirect_stderr(errors), contextlib.redirect_stdout(help_text):
            return tyro.cli(
                cls,
                args=arguments,
                prog=prog,
                # `cli.options`, not tyro, chooses between the kinds of settings.
                config=(tyro.conf.AvoidSubcommands, tyro.conf.DisallowNone),
                registry=_REGISTRY,
                **settings,
            )
    except SystemExit as stop:
        if stop.code:
            raise ValueError(_unbox(errors.getvalue(), prog)) from None
        help_text.seek(0)
        text = re.sub(r"\n{3,}", "\n\n", help_text.read())
        for line in text.splitlines():  # Tyro does not wrap all lines.
            print(textwrap.fill(line, shutil.get_terminal_size().columns))
        raise


_REGISTRY = tyro.constructors.ConstructorRegistry()


@_REGISTRY.struct_rule
def _describe_settings(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Describes a dataclass to tyro, with each field's docstring as one paragraph.

    By default, tyro's help keeps the line breaks of a docstring, and adds "(default: None)" to a
    docstring that describes the default.
    """
    if not dataclasses.is_dataclass(info.type):
        return None
    hints = typing.get_type_hints(info.type, include_extras=True)
    fields = []
    for field in dataclasses.fields(info.type):
        if isinstance(info.default, info.type):
            default = getattr(info.default, field.name)
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        else:
            default = tyro.MISSING if field.default is dataclasses.MISSING else field.default
        hint: Any = hints[field.name]
        text = functools.partial(_read_docstring, info.type, field.name)
        if default in (None, (), ""):
            hint = typing.cast(Any, Annotated)[hint, tyro.conf.arg(help_behavior_hint="")]
        fields.append(StructFieldSpec(field.name, hint, default, text))
    return StructConstructorSpec(instantiate=info.type, fields=tuple(fields))


@functools.cache
def _read_docstring(cls: type, name: str) -> str | None:
    """Returns the docstring below a field in the source of its class."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    for field, text in itertools.pairwise(definition.body):
        is_field = isinstance(field, ast.AnnAssign) and ast.unparse(field.target) == name
        if is_field and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            return " ".join(str(text.value.value).split())
    return None


@contextlib.contextmanager
def _wide_terminal() -> Iterator[None]:
    """Makes tyro print errors in long lines, so that no path or command in them is cut in two."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


def _unbox(box: str, prog: str) -> str:
    """Turns one of tyro's error boxes, a title and paragraphs between rules, into a sentence."""
    text = re.sub(r"[│|╭╮╰╯]", "", Text.from_ansi(box).plain)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n?[ +]*[─-]{3,}.*\n", text)]
    paragraphs = [part for part in paragraphs[1:] if part] or [" ".join(text.split())]
    sentence = paragraphs[0].rstrip(".")
    if match := re.match(r"Error parsing (?!--)\S+: (.*)", sentence):  # From a dataclass of azjax.
        return match[1]
    if match := re.match(r"invalid choice '(.*)' for argument '(.*)'. .* of \((.*)\)", sentence):
        value, option, choices = match[1], match[2], re.findall(r"'([^']*)'", match[3])
        choices = sorted({*choices} - {"None"})
        known = " or ".join(map(repr, choices)) + did_you_mean(value, choices)
        return f"{option} is {value!r}: use {known}"
    if match := re.match(r"Error parsing (--\S+): .* (int\(\)|float).*: ('.*')$", sentence):
        return (
            f"{match[1]} is {match[3]}: use {'a number' if match[2] == 'float' else 'an integer'}"
        )
    if match := re.match(r"Missing value for argument '(.*)'\.", sentence):
        return f"{match[1]} has no value: add one, or leave it out"
    if match := re.match(r"Error parsing (--\S+): .*?\[('.*?')\]", sentence):
        sentence = f"{match[1]} cannot be {match[2]}"
    similar = [re.findall(r"--[\w.-]*\w", part) for part in paragraphs if part.startswith("Perha")]
    names = [name for name in dict.fromkeys(similar[0] if similar else ()) if name != "--help"]
    meant = f", perhaps you meant {' or '.join(names)}" if names else ""
    return f"{sentence}{meant}: {command(*prog.split(), '--help')} lists what is allowed"


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
    """Shows the progress of a report until the `with` block ends; yields its function `notify`.

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
