"""Functions that the command line names, such as `path/to/file.py:make`: find, import and call.

A file can import the files next to it, as with `python path/to/file.py`.
"""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import pathlib
import re
import sys
import traceback
from typing import Any

from azjax import games
from azjax._settings import did_you_mean


def identify(typed: str) -> str:
    """Returns `PLACE:FUNCTION#SHA-256` for `PLACE:FUNCTION`, without running that file.

    PLACE is `path/to/file.py` or `package.module`. The digest includes the files next to
    `path/to/file.py` that it imports, directly or through each other.

    Raises:
      ValueError: if the file or module does not exist, or no function is named.
    """
    check_function(typed)
    place = typed.partition(":")[0]
    path = _find(place)
    others = itertools.chain(*_neighbors(path).values()) if place.endswith(".py") else ()
    digests = [_digest(file) for file in (path, *others)]
    joined = hashlib.sha256("".join(digests).encode()).hexdigest()
    return f"{typed}#{joined if len(digests) > 1 else digests[0]}"


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
    listed = _list(_find_functions(_find(place), arguments), arguments)
    raise ValueError(f"{typed} names no function: give {place}:FUNCTION{listed}")


def _list(names: list[str], arguments: int) -> str:
    wanted = "only a game" if arguments else "no argument"
    return f"; functions that take {wanted}: {', '.join(names)}" if names else ""


def _find_functions(path: pathlib.Path, arguments: int) -> list[str]:
    """Returns the functions of a file that may return what is needed; does not run it.

    Without an argument, that is a `Game` or `Parts`; with one, which must be a game, a `Network`.
    """
    names, kinds = [], "Network" if arguments else "Game|Parts"
    for function in _parse(path).body:
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
            takes = function.args
            given = [*takes.posonlyargs, *takes.args]
            least = len(given) - len(takes.defaults) + takes.kw_defaults.count(None)
            is_game = not arguments or (given and "game" in ast.unparse(given[0]).lower())
            returns = ast.unparse(function.returns) if function.returns else kinds
            if least <= arguments and is_game and re.search(kinds, returns):
                names.append(function.name)
    return names


def _parse(path: pathlib.Path) -> ast.Module:
    """Parses a file; a file that cannot be parsed counts as empty, and its import reports it."""
    try:
        return ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError):
        return ast.parse("")


def _neighbors(path: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Returns the files of each module next to a file that it imports; runs none of them."""
    folder, found, waiting = path.parent.resolve(), {}, [path]
    while waiting:
        for statement in ast.walk(_parse(waiting.pop())):
            names = [alias.name for alias in getattr(statement, "names", [])]
            if isinstance(statement, ast.ImportFrom):
                names = [] if statement.level else [statement.module or ""]
            elif not isinstance(statement, ast.Import):
                continue
            for name in {name.partition(".")[0] for name in names} - {*found, "azjax"}:
                module = folder / name
                files = [module.with_suffix(".py"), *sorted(module.rglob("*.py"))]
                if files := [file for file in files if file.is_file()]:
                    found[name] = files
                    waiting += files
    return dict(sorted(found.items()))


def call(typed: str, kind: type, *arguments: Any) -> Any:
    """Imports and calls a function.

    Raises:
      ValueError: if it does not exist, cannot be called, fails, or does not return a `kind`.
    """
    place, _, name = typed.partition(":")
    module = _import(place)
    function = getattr(module, name, None)
    others = [other for other in _find_functions(_find(place), len(arguments)) if other != name]
    listed = _list(others, len(arguments))
    if not callable(function):
        meant = did_you_mean(name, others)
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
        _put_first(path)
        unique = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
        name = f"azjax_custom_{path.stem}_{unique}"
        spec: Any = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # Dataclasses look up their module there.
        spec.loader.exec_module(module)
        return module
    except Exception as error:
        raise ValueError(
            f"{place} cannot be imported ({type(error).__name__}: {error}): fix it first"
        ) from error


_IMPORTED: dict[str, list[tuple[pathlib.Path, str]]] = {}  # By name: its files and their digests.


def _put_first(path: pathlib.Path) -> None:
    """Lets a file import the files next to it, even if another one has imported the same names.

    Raises:
      ImportError: if azjax has imported another module of the same name.
    """
    folder = str(path.parent.resolve())
    modules = {
        name: [(file, _digest(file)) for file in files] for name, files in _neighbors(path).items()
    }
    for name in (modules.keys() - _IMPORTED.keys()) & sys.modules.keys():
        other = getattr(sys.modules[name], "__file__", None)
        if other is None or not pathlib.Path(other).resolve().is_relative_to(folder):
            raise ImportError(f"{modules[name][0][0]} has the name of another module: rename it")
    if any(_IMPORTED.get(name, files) != files for name, files in modules.items()):
        ours = modules.keys() & _IMPORTED.keys()  # Edited since, or next to a file elsewhere.
        for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
            del sys.modules[name]
    _IMPORTED.update(modules)
    sys.path[:] = [folder, *(place for place in sys.path if place != folder)]
    importlib.invalidate_caches()  # The files may be new.


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
