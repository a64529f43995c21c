"""Parses command lines into dataclasses of settings.

A field of a nested dataclass is the option `--section.field value`. If a section can be of several
kinds, its tag chooses one, as in `--network.kind mlp`. A boolean is `--field` or `--no-field`. The
docstring below a field is its help.
"""

import dataclasses
import enum
import inspect
import pathlib
import re
import shutil
import sys
import textwrap
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from azjax._commands import command
from azjax._settings import check_kind, checked, did_you_mean, field_docs, find_kinds

_LITERAL: Any = Literal  # Its arguments are known only when the program runs.
_UNSHOWN = None, (), "", dataclasses.MISSING  # Defaults.


class Place(enum.Enum):
    """Where a field stands on the command line, as in `Annotated[str, Place.POSITIONAL]`."""

    POSITIONAL = enum.auto()  # Its words follow no option.
    FLAT = enum.auto()  # The fields of this dataclass are options without a prefix.
    HIDDEN = enum.auto()  # It is not on the command line.


class Line(NamedTuple):
    """The words of a command line.

    Attributes:
      words: those before any option, and those after `--option=value`.
      options: all words between an option and the next, by its name, such as `network.kind`. The
        last of repeated options counts.
    """

    words: list[str]
    options: dict[str, list[str]]

    @property
    def asks_for_help(self) -> bool:
        """Whether one of the options is `--help` or `-h`."""
        return not self.options.keys().isdisjoint({"h", "help"})

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the word after an option; an option without one raises a ValueError."""
        return _first(spell(name), self.options.get(name, [default]))


class Setting(NamedTuple):
    """A field on the command line."""

    name: str  # Such as `network.kind`; empty for the positional one.
    path: tuple[str, ...]  # The fields that lead to it.
    hint: Any
    default: Any
    owner: type  # The dataclass.


def parse(cls: Any, arguments: Sequence[str] | None, prog: str, description: str = "") -> Any:
    """Parses a command line, by default that of this process; see `fill`."""
    line = read(sys.argv[1:] if arguments is None else arguments)
    return fill(defaults(cls), line, prog, description)


def defaults(cls: Any) -> Any:
    """Returns an instance with all defaults, unchecked; fields without one are `MISSING`."""
    made = object.__new__(cls)
    for field in dataclasses.fields(cls):
        factory = field.default_factory
        value = field.default if factory is dataclasses.MISSING else factory()
        object.__setattr__(made, field.name, value)
    return made


def read(arguments: Iterable[str]) -> Line:
    """Finds the options of a command line; dashes and underscores in their names are the same."""
    line = Line([], {})
    words = line.words
    for argument in arguments:
        if not re.match("--?[A-Za-z]", argument):  # Negative numbers are values.
            words.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        own = line.options[name.replace("-", "_")] = [value] if equals else []
        words = line.words if equals else own
    return line


def spell(name: str) -> str:
    """Returns the option of a setting."""
    return f"--{name.replace('_', '-')}"


def fill(default: Any, line: Line, prog: str, description: str = "") -> Any:
    """Returns a dataclass with the values of a command line.

    Args:
      default: an instance with the default values.
      line: the command line.
      prog: the program, such as `azjax train`.
      description: added to the help, after the docstring of the class.
    """
    default = choose_kinds(default, line)
    settings = {setting.name: setting for setting in _list_settings(default)}
    if line.asks_for_help:
        _print_help(settings, prog, f"{inspect.getdoc(type(default))}\n\n{description}")
        sys.exit(0)
    listed = f"{command(*prog.split(), '--help')} lists what is allowed"
    negated = {_negate(name): name for name in settings if settings[name].hint is bool}
    values: dict[tuple[str, ...], Any] = {}
    words = [*line.words]  # Those that no option takes.
    for name, own in line.options.items():
        setting = settings.get(negated.get(name, name))
        if setting is None:
            meant = did_you_mean(spell(name), map(spell, filter(None, settings)))
            raise ValueError(f"unknown option {spell(name)}: {listed}{meant}")
        value, rest = _take(setting, own)
        values[setting.path] = False if name in negated else value
        words += rest
    if words and "" in settings:
        values[settings[""].path], words = _take(settings[""], words)
    if words:
        raise ValueError(f"{words[0]!r} follows no option that takes it: {listed}")
    return _build(default, values)


def _negate(name: str) -> str:
    section, dot, field = name.rpartition(".")
    return f"{section}{dot}no_{field}"


def _first(option: str, words: Sequence[Any]) -> Any:
    if not words:
        raise ValueError(f"{option} has no value: add one, or leave it out")
    return words[0]


# Dataclasses.


def _read_fields(default: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any, str]]:
    """Yields the name, type and default of each field, and the prefix of the fields within it."""
    hints = typing.get_type_hints(type(default), include_extras=True)
    for name in (field.name for field in dataclasses.fields(default)):
        hint = hints[name]
        is_flat = Place.FLAT in getattr(hint, "__metadata__", ())
        yield name, hint, getattr(default, name), prefix if is_flat else f"{prefix}{name}."


def choose_kinds(default: Any, line: Line, prefix: str = "") -> Any:
    """Replaces sections by the defaults of the kinds that options such as `--network.kind` name.

    Sections that already have the kind stay as they are.
    """
    changes = {}
    for name, hint, old, inner in _read_fields(default, prefix):
        if not dataclasses.is_dataclass(old):
            continue
        value: Any = old
        if kinds := find_kinds(hint):
            given = [option for option in line.options if option.startswith(inner)]
            names = [option[len(inner) :].partition(".")[0].removeprefix("no_") for option in given]
            current = getattr(value, kinds.tag)
            chosen = line.get(inner + kinds.tag, current)
            check_kind(kinds, chosen, names, spell(inner))
            value = value if chosen == current else kinds.classes[chosen]()
        value = choose_kinds(value, line, inner)
        if value is not old:
            changes[name] = value
    return dataclasses.replace(default, **changes) if changes else default


def _list_settings(default: Any, prefix: str = "", path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """Lists the fields of a (nested) dataclass that are on the command line."""
    for name, hint, value, inner in _read_fields(default, prefix):
        places = getattr(hint, "__metadata__", ())
        if dataclasses.is_dataclass(value) and Place.HIDDEN not in places:
            kinds = find_kinds(hint)
            for setting in _list_settings(value, inner, (*path, name)):
                if kinds and setting.name == inner + kinds.tag:
                    setting = setting._replace(hint=_LITERAL[*kinds.classes])
                yield setting
        elif Place.HIDDEN not in places:
            option = "" if Place.POSITIONAL in places else prefix + name
            yield Setting(option, (*path, name), hint, value, type(default))


def _build(default: Any, values: Mapping[tuple[str, ...], Any], path: tuple[str, ...] = ()) -> Any:
    """Returns the dataclass with the values of some fields, by their paths."""
    fields = {}
    for name, _, value, _ in _read_fields(default):
        inner = (*path, name)
        is_section = dataclasses.is_dataclass(value)
        fields[name] = _build(value, values, inner) if is_section else values.get(inner, value)
        if fields[name] is dataclasses.MISSING:
            raise ValueError(f"{spell(name)} is missing: add it")
    return type(default)(**fields)


# Values.


def _kind_of(hint: Any) -> tuple[Any, bool]:
    """Returns the type of a value without its range and None, and whether there are several."""
    several = False
    while typing.get_origin(hint) not in (None, Literal):
        several |= typing.get_origin(hint) is tuple
        hint = typing.get_args(hint)[0]
    return hint, several


def _take(setting: Setting, words: Sequence[str]) -> tuple[Any, list[str]]:
    """Returns the value of a setting, checked, and the words after it."""
    option = spell(setting.name) if setting.name else setting.path[-1]
    kind, several = _kind_of(setting.hint)
    if kind is bool:
        return True, [*words]
    taken = words if several else [_first(option, words)]
    try:
        values = [kind(word) if kind in (int, float, pathlib.Path) else word for word in taken]
    except ValueError:
        number = "an integer" if kind is int else "a number"
        raise ValueError(f"{option} is {' '.join(taken)!r}: use {number}") from None
    value = checked(option, values if several else values[0], setting.hint)
    return value, [*words[len(taken) :]]


# Help.


def _print_help(settings: Mapping[str, Setting], prog: str, about: str) -> None:
    width = shutil.get_terminal_size().columns - 2
    usage = f"usage: {prog} {_describe_value(settings['']) if '' in settings else ''}"
    lines = [f"{usage.rstrip()} [OPTIONS]", ""]
    for paragraph in about.strip().splitlines():
        lines += textwrap.wrap(paragraph, width) or [""]
    section, indent = None, " " * 6
    for setting in sorted(settings.values(), key=lambda setting: "." in setting.name):
        if setting.name.rpartition(".")[0] != section:
            section = setting.name.rpartition(".")[0]
            lines += ["", f"{section or 'options'}:"]
        head = f"{spell(setting.name) if setting.name else ''} {_describe_value(setting)}"
        lines += textwrap.wrap(head.strip(), width, initial_indent="  ", subsequent_indent=indent)
        text = field_docs(setting.owner).get(setting.path[-1], "")
        if setting.default is not False and setting.default not in _UNSHOWN:
            default = "yes" if setting.default is True else setting.default
            words = default if isinstance(default, tuple) else (default,)
            text += f" (default: {' '.join(map(str, words))})"
        lines += textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)
    print("\n".join(lines))


def _describe_value(setting: Setting) -> str:
    """Writes what may follow an option: choices, or a word for a type."""
    kind, several = _kind_of(setting.hint)
    if kind is bool:
        return f"or {spell(_negate(setting.name))}" if setting.default else ""
    if not setting.name:
        value = f"[{setting.path[-1].upper().removesuffix('S')}]"
    elif typing.get_origin(kind) is Literal:
        value = "{" + ",".join(typing.get_args(kind)) + "}"
    else:
        value = {int: "INT", float: "FLOAT", pathlib.Path: "PATH"}.get(kind, "TEXT")
    return f"{value} ..." if several else value
