"""The page: tables, pictures and text, written as one HTML file with PNGs beside it."""

import html
import pathlib
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1f24; background: #ffffff }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem }
div.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #d0d7de; text-align: right }
th:first-child, td:first-child { text-align: left }
td.no { background: #fff1e5 }
img { max-width: 100%; height: auto } figure { margin: 1.5rem 0 }
figcaption, p.small { color: #57606a; font-size: .9rem }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117 } th, td { border-color: #30363d }
  td.no { background: #4d2d00 } figcaption, p.small { color: #9198a1 }
  img { background: #ffffff; border-radius: 6px }
}
"""


class Page:
    """Collects what the experiments show; nothing is on disk before `write`."""

    def __init__(self, title: str):
        """Starts an empty page."""
        self._title = title
        self._blocks: list[str] = []
        self._figures: dict[str, Figure] = {}

    def heading(self, text: str) -> None:
        """Starts a section."""
        self._blocks.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, *paragraphs: str, small: bool = False) -> None:
        """Adds paragraphs."""
        opening = '<p class="small">' if small else "<p>"
        self._blocks += [f"{opening}{html.escape(paragraph)}</p>" for paragraph in paragraphs]

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Adds a table; a cell that says `no` stands out."""
        head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
        lines = []
        for row in rows:
            cells = [(str(cell), ' class="no"' if cell == "no" else "") for cell in row]
            cells = "".join(f"<td{mark}>{html.escape(cell)}</td>" for cell, mark in cells)
            lines.append(f"<tr>{cells}</tr>")
        body = "\n".join(lines)
        self._blocks.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>'
            "</table></div>"
        )

    def axes(
        self, name: str, caption: str, columns: int = 1, rows: int = 1, size=(4.6, 3.4)
    ) -> list[Axes]:
        """Adds a picture, `NAME.png`, and returns its panels for drawing."""
        figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained", dpi=110)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        self._figures[name] = figure
        self._blocks.append(
            f'<figure><img src="{name}.png" alt="{html.escape(caption)}">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        )
        return list(panels)

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        """Writes `index.html` and its pictures into a folder; returns the page's path."""
        for name, figure in self._figures.items():
            figure.savefig(folder / f"{name}.png")
        content = "\n".join(self._blocks)
        title = html.escape(self._title)
        path = folder / "index.html"
        path.write_text(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{_STYLE}</style></head>\n"
            f"<body><h1>{title}</h1>\n{content}\n</body></html>\n",
            encoding="utf-8",
        )
        return path
