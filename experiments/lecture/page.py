"""Elements of the page: paragraphs, tables and charts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from azjax.drawing import node
from azjax.viz import page
from azjax.viz.chart import side_by_side


def text(paragraph: str) -> Element:
    """Makes a paragraph."""
    return node("p", {"style": "max-width: 48em; margin: 0 0 16px"}, paragraph)


def charts(caption: str, pictures: Iterable[Element]) -> Element:
    """Arranges charts in columns."""
    return node("div", None, node("p", {"class": "az-hint"}, caption), side_by_side(pictures))


def table(rows: Sequence[Mapping[str, Any]]) -> Element:
    """Makes a table that scrolls if the page is too narrow; every row has its cells by title."""
    element = page.scrolling(page.table([[*row.values()] for row in rows], [*rows[0]]))
    element.set("style", "white-space: nowrap; margin: 0 0 24px")
    return element
