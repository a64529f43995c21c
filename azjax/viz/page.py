"""Self-contained HTML pages: style, code and data in one file."""

import base64
import json
import os
import pathlib
import re
from importlib import resources
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from azjax._files import replacing
from azjax.drawing import check_folder, node

_SOURCES = (
    *("dom", "place", "random", "cells", "table", "hex", "games", "algorithms", "evaluators"),
    *("search", "board", "hexagons", "picture", "sums", "layers", "orientation", "quantized"),
    *("network", "bench", "words", "playout", "atlas", "encoding", "review", "play", "proof"),
    *("blunders", "training", "formula", "detail", "layout", "camera", "cards", "tree", "settings"),
    *("compare", "explorer", "steps", "tour", "lesson", "loop", "shipped", "playground"),
    *("unbeaten",),
    "main",
)
_STYLES = (
    *("style", "atlas", "review", "proof", "training", "compare", "loop", "playout", "tour"),
    "playground",
)


class Section(NamedTuple):
    """A part of a page.

    Attributes:
      title: its heading; empty for none.
      intro: one or two sentences below the heading.
      kind: a component of the JavaScript module: `explorer`, `encoding`, `play`, `compare`,
        `proof`, `training`, `tour`, `atlas`, `loop`, `playground` or `unbeaten`.
      data: the input of the component, for JSON.
      element: content without a component, as an element tree.
      label: its name in the contents bar, which lists only sections with a name.
    """

    title: str
    intro: str = ""
    kind: str | None = None
    data: Any = None
    element: ElementTree.Element | None = None
    label: str | None = None


def script() -> str:
    """Returns the JavaScript module of pages and widgets.

    The sources are modules with one line per import. In the combined file, each source is wrapped
    in a function that is called immediately, so that names do not collide. The exports of
    `board.js` become `$board`.
    """
    return "\n".join(_module(name, _read(f"{name}.js")) for name in _SOURCES)


def style() -> str:
    """Returns the style sheet of pages and widgets."""
    return "\n".join(_read(f"{name}.css") for name in _STYLES)


def _read(name: str) -> str:
    return (resources.files("azjax.viz") / "js" / name).read_text(encoding="utf-8")


def _module(name: str, source: str) -> str:
    imported = r'^import (\{.*\}) from "\./(\w+)\.js";$'
    source = re.sub(imported, r"const \1 = $\2;", source, flags=re.MULTILINE)
    declared = r"^export (?=(?:async )?(?:function|const|class) (\w+))"
    names = ", ".join(re.findall(declared, source, re.MULTILINE))
    body = re.sub(declared, "", source, flags=re.MULTILINE)
    if name == _SOURCES[-1]:  # Its exports are those of the whole file.
        return body
    return f"const ${name} = (() => {{\n{body}\nreturn {{ {names} }};\n}})();"


def pack(numbers: np.ndarray, kind: str) -> str:
    """Encodes an array of a NumPy type such as `<u2` in base64, for `numbers` in `js/dom.js`."""
    return base64.b64encode(np.ascontiguousarray(numbers).astype(kind).tobytes()).decode()


def write_page(path: str | os.PathLike[str], title: str, sections: list[Section]) -> pathlib.Path:
    """Writes a page that opens from disk, without a server or a network connection.

    Args:
      path: the file, which is replaced if it exists.
      title: the heading of the page.
      sections: from top to bottom.

    Returns:
      The path.

    Raises:
      ValueError: if its folder does not exist.
    """
    path = pathlib.Path(path)
    check_folder(path)
    with replacing(path) as partial:
        partial.write_text(_page(title, sections), encoding="utf-8", errors="backslashreplace")
    return path


def _page(title: str, sections: list[Section]) -> str:
    data = {id(section.data): section.data for section in sections if section.kind}
    number = {key: i for i, key in enumerate(data)}  # Shared data is written once.
    head = node(
        "head",
        None,
        node("meta", {"charset": "utf-8"}),
        node("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        node("title", None, title),
        node("link", {"rel": "icon", "href": "data:,"}),
        node("style", None, style()),
    )
    body = node(
        "body",
        {"class": "azjax"},
        node(
            "main",
            {"class": "az-page"},
            node("h1", None, title),
            *_contents(sections),
            *(_section(section, i, number) for i, section in enumerate(sections)),
        ),
        node(
            "script", {"type": "application/json", "id": "azjax-data"}, _json(list(data.values()))
        ),
        node("script", {"type": "module"}, script() + "\nmountPage(document);\n"),
    )
    html = node("html", {"lang": "en"}, head, body)
    return "<!DOCTYPE html>\n" + ElementTree.tostring(html, encoding="unicode", method="html")


def _contents(sections: list[Section]) -> list[ElementTree.Element]:
    """Makes the contents bar, if sections have labels."""
    links = [
        node("a", {"href": f"#section-{i}"}, section.label)
        for i, section in enumerate(sections)
        if section.label
    ]
    look = {"class": "az-contents", "aria-label": "contents"}
    return [node("nav", look, *links)] if links else []


def _section(section: Section, i: int, number: dict[int, int]) -> ElementTree.Element:
    content = section.element
    if content is None:
        attributes = {"data-kind": section.kind, "data-number": number[id(section.data)]}
        content = node("div", {"class": "az-component"} | attributes)
    intro = [node("p", {"class": "az-intro"}, section.intro)] if section.intro else []
    heading = [node("h2", {"tabindex": -1}, section.title)] if section.title else []
    look = {"class": "az-section", "id": f"section-{i}"}
    return node("section", look, *heading, *intro, content)


def _json(data: Any) -> str:
    """Returns JSON that cannot close the script element around it."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
