"""Rows of the comparison with the textbook baseline, and how they are printed."""

from typing import NamedTuple

from rich.table import Table

from experiments import console


class Row(NamedTuple):
    """One measurement.

    Attributes:
      name: what was measured.
      unit: of both numbers.
      ours: azjax's.
      textbook: the baseline's, or None where there is none.
    """

    name: str
    unit: str
    ours: float
    textbook: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours over the baseline's."""
        return self.ours / self.textbook if self.textbook else None


def rate(name: str, unit: str, count: float, seconds: dict[str, float]) -> Row:
    """A row of what both sides do in a second."""
    return Row(name, unit, count / seconds["ours"], count / seconds["textbook"])


def show_rows(title: str, rows: list[Row]) -> None:
    """Prints the comparison."""
    table = make_table(title, "what", "unit", "azjax", "textbook", "azjax / textbook", left=2)
    for row in rows:
        baseline = number(row.textbook) if row.textbook else ""
        ratio = f"{row.ratio:.2f}" if row.ratio else ""
        table.add_row(row.name, row.unit, number(row.ours), baseline, ratio)
    console.print_rich(table)


def make_table(title: str, *headings: str, left: int = 0) -> Table:
    """An empty table; its columns are numbers but for the first `left`."""
    table = Table(title=title)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i < left else "right")
    return table


def number(value: float) -> str:
    """Three digits, and all those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
