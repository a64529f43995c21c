"""Atomic writing of files, and digests that find out whether files were changed."""

import contextlib
import hashlib
import json
import os
import pathlib
import secrets
import shutil
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

Path = str | os.PathLike[str]


def temporary(path: Path) -> pathlib.Path:
    """Returns an unused hidden path next to `path`, different for every program and call."""
    path = pathlib.Path(path)
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def check_folder(path: pathlib.Path) -> None:
    """Raises ValueError unless a file can be written to a path; leaves no file behind."""
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} for {path}: make it, or choose another")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file in it")
    probe = temporary(path)
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror}): choose another file"
        ) from error


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


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """Writes a JSON file atomically, with the SHA-256 of its content."""
    write_json(path, content | {"sha256": _digest(content)})


def read_sealed(path: pathlib.Path) -> dict[str, Any]:
    """Reads a file of `write_sealed`, or raises a ValueError that names the damage."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        sealed = content.pop("sha256")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise ValueError(f"its {path.name} is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its {path.name} is damaged") from error
    if sealed != _digest(content):
        raise ValueError(f"its {path.name} was changed")
    return content


def check_digest(folder: pathlib.Path, name: str, digest: str | None) -> pathlib.Path:
    """Returns the path of a file whose SHA-256 is listed elsewhere, or raises a ValueError."""
    path = folder / name
    if not path.is_file():
        raise ValueError(f"its file {name} is missing")
    if digest_file(path) != digest:
        raise ValueError(f"its file {name} was changed")
    return path


def digest_file(path: pathlib.Path) -> str:
    """Returns the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_arrays(label: bytes, arrays: Iterable[Any]) -> str:
    """Returns the SHA-256 of a label and of the types, shapes and values of arrays."""
    digest = hashlib.sha256(label)
    for array in map(np.asarray, arrays):
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
