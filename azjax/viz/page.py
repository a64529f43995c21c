"""Self-contained HTML pages: style, code and data in one file."""

import base64
import graphlib
import json
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from azjax._files import Path, check_folder, replacing
from azjax.drawing import node

FOLDER = pathlib.Path(__file__).parent / "js"
_MODULE = re.compile(r'^import \{.*\} from "(\..*)";\n|^export ', re.MULTILINE)


class Section(NamedTuple):
    """A part of a page."""

    title: str  # Its heading; empty for none.
    intro: str = ""  # One or two sentences below the heading.
    kind: str | None = None  # A component of the JavaScript module: `COMPONENTS` in `js/main.js`.
    data: Any = None  # The input of the component, for JSON.
    element: ElementTree.Element | None = None  # Content without a component.
    label: str | None = None  # Its name in the contents bar; sections without one are not in it.


def script(entry: pathlib.Path = FOLDER / "main.js") -> str:
    """Returns one JavaScript module: the entry, and the modules that it imports before it.

    All share one scope, so two modules must not declare the same name: browsers would report it as
    a syntax error.
    """
    sources: dict[pathlib.Path, str] = {}
    imports: dict[pathlib.Path, list[pathlib.Path]] = {}
    waiting = [entry]
    for path in waiting:
        if path not in sources:
            sources[path] = path.read_text(encoding="utf-8")
            names = filter(None, _MODULE.findall(sources[path]))
            imports[path] = [(path.parent / name).resolve() for name in names]
            waiting += imports[path]
    order = graphlib.TopologicalSorter(imports).static_order()
    return "\n".join(_MODULE.sub("", sources[path]) for path in order)


def style(*more: pathlib.Path) -> str:
    """Returns the style sheet of pages, and further ones after it."""
    paths = [FOLDER / "style.css", *more]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def table(rows: Iterable[Sequence[Any]], heads: Sequence[str] = ()) -> ElementTree.Element:
    """Makes a table of text and elements; the first cell of a row is its heading."""
    body = node("tbody")
    for name, *cells in rows:
        heading = node("th", {"scope": "row"}, name)
        body.append(node("tr", None, heading, *(node("td", None, cell) for cell in cells)))
    titles = (node("th", {"scope": "col"}, title) for title in heads)
    head = [node("thead", None, node("tr", None, *titles))] if heads else []
    return node("table", {"class": "az-facts"}, *head, body)


def scrolling(element: ElementTree.Element) -> ElementTree.Element:
    """Lets a wide element scroll on a narrow screen."""
    return node("div", {"class": "az-scroll", "tabindex": 0}, element)


def encode(numbers: np.ndarray, kind: str) -> str:
    """Encodes an array of a NumPy type such as `<u2` in base64, for `numbers` in `js/dom.js`."""
    return base64.b64encode(np.ascontiguousarray(numbers).astype(kind).tobytes()).decode()


def write_page(
    path: Path,
    title: str,
    sections: list[Section],
    entry: pathlib.Path = FOLDER / "main.js",
    styles: Sequence[pathlib.Path] = (),
) -> pathlib.Path:
    """Writes a page that opens from disk, without a server or a network connection.

    Args:
      path: the file, which is replaced if it exists.
      title: the heading of the page.
      sections: from top to bottom.
      entry: the JavaScript module that the page runs; another one may add components.
      styles: further style sheets.
    """
    path = pathlib.Path(path)
    check_folder(path)
    text = _page(title, sections, script(entry), style(*styles))
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _page(title: str, sections: list[Section], code: str, look: str) -> str:
    data = {id(section.data): section.data for section in sections if section.kind}
    number = {key: i for i, key in enumerate(data)}  # Shared data is written once.
    head = node(
        "head",
        None,
        node("meta", {"charset": "utf-8"}),
        node("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        node("title", None, title),
        node("link", {"rel": "icon", "href": "data:,"}),
        node("style", None, look),
    )
    links = [
        node("a", {"href": f"#section-{i}"}, section.label)
        for i, section in enumerate(sections)
        if section.label
    ]
    nav = [node("nav", {"class": "az-contents", "aria-label": "contents"}, *links)] if links else []
    shown = [_section(section, i, number) for i, section in enumerate(sections)]
    main = node("main", {"class": "az-page"}, node("h1", None, title), *nav, *shown)
    about = {"type": "application/json", "id": "azjax-data"}
    text = json.dumps(list(data.values()), separators=(",", ":"), allow_nan=False)
    packed = node("script", about, text.replace("<", "\\u003c"))  # It cannot end the element.
    program = node("script", {"type": "module"}, code + "\nmountPage(document);\n")
    body = node("body", {"class": "azjax"}, main, packed, program)
    html = node("html", {"lang": "en"}, head, body)
    return "<!DOCTYPE html>\n" + ElementTree.tostring(html, encoding="unicode", method="html")


def _section(section: Section, i: int, number: dict[int, int]) -> ElementTree.Element:
    parts = [node("h2", {"tabindex": -1}, section.title)] if section.title else []
    parts += [node("p", {"class": "az-intro"}, section.intro)] if section.intro else []
    parts += [section.element] if section.element is not None else []
    if section.kind:
        attributes = {"data-kind": section.kind, "data-number": number[id(section.data)]}
        parts.append(node("div", {"class": "az-component"} | attributes))
    return node("section", {"class": "az-section", "id": f"section-{i}"}, *parts)
