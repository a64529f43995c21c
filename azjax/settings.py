"""Checks of settings, in the words of the command line, and their way back from JSON."""

import dataclasses
import typing
from typing import Any, Literal

import jax


def check_choices(section: str, config: Any) -> None:
    """Refuses a value that is none of its field's `Literal` choices.

    Args:
      section: the configuration's name on the command line, such as `search`.
      config: a dataclass instance.

    Raises:
      ValueError: naming the setting, its value and the choices.
    """
    for name, hint in typing.get_type_hints(type(config)).items():
        value, choices = getattr(config, name), typing.get_args(hint)
        if typing.get_origin(hint) is Literal and value not in choices:
            raise ValueError(
                f"{section}.{name} is {value!r}: use {' or '.join(map(repr, choices))}"
            )


def check_range(
    section: str, config: Any, names: str, low: float, high: float | None = None
) -> None:
    """Refuses a number below `low` or above `high`.

    A JAX array goes unchecked, so that a setting may be traced, to be swept under `vmap`.

    Args:
      section: the configuration's name on the command line, such as `search`.
      config: a dataclass instance.
      names: the fields to check, separated by spaces.
      low: the smallest number that will do.
      high: the largest, if there is one.

    Raises:
      ValueError: naming the setting, its value and the range.
    """
    for name in names.split():
        value = getattr(config, name)
        if isinstance(value, jax.Array):
            continue
        if not value >= low or (high is not None and value > high):
            wanted = f"{low} or more" if high is None else f"{low} to {high}"
            raise ValueError(f"{section}.{name} is {value}: use {wanted}")


def from_dict(cls: Any, content: Any, prefix: str = "") -> Any:
    """Builds a (nested) dataclass of settings from a JSON object.

    Args:
      cls: the dataclass; entries left out have their defaults.
      content: the object.
      prefix: what error messages put before the entries' names.

    Raises:
      ValueError: if an entry is unknown, of a wrong type or out of range.
    """
    if not isinstance(content, dict):
        raise ValueError(f"{prefix.rstrip('.') or 'the content'} is {content!r}, not an object")
    hints = typing.get_type_hints(cls)
    for name in content:
        if name not in hints:
            raise ValueError(f"unknown setting {prefix + name!r}: use one of {', '.join(hints)}")
    return cls(**{k: _checked(prefix + k, v, hints[k]) for k, v in content.items()})


def _checked(name: str, value: Any, hint: Any) -> Any:
    """Returns a setting's value if it is of the type that the setting has."""
    choices = typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, f"{name}.")
    if typing.get_origin(hint) is Literal:
        if value not in choices:
            raise ValueError(f"{name} is {value!r}: use {' or '.join(map(repr, choices))}")
        return value
    if typing.get_origin(hint) is tuple and isinstance(value, (list, tuple)):
        return tuple(_checked(name, item, choices[0]) for item in value)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        wanted = hint.__name__ if isinstance(hint, type) else str(hint)
        raise ValueError(f"{name} is {value!r}, which is not of type {wanted}")
    return value


def flatten(config: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Lists the settings of a (nested) dataclass with their dotted names."""
    found = []
    for field in dataclasses.fields(config):
        value, name = getattr(config, field.name), prefix + field.name
        nested = dataclasses.is_dataclass(value)
        found += flatten(value, f"{name}.") if nested else [(name, value)]
    return found
