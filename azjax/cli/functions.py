"""Functions that a command line names, `path/to/file.py:make`: found, listed, imported, called."""

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

    Raises:
      ValueError: if there is no such file or module, or no function is named.
    """
    check_function(typed)
    path = _find(typed.partition(":")[0])
    return f"{typed}#{hashlib.sha256(path.read_bytes()).hexdigest()}"


def check_function(typed: str, arguments: int = 0) -> None:
    """Refuses a file or a module without a function, such as `FILE.py`.

    Args:
      typed: what a command line names.
      arguments: of the function that is wanted.

    Raises:
      ValueError: naming the functions of the file that could be meant.
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


def _list_functions(path: pathlib.Path, arguments: int = 0) -> str:
    """Lists the functions of a file that can be called so, without running it."""
    try:
        statements = ast.parse(path.read_text()).body
    except (OSError, ValueError, SyntaxError):  # Who imports it is told.
        return ""
    found = []
    for function in statements:
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
            takes = function.args
            most = len(takes.posonlyargs) + len(takes.args)
            least = most - len(takes.defaults) + takes.kw_defaults.count(None)
            if least <= arguments and (most >= arguments or takes.vararg):
                found.append(function.name)
    wanted = "a single argument" if arguments else "no argument"
    return f"; functions that take {wanted}: {', '.join(found)}" if found else ""


def call(typed: str, kind: type, *arguments: Any) -> Any:
    """Imports a function that was typed, calls it, and checks what it returns."""
    place, _, name = typed.partition(":")
    function = getattr(_import(place), name, None)
    listed = _list_functions(_find(place), len(arguments))
    if not callable(function):
        names = (name for name in vars(_import(place)) if not name.startswith("_"))
        raise ValueError(
            f"{place} has no function {name!r}: name one that it has{listed}"
            f"{did_you_mean(name, names)}"
        )
    _check_call(typed, function, arguments, listed)
    try:
        found = function(*arguments)
    except ValueError:  # Such as the library's, which says what to do.
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)[1:2]]
        raise ValueError(
            f"{typed} fails ({type(error).__name__}: {error}, from line {lines[0]}): mend it first"
        ) from error
    if not isinstance(found, kind):
        raise ValueError(
            f"{typed} returns {type(found).__name__}: return a {kind.__name__}, or name another "
            f"function{listed}"
        )
    return found


def _check_call(typed: str, function: Any, arguments: tuple, listed: str) -> None:
    """Refuses a function that cannot be called with such arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        wanted = "the game alone" if arguments else "no argument"
        raise ValueError(
            f"{typed} cannot be called with {wanted} ({error}): name a function that can{listed}"
        ) from error
    except ValueError:  # Some builtins have no signature.
        return


def _import(place: str) -> Any:
    path = _find(place)
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        spec: Any = importlib.util.spec_from_file_location(f"azjax_own_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # Dataclasses look their module up.
        spec.loader.exec_module(module)
        return module
    except Exception as error:  # Whatever somebody's file does when it is imported.
        raise ValueError(
            f"{place} cannot be imported ({type(error).__name__}: {error}): mend it first"
        ) from error


def _find(place: str) -> pathlib.Path:
    """The file of `path/to/file.py` or `package.module`."""
    path = pathlib.Path(place)
    if not place.endswith(".py"):
        try:
            spec = importlib.util.find_spec(place)
        except (ImportError, ValueError):
            spec = None
        path = pathlib.Path((spec and spec.origin) or "")
    if not path.is_file():
        others = (str(other) for other in path.parent.glob("*.py"))
        meant = did_you_mean(place, others if place.endswith(".py") else games.available())
        raise ValueError(
            f"there is no {place}: give FILE.py:FUNCTION or package.module:FUNCTION{meant}"
        )
    return path
