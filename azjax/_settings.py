"""Validation of dataclasses of settings, and their construction from JSON.

The value of a setting can be a nested dataclass of one of several kinds, such as `PUCT`, `Gumbel`
or `UCT` for the search. The type of the setting is then the union of these dataclasses. The first
field of each kind is its tag: a `Literal` whose default is the name of the kind.
"""

import ast
import contextlib
import dataclasses
import difflib
import inspect
import textwrap
import types
import typing
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

import jax
import numpy as np
from jax.core import Tracer

MOST = 1_000_000_000  # Default upper bound; it fits in 32 bits, and its square is a finite float32.
PLATFORMS = ("cpu", "gpu", "cuda", "rocm", "tpu")
# Decorates functions of mctx, optax and pgx, which fail under JAX's strict promotion of types.
mixes_types = jax.numpy_dtype_promotion("standard")


def resolve_platform(platform: str | None) -> str:
    """Returns a platform's name, checked; None means the platform of the default backend."""
    platform = jax.default_backend() if platform is None else platform
    return checked("platform", platform, Literal[*PLATFORMS])


class Range(NamedTuple):
    """The allowed range of a number, as in `Annotated[int, Range(1, 100)]`.

    `excludes` is the bound that does not belong to the range.
    """

    low: float
    high: float = MOST
    excludes: Literal["none", "low", "high"] = "none"

    def check(self, name: str, value: Any) -> None:
        """Raises a ValueError for a number out of range; accepts traced numbers."""
        if isinstance(value, Tracer):
            return
        is_excluded = value == {"low": self.low, "high": self.high}.get(self.excludes)
        if self.low <= value <= self.high and not is_excluded:
            return
        wanted = f"at most {MOST}" if value > MOST == self.high else self.describe()
        raise ValueError(f"{name} is {value}: use {wanted}")

    def describe(self, form: str = "") -> str:
        """Returns the range in words, with its numbers in a format."""
        low, high = f"{self.low:{form}}", f"{self.high:{form}}"
        if self.excludes == "low":
            return f"more than {low}"
        if self.high == MOST:
            return f"{low} or more"
        return f"{low} {'up to, not including,' if self.excludes == 'high' else 'to'} {high}"


MOST_SIMULATIONS = 1_000_000  # The search tree has a node for each.

# Types of settings with the usual ranges.
Positive = Annotated[int, Range(1)]
Count = Annotated[int, Range(0)]
Simulations = Annotated[int, Range(1, MOST_SIMULATIONS)]
AnySimulations = Annotated[int, Range(0, MOST_SIMULATIONS)]  # 0: the network alone.
NonNegative = Annotated[float, Range(0)]
Fraction = Annotated[float, Range(0, 1)]


def check(section: str, config: Any) -> None:
    """Checks the settings of a dataclass, in its `__post_init__`; see `checked`.

    `section` precedes the names in error messages, such as `search`; it is empty for none.
    """
    for name, hint in typing.get_type_hints(type(config), include_extras=True).items():
        full = f"{section}.{name}" if section else name
        value = checked(full, getattr(config, name), hint)
        object.__setattr__(config, name, value)  # The dataclass is frozen.


class Settings:
    """Base of the dataclasses of settings: checks all values; see `check` for the section."""

    _section = ""

    def __init_subclass__(cls, section: str = "", **options: Any):
        super().__init_subclass__(**options)
        cls._section = section or cls._section

    def __post_init__(self):
        check(self._section, self)


def is_zero(number: Any) -> bool:
    """Returns whether a number is 0; a traced one may be any."""
    return not isinstance(number, Tracer) and number == 0


