"""Checks of settings, in the words of the command line; the configurations call them."""

import typing
from typing import Any, Literal


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
            raise ValueError(f"{section}.{name} is {value!r}: use {' or '.join(map(repr, choices))}")


def check_range(
    section: str, config: Any, names: str, low: float, high: float | None = None
) -> None:
    """Refuses a number below `low` or above `high`.

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
        if not value >= low or (high is not None and value > high):
            wanted = f"{low} or more" if high is None else f"{low} to {high}"
            raise ValueError(f"{section}.{name} is {value}: use {wanted}")
