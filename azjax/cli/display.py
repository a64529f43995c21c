"""A live table of the iterations of a training, on a terminal."""

from collections.abc import Collection, Iterable, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from azjax.training.metrics import WORDS, Record, extra_cells, terms

_COLUMNS = {"iteration", "seconds", "games/s", "loss", *WORDS.values()}  # Of every training.


class Display:
    """A live table of the last iterations on a terminal.

    Columns that do not fit are left out, custom metrics first; their values are in lines below.
    """

    def __init__(self, console: Console, max_iterations: int, target: str, rows: int = 8):
        """Opens a display of the last `rows` iterations and the remaining time."""
        self._rows, self._console = rows, console
        self._records: list[Record] = []
        self._max_iterations, self._target = max_iterations, target
        self._live, self._widest = Live(console=console, auto_refresh=False), 0

    def __call__(self, record: Record) -> None:
        """Shows one more record."""
        self._records.append(record)
        self._draw()

    def _draw(self) -> None:
        if self._console.width < self._widest:
            # The terminal has wrapped or cut the rows, so rich would move up by a wrong number.
            self._live.stop()
            self._console.clear()
            self._live = Live(console=self._console, auto_refresh=False)
        content = self._render()
        self._widest = self._console.measure(content).maximum
        self._live.start()
        self._live.update(content, refresh=True)

    def close(self) -> None:
        """Leaves the last state of the table on the screen."""
        if self._records:
            self._draw()  # In the size that the terminal has now.
        self._live.stop()

    def _render(self) -> Group:
        records = self._records[-self._rows :]
        rows = [_cells(record) for record in records]
        titles = dict.fromkeys(title for row in rows for title in row)
        # The columns of the verification come last, even if no displayed iteration has them.
        proof = {title: None for record in self._records for title in _proof_cells(record)}
        titles = [title for title in titles if title not in proof] + [*proof]
        headings = _choose_columns(rows, titles, {*_COLUMNS, *proof}, self._console.width)
        table = Table(box=None, padding=(0, 1, 0, 0))
        for heading in headings.values():
            table.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(row.get(title, "") for title in headings))
        hidden = {t: cell for row in rows for t, cell in row.items() if t not in headings}
        lines = [self._footer()]
        if hidden:
            lines.append("latest " + ", ".join(f"{title} {hidden[title]}" for title in hidden))
        return Group(table, Text("\n".join(lines), style="dim"))

    def _footer(self) -> str:
        first, last = self._records[0], self._records[-1]
        done = max(last.iteration - first.iteration, 1)
        left = (last.seconds - first.seconds) / done * (self._max_iterations - last.iteration)
        line = ""
        if evaluated := [record for record in self._records if "error" in record.errors]:
            error, iteration = evaluated[-1].errors["error"], evaluated[-1].iteration
            line = f"\niteration {iteration}: {error:.1%} of moves worsen the outcome"
        return (
            f"until {self._target}: {last.seconds:.0f} s elapsed, at most {left:.0f} s to "
            f"iteration {self._max_iterations}{line}"
        )


def _cells(record: Record) -> dict[str, str]:
    """Returns the cells of a row of `Display`, by the titles of their columns."""
    return {
        "iteration": f"{record.iteration}",
        "seconds": f"{record.seconds:.1f}",
        "games/s": f"{record.games_per_second:,.0f}",
        "loss": f"{record.losses['loss']:.3f}",
        **{word: f"{value:.3f}" for word, value in terms(record).items()},
        **extra_cells(record),
        **_proof_cells(record),
    }


def _proof_cells(record: Record) -> dict[str, str]:
    """Returns the cells of the verification; empty if the iteration was not verified."""
    if record.blunders is None:
        return {}
    return {
        "blunders left": f"{record.blunders:,}",
        "losing lines": f"{record.losing_lines_first} + {record.losing_lines_second}",
        "wrong signs": f"{record.value_sign_errors:,}",
    }


def _choose_columns(
    rows: Sequence[dict[str, str]], titles: Iterable[str], first: Collection[str], width: int
) -> dict[str, str]:
    """Returns the headings of the columns that fit into `width`, by title; `first` take precedence.

    Headings have a line for each word if some column would not fit otherwise.
    """

    def room(title: str, heading: str) -> int:
        cells = [row.get(title, "") for row in rows]
        return 1 + max(map(len, [*heading.split("\n"), *cells]))

    headings = {title: title for title in titles}
    if sum(room(*item) for item in headings.items()) > width:
        headings = {title: title.replace(" ", "\n") for title in headings}
    fits, left = set(), width
    for title in sorted(headings, key=lambda title: title not in first):
        if (needed := room(title, headings[title])) <= left:
            fits.add(title)
            left -= needed
    return {title: heading for title, heading in headings.items() if title in fits}
