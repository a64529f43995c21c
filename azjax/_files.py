"""Atomic writing of files."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

Path = str | os.PathLike[str]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[pathlib.Path]:
    """Yields a temporary path; if the `with` block succeeds, its file is moved to `path`.

    If the block raises, an existing file at `path` is kept and the temporary file is deleted.
    """
    path = pathlib.Path(path)
    beside = path.with_name(f".{path.name}.tmp")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file atomically."""
    with replacing(path) as beside:
        beside.write_text(text)


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file atomically."""
    write_text(path, json.dumps(content, indent=2) + "\n")
