"""Functions that the command line names, such as `path/to/file.py:make`: find, import and call."""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import pathlib
import sys
import traceback
from typing import Any

from azjax import games
from azjax._settings import did_you_mean


def identify(typed: str) -> str:
    """Returns `PLACE:FUNCTION#SHA-256` for `PLACE:FUNCTION`, without running that file.

    PLACE is `path/to/file.py` or `package.module`.

    Raises:
      ValueError: if the file or module does not exist, or no function is named.
    """
    check_function(typed)
    path = _find(typed.partition(":")[0])
    return f"{typed}#{hashlib.sha256(path.read_bytes()).hexdigest()}"


def check_function(typed: str, arguments: int = 0) -> None:
    """Raises a ValueError for a file or module without a function, such as `FILE.py`.

    The error lists the functions of the file that take this number of `arguments`.
    """
    place, _, name = typed.partition(":")
    if name or not any(mark in place for mark in "./\\"):
        return
    if not place.endswith(".py"):
        raise ValueError(
            f"{typed} names no function: give FILE.py:FUNCTION or package.module:FUNCTION"
        )
    listed = _list_functions(_find(place), arguments)
    raise ValueError(f"{typed} names no function: give {place}:FUNCTION{listed}")


def _list_functions(path: pathlib.Path, arguments: int) -> str:
    """Lists the public functions of a file that take this number of arguments; does not run it."""
    try:
        statements = ast.parse(path.read_text()).body
    except (OSError, ValueError, SyntaxError):  # The import reports it.
        return ""
    names = []
    for function in statements:
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
            takes = function.args
            most = len(takes.posonlyargs) + len(takes.args)
            least = most - len(takes.defaults) + takes.kw_defaults.count(None)
            if least <= arguments and (most >= arguments or takes.vararg):
                names.append(function.name)
    wanted = "a single argument" if arguments else "no argument"
    return f"; functions that take {wanted}: {', '.join(names)}" if names else ""


def call(typed: str, kind: type, *arguments: Any) -> Any:
    """Imports and calls a function.

    Raises:
      ValueError: if it does not exist, cannot be called, fails, or does not return a `kind`.
    """
    place, _, name = typed.partition(":")
    module = _import(place)
    function = getattr(module, name, None)
    listed = _list_functions(_find(place), len(arguments))
    if not callable(function):
        meant = did_you_mean(name, (other for other in vars(module) if not other.startswith("_")))
        raise ValueError(
            f"{place} has no function {name!r}: give one of its functions{listed}{meant}"
        )
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        wanted = "only the game as its argument" if arguments else "no argument"
        raise ValueError(
            f"{typed} cannot be called with {wanted} ({error}): name a function that can{listed}"
        ) from error
    except ValueError:  # Some builtins have no signature.
        pass
    try:
        made = function(*arguments)
    except ValueError:  # An error of azjax, such as an invalid setting.
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[1:2]
        where = "".join(f", from line {frame.lineno}" for frame in frames)
        raise ValueError(
            f"{typed} fails ({type(error).__name__}: {error}{where}): fix it first"
        ) from error
    if not isinstance(made, kind):
        raise ValueError(
            f"{typed} returns {type(made).__name__}: return a {kind.__name__}, or name another "
            f"function{listed}"
        )
    return made


def _import(place: str) -> Any:
    path = _find(place)
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        spec: Any = importlib.util.spec_from_file_location(f"azjax_custom_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # Dataclasses look up their module there.
        spec.loader.exec_module(module)
        return module
    except Exception as error:
        raise ValueError(
            f"{place} cannot be imported ({type(error).__name__}: {error}): fix it first"
        ) from error


def _find(place: str) -> pathlib.Path:
    """Returns the file of `path/to/file.py` or `package.module`."""
    path = pathlib.Path(place)
    if place in games.available():
        raise ValueError(f"{place} has one size: leave the colon and what follows it out")
    if not place.endswith(".py"):
        try:
            spec = importlib.util.find_spec(place)
        except (ImportError, ValueError):
            spec = None
        path = pathlib.Path((spec and spec.origin) or "")
    if not path.is_file():
        others = (str(other) for other in path.parent.glob("*.py"))
        meant = did_you_mean(place, others if place.endswith(".py") else games.available())
        wanted = "give FILE.py:FUNCTION or package.module:FUNCTION"
        raise ValueError(f"{place or repr(place)} does not exist: {wanted}{meant}")
    return path
