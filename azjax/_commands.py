"""Messages to the user, and the shell commands in them."""

import os
import shlex
import sys
from typing import Any


def command(module: str, *arguments: object) -> str:
    """Returns a shell command that runs a module with the interpreter of this process.

    It can be pasted into a shell in the current folder, even if no virtual environment is active.

    Args:
      module: the module after `-m`, such as `"azjax"` or `"pip"`.
      *arguments: arguments of the module; quoted if necessary.
    """
    return shlex.join([_interpreter(), "-m", module, *map(str, arguments)])


def _interpreter() -> str:
    """Returns the path of the interpreter, relative to the current folder if that is shorter."""
    if not sys.executable:  # Python is embedded in another program.
        return "python"
    relative = os.path.relpath(sys.executable)
    path = relative if len(relative) < len(sys.executable) else sys.executable
    # A shell would look up a bare name on the PATH.
    return path if os.sep in path else os.path.join(os.curdir, path)


def unpicklable(advice: str) -> Any:
    """Returns the method `__reduce__` of a record of functions; it names what to send instead."""

    def reduce(record: Any) -> Any:
        kind = type(record).__name__
        raise TypeError(f"{kind} has functions, which cannot be pickled: {advice}")

    return reduce


def keep(record: Any, memo: Any = None) -> Any:
    """The methods `__copy__` and `__deepcopy__` of a record, which never changes."""
    return record


def write_note(sentence: str) -> None:
    """Prints a sentence to standard error, separate from the program's output."""
    print(sentence, file=sys.stderr, flush=True)
