"""Hooks of mkdocs: tables of settings, and the tutorials as notebooks.

A line `<!-- settings: MODULE.CLASS -->` in a page becomes a table with a row for each field. A row
has the field's name, its default, the allowed values, the presets with another value, and the
docstring below the field.

In a notebook, blocks of Python become code cells, everything else Markdown. Included files are left
out.
"""

import dataclasses
import importlib
import json
import re
import sys
import typing
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parents[1]))  # The tree that the guide is built from.

from azjax._settings import Range, field_docs  # noqa: E402
from azjax.runs import presets  # noqa: E402

MARKER = re.compile(r"^<!-- settings: (\S+)\.(\w+)(?: (\S+))? -->$", re.MULTILINE)


def write(value: Any) -> str:
    """Writes a value as a command line takes it."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def allowed(hint: Any) -> str:
    """Writes the values that a type allows: choices, or a range of numbers."""
    if typing.get_origin(hint) is Literal:
        return ", ".join(f"`{choice}`" for choice in typing.get_args(hint))
    for bounds in getattr(hint, "__metadata__", ()):
        if isinstance(bounds, Range):
            return bounds.describe(",")
    members = (allowed(member) for member in typing.get_args(hint))
    return ", ".join(filter(None, members))


def differing(cls: type, part: str | None, field: dataclasses.Field, default: Any) -> str:
    """Lists the presets in which a setting is not the default."""
    values: dict[str, list[str]] = {}
    for name in presets.PRESETS if part else ():
        config = getattr(presets.get(name), part or "")
        if isinstance(config, cls) and getattr(config, field.name) != default:
            values.setdefault(write(getattr(config, field.name)), []).append(name)
    return "; ".join(f"{value}: {', '.join(names)}" for value, names in values.items())


def make_table(cls: type, part: str | None = None) -> str:
    """Returns the Markdown table of a dataclass.

    Args:
      cls: the dataclass.
      part: the field of `Config` that holds it, such as `learner`, for the column of presets.
    """
    docs, hints, rows = field_docs(cls), typing.get_type_hints(cls, include_extras=True), []
    for field in dataclasses.fields(cls):
        if field.name not in docs:
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        shown = "required" if default is dataclasses.MISSING else f"`{write(default)}`"
        shown = "" if shown in ("``", "`None`") else shown
        meaning = docs[field.name].replace("|", "\\|")
        cells = [f"`{field.name}`", shown, allowed(hints[field.name]), meaning]
        if part:
            cells.insert(3, differing(cls, part, field, default))
        rows.append(cells)
    heads = ["setting", "default", "allowed", *(["other presets"] if part else []), "meaning"]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replaces the markers of a page; mkdocs calls it for every page."""

    def replace(match: re.Match) -> str:
        module, name, part = match.groups()
        return make_table(getattr(importlib.import_module(module), name), part)

    return MARKER.sub(replace, markdown)


def make_cells(page: str) -> list[dict[str, Any]]:
    """Returns the cells of a page of Markdown."""
    included = r"## [^\n]*\n\n```python title=[^\n]*\n--8<--[^\n]*\n```\n"
    page = re.sub(included + r"|This page is also \[a notebook\].*\n\n", "", page)
    pieces = re.split(r"^```python\n(.*?)^```$", page, flags=re.M | re.S)
    cells = []
    for number, piece in enumerate(pieces):
        if text := piece.strip():
            cell: dict[str, Any] = {"cell_type": "code" if number % 2 else "markdown"}
            cell |= {"id": f"cell-{len(cells)}", "metadata": {}}
            if number % 2:
                cell |= {"execution_count": None, "outputs": []}
            cells.append(cell | {"source": text.splitlines(keepends=True)})
    return cells


def make_notebook(page: str) -> str:
    """Returns the notebook of a page of Markdown as JSON."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": make_cells(page), "metadata": {"kernelspec": kernel}}
    content |= {"nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def on_files(files: Any, config: Any) -> None:
    """Adds the notebooks that tutorials link to; mkdocs calls it with the files of the guide."""
    from mkdocs.structure.files import File  # Only mkdocs needs it.

    for page in [file for file in files if re.match(r"tutorials/\w+\.md$", file.src_uri)]:
        if "[a notebook]" in page.content_string:  # Others show excerpts, which do not run alone.
            notebook = make_notebook(page.content_string)
            files.append(File.generated(config, page.src_uri[:-2] + "ipynb", content=notebook))
