"""Parses command lines into dataclasses of settings, with argparse.

A field of a nested dataclass is the option `--section.field value`. If a section can be of several
kinds, its tag chooses one, as in `--network.kind mlp`. A boolean is `--field` or `--no-field`. The
docstring below a field is its help.
"""

import argparse
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
from typing import Any, Literal, NamedTuple, NoReturn

from azjax._commands import command
from azjax._settings import check_kind, checked, did_you_mean, field_docs, find_kinds

_LITERAL: Any = Literal  # Its arguments are known only when the program runs.
_UNSHOWN = None, (), "", dataclasses.MISSING  # Defaults.


class Place(enum.Enum):
    """Where a field stands on the command line, as in `Annotated[str, Place.POSITIONAL]`."""

    POSITIONAL = enum.auto()  # Its words follow no option.
    FLAT = enum.auto()  # The fields of this dataclass are options without a prefix.
    HIDDEN = enum.auto()  # It is not on the command line.


class Setting(NamedTuple):
    """A field on the command line."""

    name: str  # Such as `network.kind`; empty for the positional one.
    path: tuple[str, ...]  # The fields that lead to it.
    hint: Any
    default: Any
    owner: type  # The dataclass.


class _Parser(argparse.ArgumentParser):
    """Raises a ValueError instead of ending the program, and never abbreviates options."""

    def __init__(self, prog: str, **settings: Any):
        style = argparse.RawDescriptionHelpFormatter
        nothing = argparse.SUPPRESS
        super().__init__(
            prog, formatter_class=style, argument_default=nothing, allow_abbrev=False, **settings
        )

    def error(self, message: str) -> NoReturn:
        shown = command(*self.prog.split(), "--help")
        raise ValueError(f"{message.removeprefix('argument ')} ({shown} lists what is allowed)")


def parse(cls: Any, arguments: Sequence[str] | None, prog: str, description: str = "") -> Any:
    """Parses a command line, by default that of this process; see `fill`."""
    return fill(defaults(cls), sys.argv[1:] if arguments is None else arguments, prog, description)


def defaults(cls: Any) -> Any:
    """Returns an instance with all defaults, unchecked; fields without one are `MISSING`."""
    made = object.__new__(cls)
    for field in dataclasses.fields(cls):
        factory = field.default_factory
        value = field.default if factory is dataclasses.MISSING else factory()
        object.__setattr__(made, field.name, value)
    return made


def spell(name: str) -> str:
    """Returns the option of a setting."""
    return f"--{name.replace('_', '-')}"


def fill(default: Any, words: Sequence[str], prog: str, description: str = "") -> Any:
    """Returns a dataclass with the values of a command line.

    Args:
      default: an instance with the default values.
      words: the command line; dashes and underscores in the names of options are the same.
      prog: the program, such as `azjax train`.
      description: added to the help, after the docstring of the class.
    """
    default = choose_kinds(default, words)
    settings = list(_list_settings(default))
    width = shutil.get_terminal_size().columns - 2
    about = f"{inspect.getdoc(type(default))}\n\n{description}".strip().splitlines()
    place = "".join(f"[{s.path[-1].upper()}] " for s in settings if not s.name)
    parser = _Parser(
        prog,
        usage=f"%(prog)s {place}[OPTIONS]",
        description="\n".join(textwrap.fill(line, width) for line in about),
    )
    groups: dict[str, Any] = {"": parser}
    for setting in settings:
        section = setting.name.rpartition(".")[0]
        if section not in groups:
            groups[section] = parser.add_argument_group(section)
        _add(groups[section], setting)
    found, rest = parser.parse_known_intermixed_args(_with_dashes(words))
    if rest:
        meant = did_you_mean(rest[0].partition("=")[0], [spell(s.name) for s in settings if s.name])
        parser.error(f"{rest[0]!r} is unknown here{meant}")
    values = {}
    for setting in settings:
        if (dest := ".".join(setting.path)) in vars(found):
            option = spell(setting.name) if setting.name else setting.path[-1]
            value = vars(found)[dest]
            value = tuple(value) if isinstance(value, list) else value
            values[setting.path] = checked(option, value, setting.hint)
    return _build(default, values)


