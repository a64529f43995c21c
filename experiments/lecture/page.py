"""A page of headings, text, tables and pictures, written as one file."""

import pathlib
from collections.abc import Sequence
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

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Adds a table of text and elements; cells with the text `no` are highlighted."""
        self.add(table(titles, rows))

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


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> Element:
    """Makes a table of text and elements that scrolls if the page is too narrow."""
    head = node("tr", None, *(node("th", {"scope": "col"}, title) for title in titles))
    body = [node("tr", None, *map(_cell, row)) for row in rows]
    made = node("table", None, node("thead", None, head), node("tbody", None, *body))
    return node("div", {"class": "az-scroll", "tabindex": 0, "style": "margin: 0 0 24px"}, made)


def _cell(content: object) -> Element:
    return node("td", {"style": _HIGHLIGHT if content == "no" else _CELL}, content)
