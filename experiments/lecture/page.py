"""A page of headings, text, tables and pictures, written as one file."""

import pathlib
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from azjax.drawing import node
from azjax.viz.chart import side_by_side
from azjax.viz.page import Section, write_page

_CELL = "white-space: nowrap"
_HIGHLIGHT = f"{_CELL}; color: var(--az-bad); font-weight: 600"


class Page:
    """Collects the content of the page; nothing is written before `write`."""

    def __init__(self, title: str):
        """Creates an empty page."""
        self._title = title
        self.sections: list[Section] = []

    def heading(self, text: str) -> None:
        """Starts a section."""
        self.sections.append(Section(text, element=node("div")))

    def add(self, *elements: Element) -> None:
        """Adds elements to the current section."""
        assert self.sections[-1].element is not None
        self.sections[-1].element.extend(elements)

    def text(self, *paragraphs: str) -> None:
        """Adds paragraphs."""
        look = {"style": "max-width: 48em; margin: 0 0 16px"}
        self.add(*(node("p", look, paragraph) for paragraph in paragraphs))

    def table(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Adds a table of text and elements; see `table`."""
        self.add(table(rows))

    def row(self, *figures: Element) -> None:
        """Adds figures side by side."""
        self.add(node("div", {"style": "display: flex; flex-wrap: wrap; gap: 0 56px"}, *figures))

    def figure(self, caption: str, *pictures: Element) -> None:
        """Adds pictures side by side."""
        self.add(figure(caption, *pictures))

    def charts(self, caption: str, *charts: Element) -> None:
        """Adds charts in columns."""
        self.add(node("p", {"class": "az-hint"}, caption), side_by_side(charts))

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        """Writes `index.html` into a folder; returns its path."""
        return write_page(folder / "index.html", self._title, self.sections)


def figure(caption: str, *pictures: Element) -> Element:
    """Makes a row of pictures; each scrolls if the page is too narrow for it."""
    look = {"class": "az-scroll", "tabindex": 0, "style": "max-width: 100%"}
    boxes = [node("div", look, picture) for picture in pictures]
    row = node("div", {"style": "display: flex; flex-wrap: wrap; gap: 16px"}, *boxes)
    words = node("figcaption", {"class": "az-hint"}, caption)
    return node("figure", {"style": "margin: 20px 0; max-width: 100%"}, words, row)


def table(rows: Sequence[Mapping[str, object]]) -> Element:
    """Makes a table of text and elements that scrolls if the page is too narrow.

    Every row has its cells by title. Cells with the text `no` are highlighted.
    """

    def cell(content):
        return node("td", {"style": _HIGHLIGHT if content == "no" else _CELL}, content)

    head = node("tr", None, *(node("th", {"scope": "col"}, title) for title in rows[0]))
    body = node("tbody", None, *(node("tr", None, *map(cell, row.values())) for row in rows))
    element = node("table", None, node("thead", None, head), body)
    return node("div", {"class": "az-scroll", "tabindex": 0, "style": "margin: 0 0 24px"}, element)
