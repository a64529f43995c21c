"""Messages to the user, and the shell commands in them."""

import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig


def command(module: str, *arguments: object) -> str:
    """Returns a shell command that runs a module, such as azjax or pip, in this environment.

    It can be pasted into a shell, even if no virtual environment is active.
    """
    own, found = shutil.which(module, path=sysconfig.get_path("scripts")), shutil.which(module)
    program = [own] if own else [sys.executable or "python", "-m", module]
    if own and found and os.path.samefile(found, own):
        program = [module]
    return shlex.join([*program, *map(str, arguments)])


def check_installed(package: str, needed_by: str) -> None:
    """Raises a ValueError, with the install command, if a package is missing."""
    if importlib.util.find_spec(package) is None:
        install = command("pip", "install", package)
        raise ValueError(f"{needed_by} needs the package {package}: install it with {install}")


def write_note(sentence: str) -> None:
    """Prints a sentence to standard error, separate from the program's output."""
    print(sentence, file=sys.stderr, flush=True)
