"""Checks of settings, in the words of the command line, and their way back from JSON."""

import dataclasses
import typing
from typing import Any, Literal

import jax
import numpy as np

# What no setting exceeds that has no bound of its own: so many still fit 32 bits, and products
# of two weights fit float32.
MOST = 1_000_000_000
MOST_SIMULATIONS = 1_000_000  # Of a search; its tree has room for all of them.


def check_types(section: str, config: Any) -> None:
    """Refuses values that are not of their fields' types, or none of their `Literal` choices.

    Numbers of NumPy become Python's, and whole ones fractions where those are wanted, so that a
    configuration can be hashed and written as JSON. A JAX array in the place of a number goes
    unchecked, so that a setting may be traced, to be swept under `vmap`.

    Args:
      section: the configuration's name on the command line, such as `search`; `--` for options
        without a section, and nothing for what stands above all sections.
      config: a dataclass instance.

    Raises:
      ValueError: naming the setting, its value and the type or the choices.
    """
    for name, hint in typing.get_type_hints(type(config)).items():
        value = _checked(_full_name(section, name), getattr(config, name), hint)
        object.__setattr__(config, name, value)  # It is frozen for everybody else.


def check_range(
    section: str,
    config: Any,
    names: str,
    low: float,
    high: float | None = None,
    above: bool = False,
) -> None:
    """Refuses a number below `low` or above `high`.

    A JAX array goes unchecked, as in `check_types`.

    Args:
      section: as for `check_types`.
      config: a dataclass instance.
      names: the fields to check, separated by spaces.
      low: the smallest number that will do.
      high: the largest; `MOST` if None.
      above: whether `low` itself is too small.

    Raises:
      ValueError: naming the setting, its value and the range.
    """
    most = MOST if high is None else high
    for name in names.split():
        value = getattr(config, name)
        if isinstance(value, jax.Array) or low < value <= most or (value == low and not above):
            continue
        wanted = f"above {low}" if above else f"{low} or more"
        if high is not None:
            wanted = f"{low} to {high}"
        elif value > most:
            wanted = f"at most {most}"
        raise ValueError(f"{_full_name(section, name)} is {value}: use {wanted}")


def _full_name(section: str, name: str) -> str:
    if section == "--":
        return f"--{name.replace('_', '-')}"
    return f"{section}.{name}" if section else name


def from_dict(cls: Any, content: Any, prefix: str = "") -> Any:
    """Builds a (nested) dataclass of settings from a JSON object.

    Args:
      cls: the dataclass, which checks the types of its fields; entries left out have their
        defaults.
      content: the object.
      prefix: what error messages put before the entries' names.

    Raises:
      ValueError: if an entry is unknown, of a wrong type or out of range.
    """
    if not isinstance(content, dict):
        raise ValueError(f"{prefix.rstrip('.') or 'the content'} is {content!r}, not an object")
    hints = typing.get_type_hints(cls)
    found = {}
    for name, value in content.items():
        if name not in hints:
            raise ValueError(f"unknown setting {prefix + name!r}: use one of {', '.join(hints)}")
        nested = dataclasses.is_dataclass(hints[name])
        found[name] = from_dict(hints[name], value, f"{prefix}{name}.") if nested else value
    return cls(**found)


def _checked(name: str, value: Any, hint: Any) -> Any:
    """Returns a setting's value, as Python's own, if it is of the type that the setting has."""
    if isinstance(value, jax.Array) and hint in (int, float):
        return value
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"{name} is {value!r}: use {' or '.join(map(repr, choices))}")
        return value
    if typing.get_origin(hint) is tuple and isinstance(value, list | tuple):
        return tuple(_checked(name, item, choices[0]) for item in value)
    if hint is float and type(value) is int:  # The largest have no fraction equal to them.
        return float(value) if abs(value) <= MOST else value
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
