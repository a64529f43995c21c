"""Parses command lines into dataclasses of settings, with argparse.

A field of a nested dataclass is the option `--section.field value`. If a section can be of several
kinds, its tag chooses one, as in `--network.kind mlp`. A boolean is `--field` or `--no-field`. The
docstring below a field is its help.
"""

import argparse
import dataclasses
import enum
import functools
import inspect
import itertools
import operator
import pathlib
import re
import shutil
import sys
import textwrap
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn

from azjax import _settings as settings
from azjax._commands import command

_NUMBERS: dict[Any, str] = {int: "INT", float: "FLOAT", pathlib.Path: "PATH"}


class Place(enum.Enum):
    """Where a field stands on the command line, as in `Annotated[str, Place.POSITIONAL]`."""

    POSITIONAL = enum.auto()  # Its words follow no option.
    FLAT = enum.auto()  # The fields of this dataclass are options without a prefix.


class _Parser(argparse.ArgumentParser):
    """Raises a ValueError instead of ending the program, and never abbreviates options."""

    def __init__(self, prog: str, about: str):
        style, nothing = argparse.RawDescriptionHelpFormatter, argparse.SUPPRESS
        super().__init__(
            prog, None, about, formatter_class=style, argument_default=nothing, allow_abbrev=False
        )

    def error(self, message: str) -> NoReturn:
        shown = command(*self.prog.split(), "--help")
        raise ValueError(f"{message.removeprefix('argument ')} ({shown} lists what is allowed)")


def parse(cls: Any, arguments: Sequence[str] | None, prog: str, description: str = "") -> Any:
    """Parses a command line, by default that of this process; see `fill`."""
    return fill(cls(), sys.argv[1:] if arguments is None else arguments, prog, description)


def fill(default: Any, words: Sequence[str], prog: str, description: str = "") -> Any:
    """Returns a dataclass with the values of a command line.

    Args:
      default: an instance with the default values, of the kinds that `choose_kinds` returns.
      words: the command line; dashes and underscores in the names of options are the same.
      prog: the program, such as `azjax train`.
      description: added to the help, after the docstring of the class.
    """
    width = shutil.get_terminal_size().columns - 2
    about = f"{inspect.getdoc(type(default))}\n\n{description}".strip().splitlines()
    parser = _Parser(prog, "\n".join(textwrap.fill(line, width) for line in about))
    hints = dict(_add_options(parser, default))
    places = [f"[{path.upper()}] " for path, (option, _) in hints.items() if option == path]
    parser.usage = f"%(prog)s {''.join(places)}[OPTIONS]"
    found, rest = parser.parse_known_intermixed_args(_with_dashes(words))
    if rest:
        options = [option for option, _ in hints.values()]
        option = rest[0].partition("=")[0]
        for tag, kinds in _kinds_with(default, option):
            raise ValueError(
                f"{option} is a setting of {' and '.join(kinds)}: leave it out, or add {tag} "
                f"{' or '.join(kinds)}"
            )
        hint = settings.did_you_mean(option, options)
        if not places and "--game" in options and not option.startswith("-"):
            hint = f"; did you mean --game {option}?"
        parser.error(f"{rest[0]!r} is unknown here{hint}")
    content = dataclasses.asdict(default)
    for path, value in vars(found).items():
        option, hint = hints[path]
        *sections, name = path.split(".")
        section = functools.reduce(operator.getitem, sections, content)
        section[name] = settings.checked(option, value, hint)
    return settings.from_dict(type(default), content)


