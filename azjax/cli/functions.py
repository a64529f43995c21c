"""Functions that the command line names: `path/to/file.py:make` or `package.module:make`.

A file can import the files next to it, as with `python path/to/file.py`.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import pathlib
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from azjax import games
from azjax._settings import did_you_mean

_WANTED = "give FILE.py:FUNCTION or package.module:FUNCTION"


def identify(spec: str) -> str:
    """Returns `PLACE:FUNCTION#SHA-256` for `PLACE:FUNCTION`, without running that file.

    Raises:
      ValueError: if the file or module does not exist.
    """
    path = _find(spec.partition(":")[0])
    return f"{spec}#{hashlib.sha256(path.read_bytes()).hexdigest()}"


def load(spec: str, kind: type, *arguments: Any) -> Any:
    """Imports and calls a function.

    Args:
      spec: the function, `PLACE:FUNCTION`.
      kind: the class of what it must return.
      *arguments: the arguments of the call.

    Raises:
      ValueError: if it does not exist, cannot be called, fails, or does not return a `kind`.
    """
    place, _, name = spec.partition(":")
    with _importing_from(_find(place)):
        module = _import(place)
        function = getattr(module, name, None)
        others = [other for other in _list_functions(module, arguments) if other != name]
        takes = "only the game as its argument" if arguments else "no argument"
        listed = f"; functions with {takes}: {', '.join(others)}" if others else ""
        if not name:
            raise ValueError(f"{spec} names no function: give {place}:FUNCTION{listed}")
        if not callable(function):
            meant = did_you_mean(name, others)
            raise ValueError(f"{place} has no function {name!r}: {_WANTED}{listed}{meant}")
        if not _accepts(function, arguments):
            wanted = "name a function that can"
            raise ValueError(f"{spec} cannot be called with {takes}: {wanted}{listed}")
        try:
            made = function(*arguments)
        except ValueError:  # An error of azjax, such as an invalid setting.
            raise
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[1:2]
            where = "".join(f", from line {frame.lineno}" for frame in frames)
            reason = f"{type(error).__name__}: {error}{where}"
            raise ValueError(f"{spec} fails ({reason}): fix it first") from error
    if not isinstance(made, kind):
        wanted = f"return a {kind.__name__}, or name another function"
        raise ValueError(f"{spec} returns {type(made).__name__}: {wanted}{listed}")
    return made


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
        raise ValueError(f"{place or repr(place)} does not exist: {_WANTED}{meant}")
    return path


def _import(place: str) -> Any:
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = pathlib.Path(place).resolve()
        unique = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        name = f"azjax_custom_{path.stem}_{unique}"
        spec: Any = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # Dataclasses look up their module there.
        spec.loader.exec_module(module)
        return module
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{place} cannot be imported ({reason}): fix it first") from error


def _list_functions(module: Any, arguments: tuple[Any, ...]) -> list[str]:
    """Returns the names of the public functions of a module that can be called."""
    own = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return [
        name
        for name, value in own.items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
        if _accepts(value, arguments)
    ]


def _accepts(function: Any, arguments: tuple[Any, ...]) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # Some builtins have no signature.
        pass
    return True


_NEIGHBORS: dict[str, str] = {}  # The folder of each module that a custom file has imported.


@contextlib.contextmanager
def _importing_from(path: pathlib.Path) -> Iterator[None]:
    """Lets a file import the files next to it, also if another file did, with the same names."""
    folder = str(path.parent.resolve())
    for name in [name for name, other in _NEIGHBORS.items() if other != folder]:
        del _NEIGHBORS[name]
        sys.modules.pop(name, None)
    if path.suffix == ".py":
        sys.path[:] = [folder, *(place for place in sys.path if place != folder)]
        importlib.invalidate_caches()  # The files may be new.
    before = {*sys.modules}
    try:
        yield
    finally:
        for name in sys.modules.keys() - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            is_installed = name.startswith("azjax") or "site-packages" in file
            if file.startswith(folder) and not is_installed:
                _NEIGHBORS[name] = folder