def peek(words: Iterable[str], *names: str) -> tuple[dict[str, str], list[str]]:
    """Returns the values of some options with one word each, by their names, and other words."""
    parser = _Parser("azjax", add_help=False)
    for name in names:
        parser.add_argument(spell(name), dest=name)
    found, rest = parser.parse_known_args(_with_dashes(words))
    return vars(found), rest


def given(words: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the settings that a command line has, such as `selfplay.games`."""
    names = [word[2:].partition("=")[0] for word in words if word.startswith("--")]
    return tuple(re.sub(r"(^|\.)no_", r"\1", name.replace("-", "_")) for name in names)


def _with_dashes(words: Iterable[str]) -> list[str]:
    return [re.sub("^--[^=]*", lambda name: name[0].replace("_", "-"), word) for word in words]


def _read_fields(default: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any, str]]:
    """Yields the name, type and default of each field, and the prefix of the fields within it."""
    hints = typing.get_type_hints(type(default), include_extras=True)
    for name in (field.name for field in dataclasses.fields(default)):
        hint = hints[name]
        is_flat = Place.FLAT in getattr(hint, "__metadata__", ())
        yield name, hint, getattr(default, name), prefix if is_flat else f"{prefix}{name}."


def choose_kinds(default: Any, words: Sequence[str], prefix: str = "") -> Any:
    """Replaces sections by the defaults of the kinds that options such as `--network.kind` name.

    Sections that already have the kind stay as they are.
    """
    changes = {}
    for name, hint, old, inner in _read_fields(default, prefix):
        if not dataclasses.is_dataclass(old):
            continue
        value: Any = old
        if kinds := find_kinds(hint):
            names = [n.removeprefix(inner) for n in given(words) if n.startswith(inner)]
            current = getattr(value, kinds.tag)
            chosen = peek(words, inner + kinds.tag)[0].get(inner + kinds.tag, current)
            check_kind(kinds, chosen, names, spell(inner))
            value = value if chosen == current else kinds.classes[chosen]()
        value = choose_kinds(value, words, inner)
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


def _kind_of(hint: Any) -> tuple[Any, bool]:
    """Returns the type of a value without its range and None, and whether there are several."""
    several = False
    while typing.get_origin(hint) not in (None, Literal):
        several |= typing.get_origin(hint) is tuple
        hint = typing.get_args(hint)[0]
    return hint, several


def _add(group: Any, setting: Setting) -> None:
    """Adds a setting to a parser or to one of its groups."""
    dest, (kind, several) = ".".join(setting.path), _kind_of(setting.hint)
    text = field_docs(setting.owner).get(setting.path[-1], "")
    if typing.get_origin(kind) is Literal:
        text += f" Choices: {', '.join(typing.get_args(kind))}."
    section, dot, name = setting.name.rpartition(".")
    negated = spell(f"{section}{dot}no_{name}")
    if setting.default is True:
        text += f" (default; {negated} switches it off)"
    elif setting.default is not False and setting.default not in _UNSHOWN:
        words = setting.default if isinstance(setting.default, tuple) else (setting.default,)
        text += f" (default: {' '.join(map(str, words))})"
    text = text.replace("%", "%%")
    if kind is bool:
        group.add_argument(spell(setting.name), dest=dest, action="store_true", help=text)
        group.add_argument(negated, dest=dest, action="store_false", help=argparse.SUPPRESS)
        return
    number: dict[Any, str] = {int: "INT", float: "FLOAT", pathlib.Path: "PATH"}
    one = None if setting.name else "?"
    settings: dict[str, Any] = {"nargs": "*" if several else one, "help": text}
    settings["type"] = kind if kind in number else str
    if setting.name:
        group.add_argument(
            spell(setting.name), dest=dest, metavar=number.get(kind) or "TEXT", **settings
        )
    else:
        group.add_argument(dest, metavar=dest.upper(), **settings)
