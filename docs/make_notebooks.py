"""Writes the tutorials as notebooks: `python docs/make_notebooks.py`, after editing a tutorial.

Blocks of Python become code cells, everything else Markdown. Included files are left out. A test
compares the notebooks with the pages and runs them.
"""

import json
import pathlib
import re
from typing import Any

FOLDER = pathlib.Path(__file__).parent / "tutorials"


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


def make_notebook(path: pathlib.Path) -> str:
    """Returns the notebook of a tutorial as JSON."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": make_cells(path.read_text()), "metadata": {"kernelspec": kernel}}
    content |= {"nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for page in sorted(FOLDER.glob("*.md")):
        page.with_suffix(".ipynb").write_text(make_notebook(page))
