"""Parses command lines into dataclasses of settings, with argparse.

A field of a nested dataclass is the option `--section.field value`. If a section can be of several
kinds, its tag chooses one, as in `--network.kind mlp`. A boolean is `--field` or `--no-field`. The
docstring below a field is its help.

`read` turns words into values once; `build` puts them into a dataclass, as often as needed.
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

from azjax import _settings as settings
from azjax._commands import command

_METAVARS: dict[Any, str] = {int: "INT", float: "FLOAT", pathlib.Path: "PATH"}


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


class _Option(NamedTuple):
    name: str  # Such as `network.width`.
    hint: Any
    places: tuple[Place, ...]
    default: Any
    text: str  # Its help.
    group: str  # Of the options with the same prefix.


def parse(cls: Any, arguments: Sequence[str] | None, prog: str, description: str = "") -> Any:
    """Returns a dataclass with the values of a command line, by default that of this process."""
    words = sys.argv[1:] if arguments is None else arguments
    return build(cls(), read(cls(), words, prog, description))


def read(default: Any, words: Sequence[str], prog: str, description: str = "") -> dict[str, Any]:
    """Returns the values on a command line by option, such as `{"network.width": 64}`.

    Args:
      default: an instance of the dataclass of options; the help shows its values.
      words: the command line; dashes and underscores in the names of options are the same.
      prog: the program, such as `azjax train`.
      description: added to the help, after the docstring of the class.
    """
    width = shutil.get_terminal_size().columns - 2
    about = f"{inspect.getdoc(type(default))}\n\n{description}".strip().splitlines()
    parser = _Parser(prog, "\n".join(textwrap.fill(line, width) for line in about))
    options: dict[str, _Option] = {}
    for option in _list_options(default):  # Several kinds can have the same option.
        options.setdefault(option.name, option)
    _add_options(parser, options.values())
    places = [name for name, option in options.items() if Place.POSITIONAL in option.places]
    parser.usage = f"%(prog)s {''.join(f'[{name.upper()}] ' for name in places)}[OPTIONS]"
    words = [re.sub("^--[^=]*", lambda name: name[0].replace("_", "-"), word) for word in words]
    given, rest = parser.parse_known_intermixed_args(words)
    if rest:
        hint = settings.did_you_mean(rest[0].partition("=")[0], map(spell, options))
        if not places and "game" in options and not rest[0].startswith("-"):
            hint = f"; did you mean --game {rest[0]}?"
        parser.error(f"{rest[0]!r} is unknown here{hint}")
    return {
        name: settings.checked(name if name in places else spell(name), value, options[name].hint)
        for name, value in vars(given).items()
    }


def build(default: Any, given: Mapping[str, Any], prefix: str = "") -> Any:
    """Replaces the values of a dataclass, and the kinds of its sections, by those from `read`.

    A section of another kind keeps the settings that both kinds have.
    """
    changes = {}
    for name, value, _, inner, kinds in _list_fields(default, prefix):
        if dataclasses.is_dataclass(value):
            section = _choose_kind(value, kinds, given, inner) if kinds else value
            changes[name] = build(section, given, inner)
        else:
            changes[name] = given.get(prefix + name, value)
    return dataclasses.replace(default, **changes)


def _choose_kind(old: Any, kinds: settings.Kinds, given: Mapping[str, Any], prefix: str) -> Any:
    chosen = given.get(prefix + kinds.tag, getattr(old, kinds.tag))
    for option in (option for option in given if option.startswith(prefix)):
        owners = _find_owners(kinds, option.removeprefix(prefix))
        if chosen not in owners:
            raise ValueError(
                f"{spell(option)} is a setting of {' and '.join(owners)}: leave it out, or add "
                f"{spell(prefix + kinds.tag)} {' or '.join(owners)}"
            )
    cls = kinds.classes[chosen]
    shared = {field.name for field in dataclasses.fields(cls) if hasattr(old, field.name)}
    return cls(**{name: getattr(old, name) for name in shared - {kinds.tag}})


def _find_owners(kinds: settings.Kinds, name: str) -> list[str]:
    """Returns the kinds that have a setting of this name."""
    classes = kinds.classes.items()
    return [kind for kind, cls in classes if name in {f.name for f in dataclasses.fields(cls)}]


def spell(name: str) -> str:
    """Returns the option of a setting."""
    return f"--{name.replace('_', '-')}"


def _list_fields(default: Any, prefix: str) -> Iterator[tuple[str, Any, Any, str, Any]]:
    """Yields each field's name, value and type, the prefix of those in it, and its kinds."""
    hints = typing.get_type_hints(type(default), include_extras=True)
    for name in (field.name for field in dataclasses.fields(default)):
        is_flat = Place.FLAT in getattr(hints[name], "__metadata__", ())
        value, kinds = getattr(default, name), settings.find_kinds(hints[name])
        custom = kinds.classes.pop("custom", None) if kinds else None  # Not chosen by its tag.
        if custom is type(value):
            continue  # Another option names it, as a file.
        yield name, value, hints[name], prefix if is_flat else f"{prefix}{name}.", kinds


