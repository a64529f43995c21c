"""Files that are written whole or not at all."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

Path = str | os.PathLike[str]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[pathlib.Path]:
    """Yields a name beside a file, and renames it to the file's when the `with` block succeeds.

    So a crash leaves either the old file or the new one. After an error in the block the old
    file stays, and what was written beside it is deleted.
    """
    path = pathlib.Path(path)
    beside = path.with_name(f".{path.name}.tmp")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(text)


def write_json(path: Path, content: Any) -> None:
    """Writes JSON, whole or not at all."""
    write_text(path, json.dumps(content, indent=2) + "\n")
