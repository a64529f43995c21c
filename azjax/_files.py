"""Atomic writing of files."""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
from collections.abc import Iterator
from typing import Any

Path = str | os.PathLike[str]


def temporary(path: Path) -> pathlib.Path:
    """Returns an unused hidden path next to `path`, different for every program and call."""
    path = pathlib.Path(path)
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def check_folder(path: pathlib.Path) -> None:
    """Raises ValueError unless a file can be written to a path; leaves no file behind."""
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} for {path}: make it, or use another")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file in it")
    probe = temporary(path)
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror}): use another") from error


def remove(path: pathlib.Path) -> None:
    """Removes a file or a folder, if it exists; of a link, only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[pathlib.Path]:
    """Yields a temporary path; if the `with` block succeeds, its file is moved to `path`.

    If the block raises, an existing file at `path` is kept and the temporary file is deleted.
    """
    beside = temporary(path)
    try:
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8 atomically."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file atomically."""
    write_text(path, json.dumps(content, indent=2) + "\n")