def _list_options(default: Any, prefix: str = "") -> Iterator[_Option]:
    """Yields the options of a dataclass, with those of all kinds of its sections."""
    texts = settings.field_docs(type(default))
    for name, value, hint, inner, kinds in _list_fields(default, prefix):
        if not dataclasses.is_dataclass(value):
            places = getattr(hint, "__metadata__", ())
            yield _Option(prefix + name, hint, places, value, texts.get(name, ""), prefix[:-1])
            continue
        others = kinds.classes.values() if kinds else ()
        for section in (value, *(cls() for cls in others if cls is not type(value))):
            for option in _list_options(section, inner):
                yield _mention_kinds(option, inner, kinds) if kinds else option


def _mention_kinds(option: _Option, prefix: str, kinds: settings.Kinds) -> _Option:
    if option.name == prefix + kinds.tag:
        return option._replace(hint=Literal[*kinds.classes])
    owners = _find_owners(kinds, option.name.removeprefix(prefix))
    text = "" if len(owners) == len(kinds.classes) else f" Only for {' and '.join(owners)}."
    return option._replace(text=option.text + text)


def _unwrap(hint: Any) -> tuple[Any, bool]:
    """Returns a type without its range, None and `tuple`, and whether it was a tuple."""
    several = False
    while typing.get_origin(hint) not in (None, Literal):
        several |= typing.get_origin(hint) is tuple
        hint = typing.get_args(hint)[0]
    return hint, several


def _add_options(parser: _Parser, options: Iterable[_Option]) -> None:
    groups: dict[str, Any] = {"": parser}
    for name, hint, places, default, text, section in options:
        if section not in groups:
            groups[section] = parser.add_argument_group(section)
        group, option = groups[section], spell(name)
        negated = spell(re.sub(r"(\w+)$", r"no_\1", name))
        kind, several = _unwrap(hint)
        if typing.get_origin(kind) is Literal:
            text += f" Choices: {', '.join(typing.get_args(kind))}."
        if default is True:
            text += f" (default; {negated} switches it off)"
        elif default is not False and default not in (None, (), ""):
            values = default if isinstance(default, tuple) else (default,)
            text += f" (default: {' '.join(map(str, values))})"
        text = text.replace("%", "%%")
        of, shown = kind if kind in _METAVARS else str, _METAVARS.get(kind) or "TEXT"
        several = "*" if several else None
        if kind is bool:
            group.add_argument(option, dest=name, action="store_true", help=text)
            group.add_argument(negated, dest=name, action="store_false", help=argparse.SUPPRESS)
        elif Place.POSITIONAL in places:
            group.add_argument(name, metavar=name.upper(), nargs=several or "?", type=of, help=text)
        else:
            action = "extend" if several else "store"  # Such an option can be repeated.
            group.add_argument(
                option, dest=name, metavar=shown, nargs=several, type=of, help=text, action=action
            )