def checked(name: str, value: Any, hint: Any) -> Any:
    """Checks a value against a type, with choices and ranges; raises a ValueError that names both.

    Numbers of NumPy and JAX become Python numbers, and integers become floats where the type is
    float. Traced numbers are not checked, so float settings that determine no shape can be swept
    under `vmap`.
    """
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is Annotated:
        value = checked(name, value, choices[0])
        for allowed in choices[1:]:
            if isinstance(allowed, Range):
                allowed.check(name, value)
        return value
    if types.NoneType in choices and value is None:
        return None
    if choices and typing.get_origin(choices[0]) is Literal and float in choices:
        with contextlib.suppress(ValueError, TypeError):  # One of some words, or a number.
            return float(str(value))
        return checked(name, value, choices[0])
    if types.NoneType in choices:
        return checked(name, value, choices[0])
    if isinstance(value, Tracer) and hint in (int, float):
        return value
    is_number = isinstance(value, jax.Array) and hint in (int, float)
    if is_number or isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if typing.get_origin(hint) is Literal:
        if not isinstance(value, str) or value not in choices:
            *others, last = map(repr, choices)
            known = f"{', '.join(others)} or {last}" if others else last
            raise ValueError(f"{name} is {value!r}: use {known}{did_you_mean(value, choices)}")
        return value
    if typing.get_origin(hint) is tuple and isinstance(value, list | tuple):
        return tuple(checked(name, item, choices[0]) for item in value)
    if hint is float and type(value) is int:  # A larger integer may not be exact as a float.
        return float(value) if abs(value) <= MOST else value
    allowed = choices if find_kinds(hint) else (hint,)
    is_bool = isinstance(value, bool) and bool not in allowed
    if is_bool or not isinstance(value, tuple(typing.get_origin(a) or a for a in allowed)):
        wanted = " or ".join(getattr(c, "__name__", str(c)) for c in allowed)
        raise ValueError(f"{name} is {value!r}, which is not of type {wanted}")
    return value


def did_you_mean(given: Any, known: Iterable[str]) -> str:
    """Returns `; did you mean NAME?` if a known name is similar, or an empty string."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(given).lower(), names, n=1)
    return f"; did you mean {names[close[0]]}?" if close else ""


class Kinds(NamedTuple):
    """The kinds of a setting: the name of the tag, and the dataclass of each kind."""

    tag: str
    classes: dict[str, type]

    def choose(self, name: str, chosen: Any) -> type:
        """Returns the dataclass of a kind; `name` is that of the tag in errors."""
        return self.classes[checked(name, chosen, Literal[*self.classes])]


def find_kinds(hint: Any) -> Kinds | None:
    """Returns the kinds of a union of dataclasses, or None for another type."""
    classes = typing.get_args(hint)
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return None
    if not all(dataclasses.is_dataclass(cls) for cls in classes):
        return None
    tag = dataclasses.fields(classes[0])[0].name
    return Kinds(tag, {getattr(cls, tag): cls for cls in classes})


def from_dict(cls: Any, content: Any, prefix: str = "", *, complete: bool = False) -> Any:
    """Builds a (nested) dataclass of settings from a JSON object.

    Missing entries get defaults, unless the content must be `complete`: a file that was written
    with other defaults would get those of today. `cls` can be a union of kinds: if `content` has no
    tag, the first kind is used. `prefix` precedes names in messages.
    """
    if not isinstance(content, dict):
        raise ValueError(f"{prefix.rstrip('.') or 'the content'} is {content!r}, not an object")
    if kinds := find_kinds(cls):
        chosen = content.get(kinds.tag, next(iter(kinds.classes)))
        cls = kinds.choose(prefix + kinds.tag, chosen)
    hints = typing.get_type_hints(cls)
    values = {}
    for name, value in content.items():
        if name not in hints:
            known = ", ".join(hints) + did_you_mean(name, hints)
            raise ValueError(f"unknown setting {prefix + name!r}: use one of {known}")
        nested = dataclasses.is_dataclass(hints[name]) or find_kinds(hints[name])
        if nested:
            value = from_dict(hints[name], value, f"{prefix}{name}.", complete=complete)
        values[name] = value
    for field in dataclasses.fields(cls):
        defaults = field.default, field.default_factory
        is_needed = complete or defaults == (dataclasses.MISSING, dataclasses.MISSING)
        if is_needed and field.name not in values:
            raise ValueError(f"{prefix}{field.name} is missing")
    return cls(**values)


def field_docs(cls: type) -> dict[str, str]:
    """Returns the docstrings below the fields of a class, each on one line, from its source."""
    base = cls.__base__
    docs = dict(field_docs(base)) if base and dataclasses.is_dataclass(base) else {}
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    for statement, after in zip(definition.body, definition.body[1:], strict=False):
        match statement, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str(text))):
                docs[name] = " ".join(text.split())
    return docs


def flatten(config: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Lists the dotted names and values of the settings of a (nested) dataclass."""
    settings = []
    for field in dataclasses.fields(config):
        value, name = getattr(config, field.name), prefix + field.name
        nested = dataclasses.is_dataclass(value)
        settings += flatten(value, f"{name}.") if nested else [(name, value)]
    return settings


def list_changes(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    """Lists the dotted names, old values and new values of settings that differ, or None."""
    others = dict(flatten(new))
    return [
        (name, value, others.get(name))
        for name, value in flatten(old)
        if name not in others or others[name] != value
    ]