def _kinds_with(default: Any, option: str, prefix: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yields the option that chooses the kind of a section, and the kinds that have `option`."""
    for _, _, _, value, inner, kinds in _read_fields(default, prefix):
        if kinds:
            names = [
                name
                for name, kind in kinds.classes.items()
                if option in {spell(inner + field.name) for field in dataclasses.fields(kind)}
            ]
            if names:
                yield spell(inner + kinds.tag), names
        if dataclasses.is_dataclass(value):
            yield from _kinds_with(value, option, inner)


def scan(words: Iterable[str]) -> dict[str, str | None]:
    """Returns the word after each option of a command line, if any, by the name of the option.

    Of options that are given again, or negated, only the last one counts.
    """
    found: dict[str, str | None] = {}
    for word, following in itertools.pairwise([*_with_dashes(words), "--"]):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found.pop(name.removeprefix("no-"), None)
            found[name] = value if equals else None if following.startswith("--") else following
    return found


def spell(name: str) -> str:
    """Returns the option of a setting."""
    return f"--{name.replace('_', '-')}"


def _with_dashes(words: Iterable[str]) -> list[str]:
    return [re.sub("^--[^=]*", lambda name: name[0].replace("_", "-"), word) for word in words]


def choose_kinds(default: Any, given: Mapping[str, str | None], prefix: str = "") -> Any:
    """Replaces sections by those of the kinds that options such as `--network.kind` name.

    They keep the settings that both kinds have. `given` is from `scan`.
    """
    changes = {}
    for name, _, _, old, inner, kinds in _read_fields(default, prefix):
        value: Any = old
        if kinds:
            option = spell(inner + kinds.tag)
            chosen = kinds.choose(option, given.get(option[2:]) or getattr(old, kinds.tag))
            shared = {field.name for field in dataclasses.fields(chosen)} - {kinds.tag}
            value = chosen(**{name: getattr(old, name) for name in shared if hasattr(old, name)})
        if dataclasses.is_dataclass(old):
            value = choose_kinds(value, given, inner)
        if value is not old:
            changes[name] = value
    return dataclasses.replace(default, **changes) if changes else default


def _read_fields(default: Any, prefix: str = "") -> Iterator[tuple[Any, ...]]:
    """Yields each field's name, type, places, default, the prefix of those in it, and its kinds."""
    hints = typing.get_type_hints(type(default), include_extras=True)
    for name in (field.name for field in dataclasses.fields(default)):
        places = getattr(hints[name], "__metadata__", ())
        inner = prefix if Place.FLAT in places else f"{prefix}{name}."
        value, kinds = getattr(default, name), settings.find_kinds(hints[name])
        if kinds and kinds.classes.pop("custom", None) is type(value):
            continue  # Another option names it, as a file.
        yield name, hints[name], places, value, inner, kinds


def _add_options(
    parser: _Parser,
    default: Any,
    prefix: str = "",
    path: str = "",
    kinds: settings.Kinds | None = None,
) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Adds the fields of a dataclass to a parser; yields their paths, options and types."""
    group = parser.add_argument_group(prefix[:-1]) if prefix else parser
    for name, hint, places, value, inner, within in _read_fields(default, prefix):
        place = path + name
        if dataclasses.is_dataclass(value):
            yield from _add_options(parser, value, inner, f"{place}.", within)
            continue
        kind, several = hint, False
        while typing.get_origin(kind) not in (None, Literal):  # Without its range and None.
            several |= typing.get_origin(kind) is tuple
            kind = typing.get_args(kind)[0]
        text = settings.field_docs(type(default)).get(name, "")
        if typing.get_origin(kind) is Literal:
            choices = kinds.classes if kinds and kinds.tag == name else typing.get_args(kind)
            text += f" Choices: {', '.join(choices)}."
        option, negated = spell(prefix + name), spell(f"{prefix}no_{name}")
        if value is True:
            text += f" (default; {negated} switches it off)"
        elif value is not False and value not in (None, (), ""):
            words = value if isinstance(value, tuple) else (value,)
            text += f" (default: {' '.join(map(str, words))})"
        text = text.replace("%", "%%")
        of = kind if kind in _NUMBERS else str
        several = "*" if several else None
        if kind is bool:
            group.add_argument(option, dest=place, action="store_true", help=text)
            group.add_argument(negated, dest=place, action="store_false", help=argparse.SUPPRESS)
        elif Place.POSITIONAL in places:
            option = place
            shown = place.upper()
            group.add_argument(place, metavar=shown, nargs=several or "?", type=of, help=text)
        else:
            shown = _NUMBERS.get(kind) or "TEXT"
            action = "extend" if several else "store"  # Such an option can be repeated.
            group.add_argument(
                option, dest=place, metavar=shown, nargs=several, type=of, help=text, action=action
            )
        yield place, (option, hint)
