"""Elements of the page: paragraphs, tables and charts."""

from collections.abc import Iterable, Mapping, Sequence
from xml.etree.ElementTree import Element

from azjax.drawing import node
from azjax.viz.chart import side_by_side

_CELL = "white-space: nowrap"
_HIGHLIGHT = f"{_CELL}; color: var(--az-bad); font-weight: 600"


def text(paragraph: str) -> Element:
    """Makes a paragraph."""
    return node("p", {"style": "max-width: 48em; margin: 0 0 16px"}, paragraph)


def charts(caption: str, pictures: Iterable[Element]) -> Element:
    """Arranges charts in columns."""
    return node("div", None, node("p", {"class": "az-hint"}, caption), side_by_side(pictures))


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
