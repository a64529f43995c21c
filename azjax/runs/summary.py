"""What a checkpoint says of itself, and the digests that find out whether it was changed.

Beside its arrays, in `player/` and `state/`, a checkpoint has a `summary.json` with the fields
of `Summary` and one SHA-256 over all of them. So a checkpoint in the folder of another iteration,
or beside settings that are not its own, is found out like a damaged file.
"""

import dataclasses
import hashlib
import json
import pathlib
from typing import Any

import jax

from azjax._settings import check_types, from_dict
from azjax.runs import arrays


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a checkpoint says of itself.

    Attributes:
      iteration: that it was saved after.
      score: that it was saved with; higher is better.
      arrays: from `describe`, for each folder.
      settings: of its run, as `config.json` has them.
      files: from `digest_files`.
    """

    iteration: int
    score: float
    arrays: dict
    settings: dict
    files: dict

    def __post_init__(self):
        check_types("", self)


def describe(state: Any) -> dict[str, str]:
    """Returns the type and shape of every array, by its name in the state.

    The type of typed keys is the name of their implementation.
    """

    def write(leaf):
        kind = arrays.key_impl(leaf) if arrays.is_key(leaf) else leaf.dtype
        return f"{kind}{list(leaf.shape)}"

    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): write(leaf) for path, leaf in leaves}


def name_keys(described: dict[str, str], target: Any) -> dict[str, str]:
    """Puts the implementations of keys into a description that has the shapes of their data.

    Checkpoints were once written so. Data of four numbers may be of `rbg` or `unsafe_rbg`: they
    are of the default implementation where that has as many, and else of `rbg`.

    Args:
      described: from `describe`, or as it once was.
      target: shapes and types of the state.
    """
    default = jax.random.key(0)
    impls = {
        2: "threefry2x32",
        4: "rbg",
        len(jax.random.key_data(default)): arrays.key_impl(default),
    }
    once = {f"uint32{[size]}": f"{impl}[]" for size, impl in impls.items()}
    leaves = jax.tree_util.tree_leaves_with_path(target)
    keys = {jax.tree_util.keystr(path) for path, leaf in leaves if arrays.is_key(leaf)}
    return {name: once.get(x, x) if name in keys else x for name, x in described.items()}


def with_impls(target: Any, described: dict[str, str]) -> Any:
    """Returns shapes and types of a state with keys of the implementations described."""

    def put(path, leaf):
        impl = described.get(jax.tree_util.keystr(path), "").partition("[")[0]
        if not (impl and arrays.is_key(leaf)):
            return leaf
        dtype = jax.random.key(0, impl=impl).dtype
        return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=leaf.sharding)

    return jax.tree_util.tree_map_with_path(put, target)


def digest_files(folder: pathlib.Path, part: str = ".") -> dict[str, str]:
    """Returns the SHA-256 of every file in a folder, or in one of its folders, by its path."""
    paths = sorted(path for path in (folder / part).rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def seal(summary: Summary) -> dict[str, Any]:
    """Returns the content of a `summary.json`."""
    content = dataclasses.asdict(summary)
    return content | {"sha256": _digest(content)}


def read_summary(folder: pathlib.Path) -> Summary:
    """Reads the summary of the checkpoint in a folder, which is named after its iteration.

    Raises:
      ValueError: saying what is wrong with the checkpoint.
    """
    try:
        content = json.loads((folder / "summary.json").read_text())
        sealed = content.pop("sha256")
        summary = from_dict(Summary, content) if sealed == _digest(content) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("its summary.json is missing or damaged") from error
    if summary is None:
        raise ValueError("its summary.json was changed")
    if summary.iteration != int(folder.name):
        raise ValueError(f"it is the checkpoint of iteration {summary.iteration}")
    return summary


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
