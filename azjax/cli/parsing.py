"""Parses command lines into dataclasses with tyro."""

import ast
import contextlib
import dataclasses
import functools
import inspect
import io
import itertools
import os
import re
import shutil
import sys
import textwrap
import typing
from collections.abc import Iterator
from typing import Annotated, Any

import tyro
from rich.text import Text
from tyro.constructors import StructConstructorSpec, StructFieldSpec, StructTypeInfo

from azjax._commands import command
from azjax._settings import did_you_mean


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
